//! The last policy before the transport: date from the injected clock, the caller's request id, extra
//! headers, and the Shared Key signature over all of it. Each try is stamped and signed anew.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Body, Context, Request};
use smalt_protocol::ApiVersion;
use smalt_protocol::service::Service;
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::uri::parse_query;

use super::query::incomplete;
use super::{Call, call};
use crate::clock::Clock;

/// Whose key signs, and how.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) service: Service,
    pub(crate) version: ApiVersion,
    pub(crate) account: String,
    pub(crate) key: AccountKey,
}

/// Stamps and, with a key at hand, signs every try.
pub(crate) struct StampPolicy {
    clock: Arc<dyn Clock>,
    signer: Option<Signer>,
}

impl StampPolicy {
    pub(crate) fn new(clock: Arc<dyn Clock>, signer: Option<Signer>) -> Self {
        StampPolicy { clock, signer }
    }

    fn stamp(&self, call: &Call, request: &mut Request) {
        request.insert_header("x-ms-date", self.clock.now().rfc1123());
        match &call.request_id {
            Some(id) => request.insert_header("x-ms-client-request-id", id),
            // The SDK draws a random one. Without an id of the caller's there is none, so that the
            // same run sends the same bytes.
            None => drop(request.headers_mut().remove("x-ms-client-request-id")),
        }
        for (name, value) in &call.headers {
            request.insert_header(*name, *value);
        }
        let length = match request.body() {
            Body::Bytes(bytes) => bytes.len(),
            Body::SeekableStream(_) => 0,
        };
        if length > 0 {
            request.insert_header("content-length", length.to_string());
        }
    }
}

impl Signer {
    /// The `Authorization` header of a stamped request.
    fn authorize(&self, request: &Request) -> Option<String> {
        let headers: Vec<(&str, &str)> = (request.headers().iter())
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let query = parse_query(request.url().query().unwrap_or_default()).ok()?;
        let input = SigningInput {
            service: self.service,
            scheme: Scheme::SharedKey,
            version: self.version,
            method: request.method().as_str(),
            account: &self.account,
            path: request.url().path(),
            query: &query,
            headers: &headers,
        };
        Some(authorization(&input, self.key.as_bytes()))
    }
}

impl fmt::Debug for StampPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StampPolicy")
            .field("clock", &self.clock)
            .field("signs", &self.signer.is_some())
            .finish()
    }
}

#[async_trait]
impl Policy for StampPolicy {
    async fn send(
        &self,
        ctx: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let (Some(call), [first, rest @ ..]) = (call(ctx), next) else {
            return Err(incomplete());
        };
        self.stamp(call, request);
        if let Some(signer) = &self.signer {
            let signature = signer.authorize(request).ok_or_else(incomplete)?;
            request.insert_header("authorization", signature);
        }
        first.send(ctx, request, rest).await
    }
}
