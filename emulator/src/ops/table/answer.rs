//! What answers of the Table service have in common.

use bytes::Bytes;
use smalt_protocol::table::format::Kind;
use smalt_protocol::table::payload::Scope;
use smalt_protocol::table::{BodyFormat, Format};
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::reply::{Content, Reply};

pub use crate::reply::table::{Preference, format};

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
