//! Preflight Blob/Queue/Table Request: whether a web page of another origin may send a request.
//!
//! Source: "Preflight Blob Request" and its counterparts. The service's CORS rules decide; the
//! resource of the path need not exist, and the request is not signed.
//!
//! ```http
//! OPTIONS /devstoreaccount1/events/today
//! Origin: https://example.org
//! Access-Control-Request-Method: PUT
//! Access-Control-Request-Headers: x-ms-blob-type
//!
//! 200 OK
//! Access-Control-Allow-Origin: https://example.org
//! Access-Control-Allow-Methods: PUT
//! Access-Control-Allow-Headers: x-ms-blob-type
//! Access-Control-Allow-Credentials: true
//! Access-Control-Max-Age: 60
//! ```

use smalt_protocol::xml::ServiceProperties;
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::ops::service::properties::Owner;
use crate::reply::Reply;
use crate::rules::cors::{self, Asked};
use crate::store::{Store, View};

/// The Preflight Request operation.
pub struct Preflight {
    owner: Owner,
    origin: String,
    method: String,
    headers: Option<String>,
}

impl Read for Preflight {
    type Output = ServiceProperties;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let required = |name| {
            let value = call.header(name)?.filter(|value| !value.is_empty());
            value.map(str::to_owned).ok_or_else(required_missing)
        };
        Ok(Preflight {
            owner: Owner::of(call),
            origin: required("origin")?,
            method: required("access-control-request-method")?,
            headers: call
                .header("access-control-request-headers")?
                .map(str::to_owned),
        })
    }

    fn read(&self, view: &dyn View, _: Timestamp) -> Result<ServiceProperties, StorageError> {
        self.owner.load(view)
    }

    fn render(
        self,
        properties: ServiceProperties,
        _: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        let asked = Asked {
            origin: &self.origin,
            method: &self.method,
            headers: self.headers.as_deref().unwrap_or_default(),
        };
        let grant = cors::preflight(&properties.cors, &asked);
        let grant = grant.ok_or(ErrorCode::CorsPreflightFailure)?;
        let credentials = grant.allows_credentials().then_some("true");
        Ok(Reply::new(200)
            .header("access-control-allow-origin", grant.origin)
            .header("access-control-allow-methods", &self.method)
            .maybe("access-control-allow-headers", self.headers.as_deref())
            .maybe("access-control-allow-credentials", credentials)
            .header("access-control-max-age", grant.rule.max_age_s.to_string()))
    }
}

fn required_missing() -> StorageError {
    StorageError::new(ErrorCode::InvalidHeaderValue)
        .with_message("A required CORS header is not present.")
}
