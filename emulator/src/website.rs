//! The endpoint of static websites: `http://<account>.web.localhost:10000/`, as Azure's
//! `https://<account>.z13.web.core.windows.net/`.
//!
//! It serves the blobs of the container `$web` to everybody, while the service's properties enable
//! the website. Sources: "Static website hosting in Azure Storage"; "Set Blob Service Properties".

use http::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use smalt_protocol::connection_string::emulator_port;
use smalt_protocol::{ApiVersion, Service};

use crate::arrival::{self, Socket};
use crate::body::{self, Body};
use crate::core::Core;
use crate::faults::ConnectionLost;
use crate::target::SECONDARY;
use crate::{owner, pipeline};

/// The container of the website.
const WEB: &str = "$web";
/// The label of the endpoint; on Azure after that of a zone.
const LABEL: &str = "web";

/// Returns the account whose website a request addresses; `None` for a request to a service, or one
/// that the service refuses for its host.
pub fn account(core: &Core, head: &Parts, socket: &Socket) -> Option<String> {
    let mut labels = arrival::host(head).split(['.', ':']);
    let account = labels.next()?;
    if !labels
        .take(2)
        .any(|label| label.eq_ignore_ascii_case(LABEL))
    {
        return None;
    }
    let account = account.to_ascii_lowercase();
    let account = account.strip_suffix(SECONDARY).unwrap_or(&account);
    let is_known = core.config.host_style && core.config.account(account).is_some();
    let is_ours = is_known && arrival::check_framing(core, head, socket).is_ok();
    is_ours.then(|| account.to_owned())
}

/// Serves a request to the website of an account.
pub async fn serve(
    core: &Core,
    account: &str,
    head: &Parts,
) -> Result<Response<Body>, ConnectionLost> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        let mut response = plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "Websites have GET and HEAD.",
        );
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return Ok(response);
    }
    let properties = core.properties.load(&core.store, account, Service::Blob);
    let properties = match properties {
        Ok(properties) => properties,
        Err(error) => {
            tracing::error!(%error, "cannot read the properties of a website");
            let text = "The website's properties cannot be read.";
            return Ok(plain(StatusCode::INTERNAL_SERVER_ERROR, text));
        }
    };
    let Some(site) = properties
        .as_ref()
        .and_then(|it| it.static_website.as_ref())
    else {
        return Ok(missing());
    };
    let path = head.uri.path();
    let page = match &site.index_document {
        Some(index) if path.ends_with('/') => format!("{path}{index}"),
        _ => path.to_owned(),
    };
    let found = page != "/";
    let response = match found {
        true => blob(core, account, head, &page).await?,
        false => missing(),
    };
    if response.status() != StatusCode::NOT_FOUND {
        return Ok(response);
    }
    // An application of a single page answers for every path of its own.
    if let Some(default) = &site.default_index_document {
        return blob(core, account, head, &format!("/{default}")).await;
    }
    let Some(error) = &site.error_document else {
        return Ok(missing());
    };
    // What the client asks of the page that it does not get says nothing of this one.
    let (mut head, ()) = Request::new(()).into_parts();
    head.method = Method::GET;
    let mut response = blob(core, account, &head, &format!("/{error}")).await?;
    if !response.status().is_success() {
        return Ok(missing());
    }
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}

/// Reads a blob of the website as the account's owner.
async fn blob(
    core: &Core,
    account: &str,
    head: &Parts,
    path: &str,
) -> Result<Response<Body>, ConnectionLost> {
    let port = emulator_port(Service::Blob);
    let target = format!("http://127.0.0.1:{port}/{account}/{WEB}{path}");
    let request = Request::builder().method(&head.method).uri(target);
    let Ok(mut request) = request.body(body::empty()) else {
        return Ok(missing());
    };
    copy(&head.headers, request.headers_mut());
    let version = HeaderValue::from_str(&ApiVersion::LATEST.to_string());
    if let Ok(version) = version {
        request.headers_mut().insert("x-ms-version", version);
    }
    if owner::sign(core, Service::Blob, account, &mut request).is_err() {
        return Ok(missing());
    }
    pipeline::serve(core, request, Socket::default()).await
}

/// Copies the range and the conditions of a request.
fn copy(from: &HeaderMap, to: &mut HeaderMap) {
    for name in [
        IF_MATCH,
        IF_NONE_MATCH,
        IF_MODIFIED_SINCE,
        IF_UNMODIFIED_SINCE,
        RANGE,
    ] {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}

fn missing() -> Response<Body> {
    plain(
        StatusCode::NOT_FOUND,
        "The requested content does not exist.",
    )
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(body::full(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    response
}
