//! A source outside the emulator: fetched with a GET and streamed into the store.
//!
//! Sources: "Put Block From URL", "Put Blob From URL", "Copy Blob" on sources outside of Azure. The
//! GET has the source's range, conditions, authorisation and key; an error keeps its status.
//! Redirects are not followed: a rule that admits one host does not admit the next.

use std::ops::Range;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_RANGE, CONTENT_TYPE, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, StatusCode, Uri};
use http_body::Body as _;
use smalt_protocol::limits::{MIB, put_blob_bytes_max};
use smalt_protocol::{ByteRange, ETag, ErrorCode, Metadata, StorageError};

use super::open::{check_length, hold};
use super::{Origin, Request, Source, SourceBytes, UNVERIFIED, Wanted, nowhere, unverified};
use crate::body::{self, Body};
use crate::call::Call;
use crate::core::Core;
use crate::fetch::FetchError;
use crate::ops::blob::headers::{CONTENT_TYPE_DEFAULT, encode};
use crate::records::{BlobKind, BlobRecord, ContentHeaders};
use crate::stage;

/// Maximum bytes of a source without `Content-Length`, which is read into memory; a longer one is
/// rejected.
const UNSIZED_BYTES_MAX: u64 = 8 * MIB;

/// Headers of the request, and their names in the GET.
const FORWARDED: [(&str, HeaderName); 10] = [
    ("x-ms-source-if-match", IF_MATCH),
    ("x-ms-source-if-none-match", IF_NONE_MATCH),
    ("x-ms-source-if-modified-since", IF_MODIFIED_SINCE),
    ("x-ms-source-if-unmodified-since", IF_UNMODIFIED_SINCE),
    (
        "x-ms-source-if-tags",
        HeaderName::from_static("x-ms-if-tags"),
    ),
    ("x-ms-copy-source-authorization", AUTHORIZATION),
    (
        "x-ms-source-encryption-key",
        HeaderName::from_static("x-ms-encryption-key"),
    ),
    (
        "x-ms-source-encryption-key-sha256",
        HeaderName::from_static("x-ms-encryption-key-sha256"),
    ),
    (
        "x-ms-source-encryption-algorithm",
        HeaderName::from_static("x-ms-encryption-algorithm"),
    ),
    (
        "x-ms-file-request-intent",
        HeaderName::from_static("x-ms-file-request-intent"),
    ),
];

/// Fetches a source and stages the requested bytes.
///
/// # Errors
/// `CannotVerifyCopySource` with the status of the source's response; 403 if the rules do not admit
/// it, 404 if the host does not respond, 500 if it takes too long.
pub async fn open(core: &Core, call: &Call, asked: Request) -> Result<Source, StorageError> {
    let fetch = core.fetcher.get().ok_or_else(nowhere)?;
    let is_reference = matches!(asked.wanted, Wanted::Reference);
    let (range, most) = match asked.wanted {
        Wanted::Reference => (None, put_blob_bytes_max(call.version)),
        Wanted::Whole { most, .. } => (None, most),
        Wanted::Range { range, most, .. } => (range, most),
    };
    let shown = asked.url.shown(&call.origin);
    let uri = asked.url.whole().and_then(|url| url.parse::<Uri>().ok());
    let uri = uri.ok_or_else(|| StorageError::invalid_header("x-ms-copy-source", &shown))?;
    let mut request = http::Request::new(Bytes::new());
    *request.uri_mut() = uri;
    *request.headers_mut() = headers_of(call, range);
    let answer = fetch.fetch(request).await;
    let answer = answer.map_err(|error| unfetched(&error, &shown))?;
    let (head, body) = answer.into_parts();
    check_status(head.status, &head.headers, is_reference)?;
    let (body, length) = wanted_of(head.status, &head.headers, body, range, most).await?;
    let mut body = body;
    let received = stage::payload(&core.store, &mut body, length, true).await;
    let received = received.map_err(|error| match error.code() {
        // The body broke off, or had another length than announced.
        ErrorCode::InvalidInput => unverified(500),
        _ => error,
    })?;
    let etag = ETag::from_tick(call.arrival);
    let mut blob = described(&head.headers, length, etag, call);
    // Recorded of a page without an MD5: the copy has the MD5 of its bytes.
    let md5 = blob.headers.content_md5.take();
    blob.headers.content_md5 = md5.or_else(|| received.md5.map(|md5| encode(&md5)));
    Ok(Source {
        origin: Origin::Elsewhere(Box::new(blob)),
        shown,
        is_own: false,
        may_read_tags: false,
        hold: is_reference.then(|| hold(core, call)).flatten(),
        bytes: Some(SourceBytes {
            etag,
            md5: received.md5,
            crc64: received.crc64,
            staged: Some(received.staged),
        }),
    })
}

fn headers_of(call: &Call, range: Option<ByteRange>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (from, to) in FORWARDED {
        if let Some(value) = call.headers.get(from) {
            headers.insert(to, value.clone());
        }
    }
    let mut set = |name: HeaderName, text: String| {
        if let Ok(value) = text.parse() {
            headers.insert(name, value);
        }
    };
    if let Some(ByteRange { first, last }) = range {
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        set(RANGE, format!("bytes={first}-{last}"));
    }
    set(
        HeaderName::from_static("x-ms-version"),
        call.version.to_string(),
    );
    headers
}

/// Returns the body from the requested offset, and the requested length.
async fn wanted_of(
    status: StatusCode,
    headers: &HeaderMap,
    body: Body,
    range: Option<ByteRange>,
    most: u64,
) -> Result<(Body, u64), StorageError> {
    let stated = headers
        .get(http::header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    let (body, length) = match stated.or_else(|| body.size_hint().exact()) {
        Some(length) => (body, length),
        None => read_unsized(body, most).await?,
    };
    let part = match (status, range) {
        (StatusCode::PARTIAL_CONTENT, Some(range)) => {
            if first_of(headers).is_some_and(|first| first != range.first) {
                return Err(unverified(400));
            }
            check_length(length, most)?;
            let asked_for = range.length().unwrap_or(length);
            0..length.min(asked_for)
        }
        (StatusCode::PARTIAL_CONTENT, None) => return Err(unverified(400)),
        // A server without range support sends everything.
        (_, Some(range)) => {
            let (first, length) = range
                .within(length)
                .map_err(|error| super::refused(&error))?;
            check_length(length, most)?;
            first..first + length
        }
        (_, None) => {
            check_length(length, most)?;
            0..length
        }
    };
    let Range { start, end } = part;
    Ok((body::part(body, start, end - start), end - start))
}

/// Parses the first offset: 5 for `bytes 5-9/10`.
fn first_of(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let range = text.strip_prefix("bytes ")?;
    range.split('-').next()?.trim().parse().ok()
}

async fn read_unsized(mut body: Body, most: u64) -> Result<(Body, u64), StorageError> {
    let most = most.min(UNSIZED_BYTES_MAX);
    let bytes = stage::at_most(&mut body, most)
        .await
        .map_err(|error| match error.code() {
            ErrorCode::RequestBodyTooLarge => unverified(400),
            ErrorCode::InvalidInput => unverified(500),
            _ => error,
        })?;
    let length = bytes.len() as u64;
    Ok((body::full(bytes), length))
}

/// Returns the source as a record: a block blob, whatever kind it has at its server.
fn described(headers: &HeaderMap, length: u64, etag: ETag, call: &Call) -> BlobRecord {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::to_owned);
    let content_type = text(CONTENT_TYPE);
    let metadata = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    BlobRecord {
        length,
        headers: ContentHeaders {
            content_type: content_type.or_else(|| Some(CONTENT_TYPE_DEFAULT.to_owned())),
            content_encoding: text(CONTENT_ENCODING),
            content_language: text(CONTENT_LANGUAGE),
            content_md5: text(HeaderName::from_static("content-md5")),
            cache_control: text(CACHE_CONTROL),
            content_disposition: text(CONTENT_DISPOSITION),
        },
        metadata: Metadata::from_headers(metadata).unwrap_or_default(),
        ..BlobRecord::new(BlobKind::Block, etag, call.arrival)
    }
}

/// Converts the status of the source into the error of the copy. Errors of Azure give a reason.
/// Copy Blob attributes unmet conditions to the source, whichever they are.
fn check_status(
    status: StatusCode,
    headers: &HeaderMap,
    is_reference: bool,
) -> Result<(), StorageError> {
    if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return Ok(());
    }
    if is_reference && matches!(status.as_u16(), 304 | 412) {
        return Err(ErrorCode::SourceConditionNotMet.into());
    }
    let code = headers
        .get("x-ms-error-code")
        .and_then(|code| code.to_str().ok());
    let message = match (code.and_then(ErrorCode::parse), status.as_u16()) {
        (Some(code), _) => code.message(),
        (None, 401 | 403) => ErrorCode::AuthenticationFailed.message(),
        (None, 404) => ErrorCode::ResourceNotFound.message(),
        (None, 304 | 412) => ErrorCode::ConditionNotMet.message(),
        _ => UNVERIFIED,
    };
    let status = match status.as_u16() {
        304 => 304,
        // A redirect, or an unexpected status for a GET.
        status if status < 400 => 400,
        status => status,
    };
    Err(unverified(status).with_message(message))
}

fn unfetched(error: &FetchError, shown: &str) -> StorageError {
    // The query may contain a secret.
    let source = shown.split('?').next().unwrap_or_default();
    tracing::warn!(%error, source, "a copy source could not be fetched");
    match error {
        FetchError::Forbidden(_) => {
            unverified(403).with_message(format!("{UNVERIFIED} On this server {error}."))
        }
        FetchError::Malformed(_) => StorageError::invalid_header("x-ms-copy-source", shown),
        FetchError::Unreachable(_) => nowhere(),
        FetchError::TimedOut(_) => unverified(500),
    }
}
