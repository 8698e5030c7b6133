//! Adapts the query to the service: spaces as `%20`, and the account's SAS, if any.
//!
//! The SDK encodes queries like HTML forms, with `+` for a space, but the service reads `+` as a
//! plus sign: a listing with the prefix `a b` would find nothing. The SDK encodes a plus sign as
//! `%2B`, so every `+` in its query is a space.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request, Url};

pub(crate) struct QueryPolicy {
    sas: Option<String>,
}

impl QueryPolicy {
    /// `sas` is the percent-encoded query of a SAS, without a question mark.
    pub(crate) fn new(sas: Option<String>) -> Self {
        QueryPolicy { sas }
    }

    fn finish(&self, url: &mut Url) {
        let mut query = url.query().unwrap_or_default().replace('+', "%20");
        if let Some(sas) = &self.sas {
            if !query.is_empty() {
                query.push('&');
            }
            query.push_str(sas);
        }
        url.set_query((!query.is_empty()).then_some(&query));
    }
}

impl fmt::Debug for QueryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryPolicy")
            .field("has_sas", &self.sas.is_some())
            .finish()
    }
}

#[async_trait]
impl Policy for QueryPolicy {
    async fn send(
        &self,
        ctx: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let [first, rest @ ..] = next else {
            return Err(incomplete());
        };
        self.finish(request.url_mut());
        first.send(ctx, request, rest).await
    }
}

/// Returns the error for a pipeline without a transport or a call. It cannot occur, because one
/// place builds all pipelines.
pub(crate) fn incomplete() -> Error {
    Error::with_message(ErrorKind::Other, "the pipeline is incomplete")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_sas() {
        let table = [
            ("http://h/c", None, "http://h/c"),
            (
                "http://h/c",
                Some("sv=1&sig=x%2B"),
                "http://h/c?sv=1&sig=x%2B",
            ),
            (
                "http://h/c?prefix=a+b%2Bc",
                None,
                "http://h/c?prefix=a%20b%2Bc",
            ),
            ("http://h/c?a=1", Some("sig=y"), "http://h/c?a=1&sig=y"),
        ];
        for (url, sas, expected) in table {
            let mut url: Url = url.parse().unwrap();
            let policy = QueryPolicy::new(sas.map(str::to_owned));
            policy.finish(&mut url);
            assert_eq!(url.as_str(), expected);
            assert!(!format!("{policy:?}").contains("sig="));
        }
    }
}
