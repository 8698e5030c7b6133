//! Response bodies that the sleeve parses itself.
//!
//! The SDK parses a page of a listing twice: for its marker, then with serde into its model. For a
//! page of 5,000 blobs that costs four times as much as a parser that extracts only what the port
//! uses. So this policy keeps the body of such a call and gives the SDK an empty page.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{AsyncRawResponse, Context, Request};

use super::query::incomplete;

const EMPTY_PAGE: &[u8] = b"<EnumerationResults/>";

/// Keeps response bodies, once per call.
#[derive(Debug)]
pub(crate) struct KeepPolicy;

#[async_trait]
impl Policy for KeepPolicy {
    async fn send(
        &self,
        ctx: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let [first, rest @ ..] = next else {
            return Err(incomplete());
        };
        let answer = first.send(ctx, request, rest).await?;
        let keeping = super::call(ctx).filter(|call| call.keeps_body);
        let Some(call) = keeping.filter(|_| answer.status().is_success()) else {
            return Ok(answer);
        };
        // The transport has already read the whole body, so this does not wait.
        let (status, headers, body) = answer.try_into_raw_response().await?.deconstruct();
        // A call has only one response.
        let _ = call.body.set(body.into());
        Ok(AsyncRawResponse::from_bytes(status, headers, EMPTY_PAGE))
    }
}
