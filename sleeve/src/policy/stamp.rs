//! The last policy before the transport: adds the date of the injected clock, the caller's request
//! id, extra headers, and the Shared Key signature over all of it. Each attempt is stamped and
//! signed anew.

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

/// The key that signs requests, and the form of the signature.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) service: Service,
    pub(crate) version: ApiVersion,
    pub(crate) account: String,
    pub(crate) key: AccountKey,
}

/// Stamps every attempt, and signs it if there is a key.
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
            // The SDK sets a random one. Without an id of the caller it is removed, so that the
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
    /// Returns the `Authorization` header of a stamped request.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TokioClock;
    use crate::policy::Repeat;
    use azure_core::http::Method;
    use smalt_protocol::Timestamp;
    use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};

    const VERSION: &str = "2021-12-02";

    fn signed(mut request: Request) -> String {
        let now = Timestamp::parse_rfc1123("Fri, 26 Jun 2015 23:39:12 GMT").unwrap();
        let signer = Signer {
            service: Service::Blob,
            version: ApiVersion::parse(VERSION).unwrap(),
            account: EMULATOR_ACCOUNT_NAME.to_owned(),
            key: AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap(),
        };
        let clock = Arc::new(TokioClock::starting_at(now));
        let policy = StampPolicy::new(clock, Some(signer.clone()));
        let call = Call::new("Test", String::new(), Repeat::Read, None);
        request.insert_header("x-ms-version", VERSION);
        request.insert_header("x-ms-client-request-id", "drawn by the SDK");
        policy.stamp(&call, &mut request);
        signer.authorize(&request).unwrap()
    }

    /// Known signatures of three requests: path style, host style, with a body.
    #[tokio::test(start_paused = true)]
    async fn known_signatures() {
        let query = "restype=container&comp=list&include=snapshots&include=metadata";
        let path_style = format!("http://127.0.0.1:10000/devstoreaccount1/mycontainer?{query}");
        let host_style =
            format!("https://devstoreaccount1.blob.core.windows.net/mycontainer?{query}");
        let table = [
            (path_style, "QLNnpNHK4uo6pOKodoswC2x9UtAZgkLWP85Sj0vtjY8="),
            (host_style, "cVkwXp1zm3POoiuzIQPKS3Z1FVZrodUXFuUmD+AODCs="),
        ];
        for (url, signature) in table {
            let list = Request::new(url.parse().unwrap(), Method::Get);
            assert_eq!(
                signed(list),
                format!("SharedKey devstoreaccount1:{signature}")
            );
        }
        let url = "http://127.0.0.1:10000/devstoreaccount1/c/b.txt"
            .parse()
            .unwrap();
        let mut put = Request::new(url, Method::Put);
        put.insert_header("content-type", "text/plain");
        put.insert_header("x-ms-blob-type", "BlockBlob");
        put.set_body("hello world");
        let signature = "BYdP2A/vZk2wHtH7bxYJ+qpsrqophckleMyI3a0QV5A=";
        assert_eq!(
            signed(put),
            format!("SharedKey devstoreaccount1:{signature}")
        );
    }
}
