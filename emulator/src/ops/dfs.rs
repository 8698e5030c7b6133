//! Operations of the Data Lake interface on the paths of a hierarchical container.
//!
//! They work on the same records as those of the Blob service: a file is a blob, a file system a
//! container. Where an operation of the Blob service does the same, the register names that one.
//!
//! Source: "Azure Data Lake Storage REST API", operation groups *Filesystem* and *Path*.

pub mod access;
pub mod append;
pub mod create;
pub mod delete;
pub mod filesystem;
pub mod flush;
pub mod gate;
pub mod list;
pub mod recursive;
pub mod rename;
pub mod set_properties;
pub mod status;

use smalt_protocol::{ETag, ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::keys::Generation;
use crate::keys::tree::number as tree_number;
use crate::ops::blob::guard;
use crate::ops::blob::headers::stored_md5;
use crate::ops::lookup::{BlobName, ContainerName, Found, Place};
use crate::ops::tree;
use crate::records::{BlobKind, BlobRecord, ContainerRecord, ContentHeaders};
use crate::rules::immutability::{self, Change};
use crate::store::View;

/// What a path names: the root of a file system, or a file or directory in it.
pub enum Path {
    /// The root directory.
    Root(ContainerName),
    /// A file or directory.
    Entry(BlobName),
}

/// An existing root, file or directory.
pub enum Target {
    /// The record of the file system.
    Root(Box<ContainerRecord>),
    /// The record of the file or directory.
    Entry(Box<Found>),
}

impl Path {
    /// Returns the path that a call names.
    ///
    /// # Errors
    /// 400 for a malformed name.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        Ok(if call.blob().is_empty() {
            Path::Root(ContainerName::of(call)?)
        } else {
            Path::Entry(BlobName::of_write(call)?)
        })
    }

    /// Loads what the path names.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`, 404 `BlobNotFound`.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<Target, StorageError> {
        Ok(match self {
            Path::Root(name) => Target::Root(Box::new(name.find(view, now)?)),
            Path::Entry(name) => Target::Entry(Box::new(name.find(view, now)?)),
        })
    }
}

/// Returns the ETag of a root directory. Recorded: it is not that of the file system. The commit
/// that creates a file system has two ticks; this is the second one.
fn root_etag(container: &ContainerRecord) -> ETag {
    let created = Timestamp::from_ticks(tree_number(container.generation));
    ETag::from_tick(created.plus_ticks(1))
}

/// Parses the content headers of a path: `x-ms-content-type` and its like. Returns `None` for those
/// that the request does not have.
fn content_headers(call: &Call) -> Result<ContentHeaders, StorageError> {
    let read = |name| -> Result<Option<String>, StorageError> {
        let value = call.header(name)?.filter(|value| !value.is_empty());
        Ok(value.map(str::to_owned))
    };
    Ok(ContentHeaders {
        content_type: read("x-ms-content-type")?,
        content_encoding: read("x-ms-content-encoding")?,
        content_language: read("x-ms-content-language")?,
        content_md5: stored_md5(call, "x-ms-content-md5")?,
        cache_control: read("x-ms-cache-control")?,
        content_disposition: read("x-ms-content-disposition")?,
    })
}

/// Replaces the headers that a request has.
fn lay_over(stored: &mut ContentHeaders, given: ContentHeaders) {
    let lay = |old: &mut Option<String>, new: Option<String>| {
        if new.is_some() {
            *old = new;
        }
    };
    lay(&mut stored.content_type, given.content_type);
    lay(&mut stored.content_encoding, given.content_encoding);
    lay(&mut stored.content_language, given.content_language);
    lay(&mut stored.content_md5, given.content_md5);
    lay(&mut stored.cache_control, given.cache_control);
    lay(&mut stored.content_disposition, given.content_disposition);
}

/// Parses a query parameter that is `true` or `false`.
fn flag(call: &Call, name: &str) -> Result<Option<bool>, StorageError> {
    match call.query(name).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(StorageError::invalid_query(name, text, "")),
    }
}

/// Parses a query parameter that is a number.
fn number(call: &Call, name: &str) -> Result<Option<u64>, StorageError> {
    let Some(text) = call.query(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    // The library would accept a sign.
    let is_digits = text.bytes().all(|digit| digit.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_digits);
    let refused = || StorageError::invalid_query(name, text, "");
    number.map(Some).ok_or_else(refused)
}

/// Rejects a body of a request that has none.
fn check_empty(call: &Call) -> Result<(), StorageError> {
    match call.body_length {
        Some(length) if length > 0 => Err(ErrorCode::ContentLengthMustBeZero.into()),
        _ => Ok(()),
    }
}

/// Rejects the replacement of a file by a caller that may only create: `c` of a signature permits
/// new files alone, as of new blobs. "Create a service SAS".
fn check_overwrite(may_overwrite: bool, place: &Place) -> Result<(), StorageError> {
    let file = place.blob.as_ref().filter(|old| old.directory.is_none());
    match file {
        Some(_) if !may_overwrite => Err(ErrorCode::UnauthorizedBlobOverwrite.into()),
        _ => Ok(()),
    }
}

/// Rejects an operation on a file's content for a directory, and for a page or append blob.
fn check_file(blob: &BlobRecord) -> Result<(), StorageError> {
    match blob.kind {
        _ if blob.directory.is_some() => Err(ErrorCode::PathConflict.into()),
        BlobKind::Block => Ok(()),
        BlobKind::Append | BlobKind::Page => Err(ErrorCode::InvalidBlobType.into()),
    }
}

/// Rejects the removal or the move of a path that is retained. "Container-level WORM policies": in
/// a container with a policy or a legal hold a directory must be empty.
fn check_removable(view: &dyn View, found: &Found, now: Timestamp) -> Result<(), StorageError> {
    guard::check_removable(&found.blob)?;
    // What was just created is retained longest.
    let contents = found.container.worm.protection(now, now);
    match found.blob.directory {
        Some(id) if contents.is_some() && !tree::is_empty(view, id, now)? => {
            immutability::judge(contents, Change::Removal)
        }
        _ => Ok(()),
    }
}

/// Returns the word for a kind of path.
pub fn resource_type(directory: Option<Generation>) -> &'static str {
    match directory {
        Some(_) => "directory",
        None => "file",
    }
}
