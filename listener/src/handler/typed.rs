//! Bodies of a type: decoded before the handler sees them.
//!
//! A body that cannot be decoded never will be: it is rejected, and so goes to the poison queue as
//! it was stored, unseen by the handler.

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{Context, Handler, Message, Verdict};

/// A handler of bytes around one of another type; see [`json`] and [`text`].
pub struct Decoded<T, H> {
    handler: H,
    decode: fn(&Bytes) -> Result<T, String>,
}

/// Decodes bodies as JSON.
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

/// Decodes bodies as UTF-8.
pub fn text<H: Handler<String>>(handler: H) -> Decoded<String, H> {
    Decoded {
        handler,
        decode: from_utf8,
    }
}

fn from_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, String> {
    serde_json::from_slice(body)
        .map_err(|error| format!("the body is not the JSON wanted: {error}"))
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
