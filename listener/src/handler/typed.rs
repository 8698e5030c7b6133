//! Typed bodies, decoded before the handler runs.
//!
//! A body that cannot be decoded is rejected, because a retry would fail as well: it goes to the
//! poison queue as stored, without a run of the handler.

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{Context, Handler, Message, Verdict};

/// A handler of bytes that decodes for a typed handler; see [`json`] and [`text`].
pub struct Decoded<T, H> {
    handler: H,
    decode: fn(&Bytes) -> Result<T, String>,
}

/// Decodes bodies as JSON; rejects a body that does not match.
pub fn json<T, H>(handler: H) -> Decoded<T, H>
where
    T: DeserializeOwned + Send + Sync + 'static,
    H: Handler<T>,
{
    Decoded {
        handler,
        decode: from_json,
    }
}

/// Decodes bodies as UTF-8; rejects any other body.
pub fn text<H: Handler<String>>(handler: H) -> Decoded<String, H> {
    Decoded {
        handler,
        decode: from_utf8,
    }
}

fn from_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, String> {
    serde_json::from_slice(body)
        .map_err(|error| format!("the body does not match the expected JSON: {error}"))
}

fn from_utf8(body: &Bytes) -> Result<String, String> {
    let text = std::str::from_utf8(body).map(str::to_owned);
    text.map_err(|error| format!("the body is not UTF-8: {error}"))
}

#[async_trait]
impl<T, H> Handler for Decoded<T, H>
where
    T: Send + Sync + 'static,
    H: Handler<T>,
{
    async fn handle(&self, message: &Message, ctx: &Context) -> Verdict {
        match (self.decode)(&message.body) {
            Ok(body) => self.handler.handle(&message.with_body(body), ctx).await,
            Err(reason) => Verdict::reject(reason),
        }
    }
}
