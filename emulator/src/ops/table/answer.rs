//! What answers of the Table service have in common.

use bytes::Bytes;
use smalt_protocol::table::format::{Asked, Kind};
use smalt_protocol::table::payload::Scope;
use smalt_protocol::table::{BodyFormat, Format};
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::reply::{Content, Reply};

/// Whether the answer to a write shows what was written. *Setting the Prefer header to manage
/// response echo on insert operations*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Nothing is asked for.
    Unstated,
    /// `return-content`.
    Content,
    /// `return-no-content`.
    NoContent,
}

impl Preference {
    /// What a request prefers; a text that is none counts for nothing.
    pub fn of(call: &Call) -> Self {
        let text = call.headers.get("prefer").and_then(|v| v.to_str().ok());
        Self::parse(text.unwrap_or_default())
    }

    /// Reads the header.
    pub fn parse(text: &str) -> Self {
        let is = |name: &str| text.trim().eq_ignore_ascii_case(name);
        if is("return-no-content") {
            Preference::NoContent
        } else if is("return-content") {
            Preference::Content
        } else {
            Preference::Unstated
        }
    }

    /// `Preference-Applied`.
    pub const fn applied(self) -> Option<&'static str> {
        match self {
            Preference::Unstated => None,
            Preference::Content => Some("return-content"),
            Preference::NoContent => Some("return-no-content"),
        }
    }
}

/// The format that the answer to a call is written in.
///
/// # Errors
/// 415 for one that there is not.
pub fn format(call: &Call) -> Result<Format, StorageError> {
    let text = |name: &str| call.headers.get(name).and_then(|v| v.to_str().ok());
    Format::negotiate(&Asked {
        accept: text("accept"),
        format: call.query("$format"),
        max_data_service_version: text("maxdataserviceversion"),
        data_service_version: text("dataserviceversion"),
        version: call.version,
    })
}

/// The format of the body of a call.
///
/// # Errors
/// 415 for one that there is not.
pub fn body_format(call: &Call) -> Result<BodyFormat, StorageError> {
    BodyFormat::of(call.header("content-type")?, call.version)
}

/// What documents say of the service that a call is for; `endpoint` is that of the call.
pub fn scope<'a>(call: &'a Call, endpoint: &'a str, now: Timestamp) -> Scope<'a> {
    Scope {
        endpoint,
        account: call.account(),
        now,
    }
}

/// An answer without a body.
pub fn empty(status: u16) -> Reply {
    Reply::new(status)
        .header("cache-control", "no-cache")
        .header("x-content-type-options", "nosniff")
}

/// An answer with a document.
pub fn document(status: u16, format: Format, kind: Kind, bytes: Vec<u8>) -> Reply {
    empty(status)
        .header("content-type", format.content_type(kind))
        .content(Content::Bytes(Bytes::from(bytes)))
}
