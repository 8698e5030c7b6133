//! The headers that a service's rules of cross-origin resource sharing add to a response.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    CONTENT_RANGE, CONTENT_TYPE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use smalt_protocol::ErrorCode;

use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::rules::cors::{self, Grant};
use crate::store::StoreResult;

/// Recorded: these are named as exposed in every answer, there or not.
const ALWAYS_EXPOSED: [&str; 7] = [
    "x-ms-request-id",
    "x-ms-client-request-id",
    "server",
    "x-ms-version",
    "content-length",
    "date",
    "transfer-encoding",
];

/// Operations of blobs and containers whose answers name as exposed exactly what they have, by
/// `comp`. Recorded.
const EXACT: [&str; 4] = ["pagelist", "tags", "blobs", "seal"];

/// Adds what the service's rules say. A preflight has said it already.
///
/// # Errors
/// When the store cannot be read.
pub fn share(core: &Core, call: &Call, response: &mut Response<Body>) -> StoreResult<()> {
    let origin = call.headers.get(ORIGIN).and_then(|o| o.to_str().ok());
    let reads = [Method::GET, Method::HEAD].contains(&call.method);
    if call.method == Method::OPTIONS || (origin.is_none() && !reads) {
        return Ok(());
    }
    let stored = core
        .properties
        .load(&core.store, call.account(), call.service())?;
    let Some(stored) = stored else {
        return Ok(());
    };
    let verdict = cors::verdict(&stored.cors, call.method.as_str(), origin);
    if verdict.varies {
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
    if let Some(grant) = verdict.grant {
        grant_origin(&grant, response.headers_mut());
        expose(&grant, call, response);
    }
    Ok(())
}

/// `Access-Control-Allow-Origin` and `-Credentials`.
fn grant_origin(grant: &Grant<'_>, headers: &mut HeaderMap) {
    if let Ok(origin) = HeaderValue::from_str(grant.origin) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    if grant.allows_credentials() {
        let allowed = HeaderValue::from_static("true");
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, allowed);
    }
}

fn expose(grant: &Grant<'_>, call: &Call, response: &mut Response<Body>) {
    let own = response.headers().keys();
    let own = own.filter(|name| !is_late(name, call, response));
    let own = own.map(HeaderName::as_str);
    let own = own.filter(|name| !ALWAYS_EXPOSED.contains(name));
    let has_id = response.headers().contains_key("x-ms-client-request-id");
    let is_late_id = |name: &&str| *name == "x-ms-client-request-id" && !has_id;
    let is_exact = is_exact(call, response);
    // Recorded: what is refused before the version was looked at comes from another server.
    let is_versioned = response.headers().contains_key("x-ms-version");
    let always = ALWAYS_EXPOSED.into_iter();
    let always = always.filter(|name| is_versioned || !["server", "x-ms-version"].contains(name));
    let always = always.filter(|name| !is_exact || !is_late_id(name));
    let all = always.chain(own);
    let names = cors::exposed(grant.rule, all);
    if let (false, Ok(names)) = (names.is_empty(), HeaderValue::from_str(&names)) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, names);
    }
}

/// Recorded: the younger operations, and what is refused as early as their requests are read, name
/// what is there and nothing else.
fn is_exact(call: &Call, response: &Response<Body>) -> bool {
    let refused_early = ErrorCode::MutuallyExclusiveQueryParameters.as_str();
    let code = response.headers().get("x-ms-error-code");
    code.is_some_and(|code| code == refused_early)
        || EXACT.contains(&(call.query("comp").unwrap_or_default()))
}

/// Recorded: what is written after the names were gathered is not among them. It is all that
/// belongs to a range, and the type of refusals and of documents about settings.
fn is_late(name: &HeaderName, call: &Call, response: &Response<Body>) -> bool {
    let status = response.status();
    let is_partial = status == StatusCode::PARTIAL_CONTENT;
    let is_settings = ["properties", "acl"].contains(&call.query("comp").unwrap_or_default());
    *name == ACCESS_CONTROL_ALLOW_ORIGIN
        || *name == ACCESS_CONTROL_ALLOW_CREDENTIALS
        || *name == VARY
        || *name == CONTENT_RANGE
        || (*name == CONTENT_TYPE
            && (is_settings || (status.as_u16() >= 400 && !is_exact(call, response))))
        || (is_partial && ["content-md5", "x-ms-content-crc64"].contains(&name.as_str()))
}
