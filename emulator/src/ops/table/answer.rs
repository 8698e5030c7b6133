//! Shared code of the Table service's responses.

use bytes::Bytes;
use smalt_protocol::table::format::Kind;
use smalt_protocol::table::payload::Scope;
use smalt_protocol::table::{BodyFormat, Format};
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::reply::{Content, Reply};

pub use crate::reply::table::{Preference, format};

/// Returns the format of a call's body.
///
/// # Errors
/// 415 for an unsupported format.
pub fn body_format(call: &Call) -> Result<BodyFormat, StorageError> {
    BodyFormat::of(call.header("content-type")?, call.version)
}

/// Returns the context of a document; `endpoint` is that of the call.
pub fn scope<'a>(call: &'a Call, endpoint: &'a str, now: Timestamp) -> Scope<'a> {
    Scope {
        endpoint,
        account: call.account(),
        now,
    }
}

/// Returns a response without a body.
pub fn empty(status: u16) -> Reply {
    Reply::new(status)
        .header("cache-control", "no-cache")
        .header("x-content-type-options", "nosniff")
}

/// Returns a response with a document.
pub fn document(status: u16, format: Format, kind: Kind, bytes: Vec<u8>) -> Reply {
    empty(status)
        .header("content-type", format.content_type(kind))
        .content(Content::Bytes(Bytes::from(bytes)))
}
