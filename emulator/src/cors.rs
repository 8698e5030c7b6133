//! Cross-origin resource sharing: which web pages may send requests, and the headers that a
//! service's rules add to a response.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    CONTENT_RANGE, CONTENT_TYPE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::register::Entry;
use crate::rules::cors::{self, Grant};
use crate::rules::web;
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

/// What a browser says of requests that carry no `Origin`, such as those for the images of a page.
const SITE: &str = "sec-fetch-site";
/// The origin of a page that does not say which it is.
const UNNAMED: &str = "null";

/// Refuses what comes from a web page of another machine that no rule of the service lets in. Azure
/// runs such a request and keeps its answer from the page. There the page has no key; the
/// emulator's is public. A preflight is left to the rules; in process there is no page.
///
/// # Errors
/// 403 `AuthorizationFailure`; the store's own.
pub fn admit(core: &Core, call: &Call, entry: &Entry) -> Result<(), StorageError> {
    if call.peer.is_none() || call.method == Method::OPTIONS {
        return Ok(());
    }
    let Some(origin) = page_of(call, entry) else {
        return Ok(());
    };
    let authority = call.origin.split_once("://").map_or("", |(_, host)| host);
    if web::is_trusted_origin(origin, authority) {
        return Ok(());
    }
    let stored = core
        .properties
        .load(&core.store, call.account(), call.service())?;
    let rules = stored.as_ref().map_or(&[][..], |stored| &stored.cors);
    let verdict = cors::verdict(rules, call.method.as_str(), Some(origin));
    if verdict.grant.is_some() {
        return Ok(());
    }
    let code = ErrorCode::AuthorizationFailure;
    Err(StorageError::new(code).with_message(format!(
        "{} It comes from a web page of the origin {origin}, which no CORS rule of the service \
         allows.",
        code.message()
    )))
}

/// The origin of the page that sends a request, if one does. Requests that only read go without one
/// where a page shows an image or follows a link: these are served, and the page does not see what
/// they return.
fn page_of<'a>(call: &'a Call, entry: &Entry) -> Option<&'a str> {
    let is_of_other_site = || call.headers.get(SITE).is_some_and(|s| s == "cross-site");
    // Some clients send a word of their own; a browser's is a URL or `null`.
    let is_of_page = |origin: &&str| *origin == UNNAMED || origin.contains("://");
    match call.headers.get(ORIGIN) {
        Some(origin) => origin.to_str().ok().filter(is_of_page),
        None => (entry.writes() && is_of_other_site()).then_some(UNNAMED),
    }
}

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
