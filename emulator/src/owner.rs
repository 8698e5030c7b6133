//! Signs in-process requests as the owner of an account.

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use smalt_protocol::signing::shared_key::{self, Scheme, SigningInput};
use smalt_protocol::{ApiVersion, Service, uri};

use crate::body::Body;
use crate::core::Core;

/// Dates a request and signs it with the account's first key. Leaves a request for an account
/// without a key unsigned; the service refuses it.
pub fn sign(
    core: &Core,
    service: Service,
    account: &str,
    request: &mut Request<Body>,
) -> Result<(), http::Error> {
    // Uses the clock that the service compares the date with.
    let date = match core.config.strict_skew {
        true => core.store.now(),
        false => core.clock.wall(),
    };
    let date = HeaderValue::from_str(&date.rfc1123())?;
    request.headers_mut().insert("x-ms-date", date);
    let keys = core.config.account(account).map(|account| &account.keys);
    let Some(key) = keys.and_then(|keys| keys.first()) else {
        return Ok(());
    };
    let headers: Vec<(&str, &str)> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()))
        .collect();
    let version = request
        .headers()
        .get("x-ms-version")
        .and_then(|v| v.to_str().ok());
    let query = uri::parse_query(request.uri().query().unwrap_or_default()).unwrap_or_default();
    let input = SigningInput {
        service,
        scheme: Scheme::SharedKey,
        version: version.map_or(ApiVersion::LATEST, |v| {
            ApiVersion::resolve(v).map_or(ApiVersion::LATEST, |resolved| resolved.version)
        }),
        method: request.method().as_str(),
        account,
        path: request.uri().path(),
        query: &query,
        headers: &headers,
    };
    let signature = shared_key::authorization(&input, key.as_bytes());
    request
        .headers_mut()
        .insert(AUTHORIZATION, HeaderValue::from_str(&signature)?);
    Ok(())
}
