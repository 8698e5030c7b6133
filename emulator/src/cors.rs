//! Cross-origin resource sharing: which web pages may send requests, and the headers that a
//! service's rules add to a response.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    CONTENT_RANGE, CONTENT_TYPE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use smalt_protocol::xml::CorsRule;
use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::register::Entry;
use crate::rules::cors::{self, Grant};
use crate::rules::web;

/// Recorded: every response lists these as exposed, even when it does not have them.
const ALWAYS_EXPOSED: [&str; 7] = [
    "x-ms-request-id",
    "x-ms-client-request-id",
    "server",
    "x-ms-version",
    "content-length",
    "date",
    "transfer-encoding",
];

/// Blob and container operations, by `comp`, whose responses list exactly their own headers as
/// exposed. Recorded.
const EXACT: [&str; 4] = ["pagelist", "tags", "blobs", "seal"];

/// Header of browsers on requests without `Origin`, such as those for a page's images.
const SITE: &str = "sec-fetch-site";
/// Value of `Origin` for pages that hide their origin.
const UNNAMED: &str = "null";

/// Rejects a request from a web page of another machine unless a rule of the service allows it.
/// Azure runs such a request and only hides the response from the page; there the page has no key,
/// while the emulator's key is public. A preflight is left to the rules; in process there is no
/// page.
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
        "{} A web page of the origin {origin} sent it, and no CORS rule of the service allows \
         that.",
        code.message()
    )))
}

/// Returns the origin of the web page that sends a request; `None` when no page sends it. Read
/// requests without an origin, for an image or a followed link, are served, because the page cannot
/// see the response.
fn page_of<'a>(call: &'a Call, entry: &Entry) -> Option<&'a str> {
    let is_of_other_site = || call.headers.get(SITE).is_some_and(|s| s == "cross-site");
    // Some clients send another word as origin; a browser sends a URL or `null`.
    let is_of_page = |origin: &&str| *origin == UNNAMED || origin.contains("://");
    match call.headers.get(ORIGIN) {
        Some(origin) => origin.to_str().ok().filter(is_of_page),
        None => (entry.writes() && is_of_other_site()).then_some(UNNAMED),
    }
}

/// Adds the headers of the service's rules. The response to a preflight has them already.
pub fn share(rules: &[CorsRule], call: &Call, response: &mut Response<Body>) {
    let origin = call.headers.get(ORIGIN).and_then(|o| o.to_str().ok());
    let reads = [Method::GET, Method::HEAD].contains(&call.method);
    if call.method == Method::OPTIONS || (origin.is_none() && !reads) {
        return;
    }
    let verdict = cors::verdict(rules, call.method.as_str(), origin);
    if verdict.varies {
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
    if let Some(grant) = verdict.grant {
        grant_origin(&grant, response.headers_mut());
        expose(&grant, call, response);
    }
}

/// Adds `Access-Control-Allow-Origin` and `Access-Control-Allow-Credentials`.
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
    // Recorded: another server sends refusals that precede reading the version.
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

/// Returns whether only the response's own headers are exposed. Recorded: newer operations do so,
/// and refusals that occur when their requests are parsed.
fn is_exact(call: &Call, response: &Response<Body>) -> bool {
    let refused_early = ErrorCode::MutuallyExclusiveQueryParameters.as_str();
    let code = response.headers().get("x-ms-error-code");
    code.is_some_and(|code| code == refused_early)
        || EXACT.contains(&(call.query("comp").unwrap_or_default()))
}

/// Returns whether a header is added after the exposed names were collected, and so is not among
/// them. Recorded: the headers of ranges, and the content type of refusals and of settings
/// documents.
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
