//! Responses: the replies of operations, and the headers common to all responses.

mod data_lake;
pub mod table;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, LAST_MODIFIED, SERVER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use smalt_protocol::metadata::HEADER_PREFIX;
use smalt_protocol::xml::ErrorDocument;
use smalt_protocol::{ApiVersion, ETag, ErrorCode, Metadata, Service, StorageError, Timestamp};
use uuid::Uuid;

use crate::body::{self, Body};
use crate::call::{Call, first};
use crate::header_case::HeaderCase;
use crate::store::PayloadReader;

pub use table::Form;

/// Initial capacity of a reply's headers: as many as a blob's properties need.
const HEADERS_USUAL: usize = 24;

/// A reply of an operation, before the common headers are added.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status code.
    pub status: StatusCode,
    /// Headers of this reply alone.
    pub headers: HeaderMap,
    /// Case of the metadata names among the headers.
    pub case: HeaderCase,
    /// Body.
    pub content: Content,
}

/// The body of a reply.
#[derive(Debug)]
pub enum Content {
    /// No body.
    Empty,
    /// Bytes in memory, sent with their length.
    Bytes(Bytes),
    /// A payload that is read from the store while it is sent.
    Payload(PayloadReader),
    /// A body of known length that is produced while it is sent.
    Stream {
        /// The bytes to send.
        body: Body,
        /// Length in bytes.
        length: u64,
    },
    /// A body of unknown length, sent in chunks.
    Chunked(Body),
    /// The length of a body that is not sent, for HEAD.
    Length(u64),
}

impl Reply {
    /// Creates a reply without headers or body.
    pub fn new(status: u16) -> Self {
        Reply {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            headers: HeaderMap::with_capacity(HEADERS_USUAL),
            case: HeaderCase::default(),
            content: Content::Empty,
        }
    }

    /// Creates a reply with an XML document.
    pub fn xml(status: u16, document: Vec<u8>) -> Self {
        let mut reply = Reply::new(status).header("content-type", "application/xml");
        reply.content = Content::Bytes(document.into());
        reply
    }

    /// Adds a header. Skips a value that HTTP does not allow.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds a header if there is a value.
    #[must_use]
    pub fn maybe(mut self, name: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        if let Some(value) = value {
            self.set(name, value);
        }
        self
    }

    /// Sets a header in place. Skips a value that HTTP does not allow.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.as_ref());
        if let (Ok(name), Ok(value)) = (name, value) {
            self.headers.insert(name, value);
        }
    }

    /// Adds the `x-ms-meta-*` headers.
    #[must_use]
    pub fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata.iter() {
            self.set(&format!("{HEADER_PREFIX}{name}"), value);
        }
        self.case = HeaderCase::of_metadata(metadata);
        self
    }

    /// Adds `ETag` and `Last-Modified`.
    #[must_use]
    pub fn version(self, etag: ETag, last_modified: Timestamp) -> Self {
        self.header(ETAG.as_str(), etag.quoted())
            .header(LAST_MODIFIED.as_str(), last_modified.rfc1123())
    }

    /// Sets the body.
    #[must_use]
    pub fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }
}

/// The first version that is named in responses. *Version 2009-09-19*.
const NAMES_VERSION: ApiVersion = ApiVersion::V2009_09_19;

/// The values of the common headers.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// Service named in `Server`.
    pub service: Service,
    /// `x-ms-request-id`.
    pub request_id: Uuid,
    /// `x-ms-version`; `None` to leave the header out.
    pub version: Option<ApiVersion>,
    /// Whether a refusal has its code in `x-ms-error-code`. "Version 2017-07-29".
    pub tells_code: bool,
    /// `x-ms-client-request-id`, echoed.
    pub client_request_id: Option<&'a HeaderValue>,
    /// `Date`.
    pub now: Timestamp,
    /// Form of refusals.
    pub form: Form,
}

impl<'a> Common<'a> {
    /// Returns the headers for a parsed request.
    pub fn of(call: &'a Call, now: Timestamp) -> Self {
        Common {
            service: call.service(),
            request_id: call.request_id,
            version: (call.version >= NAMES_VERSION).then_some(call.version),
            tells_code: call.version >= ApiVersion::V2017_07_29,
            client_request_id: first(&call.headers, "x-ms-client-request-id"),
            now,
            form: Form::of(call),
        }
    }

    /// Returns the headers of a refusal. Recorded: a refusal before the version is read has no
    /// version. That concerns unusable credentials, a resource without an operation, and a snapshot
    /// with a malformed time. The last has no code in a header either, nor has the 404 of a request
    /// without a version. A request with both a snapshot and a version is refused before its client
    /// request id is read.
    pub fn of_refusal(call: &'a Call, error: &StorageError, now: Timestamp) -> Self {
        let common = Self::of(call, now);
        let names_snapshot = ("QueryParameterName", "snapshot".to_owned());
        let no_operation = [
            ("QueryParameterName", "comp".to_owned()),
            ("QueryParameterValue", String::new()),
        ];
        let (knows_version, tells_code) = match error.code() {
            ErrorCode::InvalidAuthenticationInfo | ErrorCode::AuthorizationServiceMismatch => {
                (false, true)
            }
            ErrorCode::InvalidQueryParameterValue => {
                let elements = error.elements();
                let is_none = elements.starts_with(&no_operation);
                let is_time = call
                    .query("snapshot")
                    .is_some_and(|s| Timestamp::parse_whole(s).is_some());
                let knows = is_time || !elements.contains(&names_snapshot);
                (knows && !is_none, knows)
            }
            ErrorCode::ResourceNotFound => (call.version_known, call.version_known),
            _ => (true, true),
        };
        let is_read_early = error.code() == ErrorCode::MutuallyExclusiveQueryParameters;
        let client_request_id = common.client_request_id.filter(|_| !is_read_early);
        Common {
            version: common.version.filter(|_| knows_version),
            tells_code: tells_code && (common.tells_code || !knows_version),
            client_request_id,
            ..common
        }
    }

    /// Returns the headers for a request that could not be parsed.
    pub fn bare(service: Service, request_id: Uuid, now: Timestamp) -> Self {
        Common {
            service,
            request_id,
            version: None,
            tells_code: true,
            client_request_id: None,
            now,
            form: if service == Service::Table {
                Form::Unread
            } else {
                Form::Plain
            },
        }
    }
}

/// Adds the common headers and builds the response; HEAD gets no body.
pub fn finish(reply: Reply, method: &Method, common: &Common<'_>) -> Response<Body> {
    let mut headers = reply.headers;
    let is_head = method == Method::HEAD;
    let (length, body) = match reply.content {
        Content::Empty => (Some(0), body::empty()),
        Content::Bytes(bytes) => (Some(bytes.len() as u64), body::full(bytes)),
        Content::Payload(reader) => (Some(reader.remaining()), body::payload(reader)),
        Content::Stream { body, length } => (Some(length), body),
        Content::Chunked(body) => (None, body),
        Content::Length(length) => (Some(length), body::empty()),
    };
    let body = if is_head { body::empty() } else { body };
    let bodiless = matches!(reply.status.as_u16(), 204 | 304);
    if let Some(length) = length
        && !bodiless
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    set(&mut headers, DATE, common.now.rfc1123());
    set(&mut headers, SERVER, server(common));
    let mut id = Uuid::encode_buffer();
    let id: &str = common.request_id.hyphenated().encode_lower(&mut id);
    set(&mut headers, HeaderName::from_static("x-ms-request-id"), id);
    if let Some(version) = common.version {
        set(
            &mut headers,
            HeaderName::from_static("x-ms-version"),
            version.to_string(),
        );
    }
    if let Some(echo) = common.client_request_id {
        headers.insert(
            HeaderName::from_static("x-ms-client-request-id"),
            echo.clone(),
        );
    }
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = headers;
    if !reply.case.is_empty() {
        response.extensions_mut().insert(reply.case);
    }
    response
}

/// Renders a refusal: status, `x-ms-error-code`, extra headers, and a body in its form.
pub fn refusal(error: &StorageError, common: &Common<'_>) -> Reply {
    let told = (common.form == Form::DataLake).then(|| data_lake::in_its_words(error));
    let error = told.as_ref().unwrap_or(error);
    let status = error.status();
    let mut reply = if status == 304 {
        Reply::new(status)
    } else if common.form == Form::DataLake {
        data_lake::refusal(error, common)
    } else if common.form != Form::Plain {
        table::refusal(error, common, common.form)
    } else {
        Reply::xml(
            status,
            ErrorDocument {
                error,
                request_id: &common.request_id.to_string(),
                time: common.now,
            }
            .render(),
        )
    };
    if common.tells_code && table::tells_code(error.code(), common.form) {
        reply.set("x-ms-error-code", error.code().as_str());
    }
    for (name, value) in error.headers() {
        reply.set(name, value);
    }
    reply
}

/// Logs and renders a refusal. Client errors are logged at debug level.
pub fn refuse(error: &StorageError, method: &Method, common: &Common<'_>) -> Reply {
    if let Some(cause) = error.cause() {
        let (request_id, status) = (common.request_id, error.status());
        if status < 500 {
            tracing::debug!(%request_id, status, cause, "request refused");
        } else {
            tracing::error!(%request_id, status, cause, "request failed");
        }
    }
    let reply = refusal(error, common);
    if method == Method::HEAD {
        without_entity(reply)
    } else {
        reply
    }
}

/// Drops the content headers and the body of a refusal to HEAD, as Azure does.
fn without_entity(mut reply: Reply) -> Reply {
    reply.headers.remove(CONTENT_TYPE);
    reply.content = Content::Empty;
    reply
}

fn server(common: &Common<'_>) -> &'static str {
    if common.form == Form::DataLake {
        return data_lake::SERVER;
    }
    match common.service {
        Service::Blob => "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0",
        Service::Queue => "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0",
        Service::Table => "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0",
    }
}

/// Sets a header, without a copy if the value is owned. Skips values that HTTP cannot carry.
pub fn set(headers: &mut HeaderMap, name: HeaderName, value: impl TryInto<HeaderValue>) {
    if let Ok(value) = value.try_into() {
        headers.insert(name, value);
    }
}
