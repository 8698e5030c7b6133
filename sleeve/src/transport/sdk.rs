//! Adapts our transport to the SDK's `HttpClient`.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Method, Request, StatusCode};
use bytes::Bytes;
use http::header::HOST;

use super::{Transport, TransportError};

#[derive(Debug)]
pub(crate) struct SdkClient {
    transport: Arc<dyn Transport>,
}

impl SdkClient {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        SdkClient { transport }
    }
}

#[async_trait]
impl HttpClient for SdkClient {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let request = to_http(request).map_err(to_sdk_error)?;
        let answer = self.transport.round_trip(request).await;
        answer.map(from_http).map_err(to_sdk_error)
    }
}

/// Wraps the error with its type, so that the retry policy and the error mapping can find it.
fn to_sdk_error(error: TransportError) -> azure_core::Error {
    let kind = match error {
        TransportError::Unreachable(_) | TransportError::Untrusted(_) => ErrorKind::Connection,
        TransportError::NoAnswer(_) => ErrorKind::Io,
        TransportError::AnswerTooLarge(_) | TransportError::Malformed(_) => ErrorKind::Other,
    };
    azure_core::Error::new(kind, error)
}

fn to_http(request: &Request) -> Result<http::Request<Bytes>, TransportError> {
    let malformed = |what: &str| TransportError::Malformed(what.to_owned());
    let Body::Bytes(body) = request.body() else {
        return Err(malformed("streamed bodies are not used here"));
    };
    let host = request.url().host_str().ok_or(malformed("no host"))?;
    let authority = match request.url().port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let uri: http::Uri = (request.url().as_str())
        .parse()
        .map_err(|_| malformed("the URL has characters that HTTP cannot carry"))?;
    let mut built = http::Request::new(body.clone());
    *built.method_mut() = method(request.method()).ok_or(malformed("unknown method"))?;
    *built.uri_mut() = uri;
    let host = http::HeaderValue::from_str(&authority).map_err(|_| malformed("host"))?;
    built.headers_mut().insert(HOST, host);
    // The SDK keeps headers in random order, and metadata is stored in the order of arrival.
    // Sorting makes the bytes reproducible for a seed.
    let mut headers: Vec<_> = request.headers().iter().collect();
    headers.sort_by_key(|(name, _)| name.as_str());
    for (name, value) in headers {
        let named = |_| {
            malformed(&format!(
                "header {} has characters that HTTP cannot carry",
                name.as_str()
            ))
        };
        let parsed = http::HeaderName::from_bytes(name.as_str().as_bytes())
            .map_err(|_| malformed("a header name that HTTP cannot carry"))?;
        let value = http::HeaderValue::from_str(value.as_str()).map_err(named)?;
        built.headers_mut().insert(parsed, value);
    }
    Ok(built)
}

fn method(method: Method) -> Option<http::Method> {
    match method {
        Method::Delete => Some(http::Method::DELETE),
        Method::Get => Some(http::Method::GET),
        Method::Head => Some(http::Method::HEAD),
        Method::Patch => Some(http::Method::PATCH),
        Method::Post => Some(http::Method::POST),
        Method::Put => Some(http::Method::PUT),
        _ => None,
    }
}

fn from_http(response: http::Response<Bytes>) -> AsyncRawResponse {
    let (head, body) = response.into_parts();
    let mut headers = Headers::new();
    for (name, value) in &head.headers {
        headers.insert(name.as_str().to_owned(), header_text(value));
    }
    AsyncRawResponse::from_bytes(StatusCode::from(head.status.as_u16()), headers, body)
}

/// Converts a header value to text. A value that is neither ASCII nor UTF-8 is read as Latin-1, so
/// that a foreign client's metadata value is never lost silently.
fn header_text(value: &http::HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Request {
        Request::new(url.parse().unwrap(), Method::Put)
    }

    #[test]
    fn requests_keep_url_host_headers_and_body() {
        let mut put = request("http://[::1]:10000/acct/c/a%20b?x=%2B");
        put.insert_header("x-ms-meta-a", "1");
        put.set_body("body");
        let sent = to_http(&put).unwrap();
        assert_eq!(sent.method(), http::Method::PUT);
        assert_eq!(sent.uri(), "http://[::1]:10000/acct/c/a%20b?x=%2B");
        assert_eq!(sent.headers()["host"], "[::1]:10000");
        assert_eq!(sent.headers()["x-ms-meta-a"], "1");
        assert_eq!(sent.body(), "body");
        let sent = to_http(&request("https://a.blob.core.windows.net/c")).unwrap();
        assert_eq!(sent.headers()["host"], "a.blob.core.windows.net");
    }

    #[test]
    fn requests_unfit_for_http_are_malformed() {
        let mut put = request("http://h/");
        put.insert_header("x-ms-meta-a", "a\r\nb");
        assert!(matches!(to_http(&put), Err(TransportError::Malformed(_))));
    }

    #[test]
    fn responses_keep_status_headers_and_body() {
        let answer = http::Response::builder()
            .status(412)
            .header("x-ms-error-code", "ConditionNotMet")
            .header(
                "x-ms-meta-u",
                http::HeaderValue::from_bytes("é".as_bytes()).unwrap(),
            )
            .header(
                "x-ms-meta-l",
                http::HeaderValue::from_bytes(b"\xe9").unwrap(),
            )
            .body(Bytes::from_static(b"x"))
            .unwrap();
        let raw = from_http(answer);
        assert_eq!(raw.status(), 412);
        let values: Vec<_> = (raw.headers().iter())
            .filter(|(name, _)| name.as_str().starts_with("x-ms-meta-"))
            .map(|(_, value)| value.as_str().to_owned())
            .collect();
        assert_eq!(values, ["é", "é"]);
    }
}
