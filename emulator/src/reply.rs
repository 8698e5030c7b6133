//! Responses: what operations render, and what every response carries besides.

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
use crate::call::Call;
use crate::header_case::HeaderCase;
use crate::store::PayloadReader;

pub use table::Form;

/// Headers that an answer has room for before its map grows: properties of a blob have as many.
const HEADERS_USUAL: usize = 24;

/// A rendered outcome, before the common headers.
#[derive(Debug)]
pub struct Reply {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Case of the metadata names among them.
    pub case: HeaderCase,
    /// Content.
    pub content: Content,
}

/// The body of a reply.
#[derive(Debug)]
pub enum Content {
    /// No body.
    Empty,
    /// At hand. A document is sent with its length or, as Azure does, in chunks.
    Bytes(Bytes),
    /// Read from the store while it is sent.
    Payload(PayloadReader),
    /// Read from several places while it is sent.
    Stream {
        /// Bytes.
        body: Body,
        /// Length in bytes.
        length: u64,
    },
    /// Made while it is sent: of no known length, so that it goes out in chunks.
    Chunked(Body),
    /// What a HEAD would have sent: the length without the bytes.
    Length(u64),
}

impl Reply {
    /// A reply without headers or body.
    pub fn new(status: u16) -> Self {
        Reply {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            headers: HeaderMap::with_capacity(HEADERS_USUAL),
            case: HeaderCase::default(),
            content: Content::Empty,
        }
    }

    /// An XML document.
    pub fn xml(status: u16, document: Vec<u8>) -> Self {
        let mut reply = Reply::new(status).header("content-type", "application/xml");
        reply.content = Content::Bytes(document.into());
        reply
    }

    /// Adds a header. A value that HTTP cannot carry is left out.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds a header when there is a value.
    #[must_use]
    pub fn maybe(mut self, name: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        if let Some(value) = value {
            self.set(name, value);
        }
        self
    }

    /// Adds a header in place.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.as_ref());
        if let (Ok(name), Ok(value)) = (name, value) {
            self.headers.insert(name, value);
        }
    }

    /// The `x-ms-meta-*` headers.
    #[must_use]
    pub fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata.iter() {
            self.set(&format!("{HEADER_PREFIX}{name}"), value);
        }
        self.case = HeaderCase::of_metadata(metadata);
        self
    }

    /// `ETag` and `Last-Modified`.
    #[must_use]
    pub fn version(self, etag: ETag, last_modified: Timestamp) -> Self {
        self.header(ETAG.as_str(), etag.quoted())
            .header(LAST_MODIFIED.as_str(), last_modified.rfc1123())
    }

    /// With this content.
    #[must_use]
    pub fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }
}

/// Since this version an answer names the version that it was made under. *Version 2009-09-19*.
const NAMES_VERSION: ApiVersion = ApiVersion::V2009_09_19;

/// What the common headers say.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// Service, for `Server`.
    pub service: Service,
    /// `x-ms-request-id`.
    pub request_id: Uuid,
    /// `x-ms-version`, where the request is answered under one.
    pub version: Option<ApiVersion>,
    /// Whether a refusal names its code in `x-ms-error-code`. "Version 2017-07-29".
    pub tells_code: bool,
    /// `x-ms-client-request-id`, echoed.
    pub client_request_id: Option<&'a HeaderValue>,
    /// `Date`.
    pub now: Timestamp,
    /// How refusals are worded.
    pub form: Form,
}

impl<'a> Common<'a> {
    /// The headers of the answer to a request that was understood.
    pub fn of(call: &'a Call, now: Timestamp) -> Self {
        Common {
            service: call.service(),
            request_id: call.request_id,
            version: (call.version >= NAMES_VERSION).then_some(call.version),
            tells_code: call.version >= ApiVersion::V2017_07_29,
            client_request_id: call.headers.get("x-ms-client-request-id"),
            now,
            form: Form::of(call),
        }
    }

    /// Of a refusal. Recorded: what is refused before the version was looked at is answered under
    /// none: who could not be told apart, a resource without an operation, and a snapshot whose
    /// time is none. The last is not told the code in a header either, nor is nobody in particular
    /// who names no version. Snapshot and version at once are refused before the client's id is
    /// read.
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

    /// The headers of the answer to a request that could not be read.
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

/// Completes a reply.
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
    insert(&mut headers, DATE, common.now.rfc1123());
    insert(&mut headers, SERVER, server(common));
    let mut id = Uuid::encode_buffer();
    let id: &str = common.request_id.hyphenated().encode_lower(&mut id);
    insert(&mut headers, HeaderName::from_static("x-ms-request-id"), id);
    if let Some(version) = common.version {
        insert(
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

/// Renders a refusal: status, `x-ms-error-code`, extra headers, XML body with its byte-order mark.
pub fn refusal(error: &StorageError, common: &Common<'_>) -> Reply {
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
            tracing::debug!(%request_id, status, cause, "a request is refused");
        } else {
            tracing::error!(%request_id, status, cause, "a request failed");
        }
    }
    let reply = refusal(error, common);
    if method == Method::HEAD {
        without_entity(reply)
    } else {
        reply
    }
}

/// Drops the entity headers of a refusal to HEAD: Azure sends none.
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

fn insert(headers: &mut HeaderMap, name: HeaderName, value: impl TryInto<HeaderValue>) {
    if let Ok(value) = value.try_into() {
        headers.insert(name, value);
    }
}
