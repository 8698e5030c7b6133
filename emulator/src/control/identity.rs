//! `/identity/token`: the endpoint at which managed identities get their tokens, as in Azure App
//! Service. Microsoft's clients use it when `IDENTITY_ENDPOINT` and `IDENTITY_HEADER` are set.
//!
//! Source: "How to use managed identities for App Service and Azure Functions", *REST endpoint
//! reference*.

use http::StatusCode;
use http::request::Parts;
use serde_json::{Value, json};
use smalt_protocol::{Timestamp, uri};

use super::{Refusal, failed};
use crate::auth::issuer::{IDENTITY, Statement};
use crate::config::OAuth;
use crate::core::Core;

/// Lifetime of a token, as of those of managed identities.
const LIFETIME_S: u64 = 24 * 60 * 60;
/// Shows that the request was not made by following a link; the value does not matter here.
const HEADER: &str = "x-identity-header";

/// Returns a token for the resource that the query names.
pub(super) fn issue(core: &Core, head: &Parts) -> Result<Value, Refusal> {
    let refuse = |message: &str| Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    if core.config.oauth == OAuth::Off {
        return refuse("smalt accepts no tokens: start it with --oauth verified");
    }
    if !head.headers.contains_key(HEADER) {
        return refuse("send the header X-IDENTITY-HEADER");
    }
    let query = uri::parse_query(head.uri.query().unwrap_or_default());
    let query = query.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.message()))?;
    let Some(resource) = uri::lookup(&query, "resource").filter(|it| !it.is_empty()) else {
        return refuse("name a resource: ?resource=https://storage.azure.com");
    };
    let begins_s = core.store.now().since(Timestamp::UNIX_EPOCH).as_secs();
    let ends_s = begins_s + LIFETIME_S;
    let token = core.issuer.sign(&Statement {
        audience: resource,
        tenant: IDENTITY,
        principal: IDENTITY,
        begins_s,
        ends_s,
    });
    Ok(json!({
        "access_token": token.map_err(|error| failed(&error))?,
        "expires_on": ends_s.to_string(),
        "not_before": begins_s.to_string(),
        "resource": resource,
        "token_type": "Bearer",
        "client_id": IDENTITY.to_string(),
    }))
}
