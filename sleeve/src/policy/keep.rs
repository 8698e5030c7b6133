//! Bodies that the sleeve reads itself.
//!
//! The SDK reads a page of a listing twice: for its marker, and then into its model, by serde. For
//! a page of 5,000 blobs that costs four times what a reader does that takes only what the port has
//! a use for. So the body of such a call is set aside here, and the SDK gets an empty page.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{AsyncRawResponse, Context, Request};

use super::query::incomplete;

/// A page that has nothing in it and none behind it.
const EMPTY_PAGE: &[u8] = b"<EnumerationResults/>";

/// Sets bodies aside, once per call.
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
        // The transport has read it whole: nothing is waited for.
        let (status, headers, body) = answer.try_into_raw_response().await?.deconstruct();
        // A call has one answer.
        let _ = call.body.set(body.into());
        Ok(AsyncRawResponse::from_bytes(status, headers, EMPTY_PAGE))
    }
}
