//! Path - Get Properties: properties, status or access control of a path.
//!
//! Source: "Path - Get Properties".
//!
//! ```http
//! HEAD /devstoreaccount1/lake/2026?action=getAccessControl
//!
//! 200 OK
//! x-ms-owner: $superuser
//! x-ms-permissions: rwxr-x---
//! x-ms-acl: user::rwx,group::r-x,other::---
//! ```

use smalt_protocol::{ETag, StorageError, Timestamp};

use super::{Path, Target, flag, resource_type, root_etag};
use crate::body;
use crate::call::Call;
use crate::keys::Generation;
use crate::operation::Read;
use crate::ops::blob::guard::Guard;
use crate::ops::blob::headers;
use crate::ops::blob::properties::{self, Shown};
use crate::records::BlobRecord;
use crate::reply::{Content, Reply};
use crate::rules::acl::{FS_ACTION, Posix};
use crate::rules::encryption::Requested;
use crate::store::{Store, View};

/// The Path - Get Properties operation.
pub struct GetPathStatus {
    path: Path,
    guard: Guard,
    encryption: Requested,
    shows: Shows,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Properties,
    Status,
    AccessControl,
    Nothing,
}

/// What the path is.
pub struct Seen {
    etag: ETag,
    last_modified: Timestamp,
    directory: Option<Generation>,
    posix: Posix,
    blob: Option<Box<BlobRecord>>,
}

impl Read for GetPathStatus {
    type Output = Seen;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const ACTION: &str = "action";
        let action = call.query(ACTION).unwrap_or_default();
        let shows = match action.to_ascii_lowercase().as_str() {
            "" => Shows::Properties,
            "getstatus" => Shows::Status,
            "getaccesscontrol" => Shows::AccessControl,
            "checkaccess" => Shows::Nothing,
            _ => return Err(StorageError::invalid_query(ACTION, action, "")),
        };
        // The user's permissions are checked before: see `auth/needs.rs`.
        if shows == Shows::Nothing && call.query(FS_ACTION).is_none() {
            return Err(StorageError::missing_query(FS_ACTION));
        }
        flag(call, "upn")?;
        Ok(GetPathStatus {
            path: Path::of(call)?,
            guard: Guard::of_read(call)?,
            encryption: headers::encryption(call)?,
            shows,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Seen, StorageError> {
        Ok(match self.path.find(view, now)? {
            Target::Root(container) => Seen {
                etag: root_etag(&container),
                last_modified: container.last_modified,
                directory: Some(container.generation),
                posix: container.posix(),
                blob: None,
            },
            Target::Entry(found) => {
                let blob = found.blob;
                self.guard.check_read(&blob, true)?;
                if self.shows == Shows::Properties {
                    self.encryption.check_read(blob.encryption.as_ref())?;
                }
                Seen {
                    etag: blob.etag,
                    last_modified: blob.last_modified,
                    directory: blob.directory,
                    posix: blob.posix(),
                    blob: Some(Box::new(blob)),
                }
            }
        })
    }

    fn render(self, seen: Seen, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let posix = &seen.posix;
        let owned = |reply: Reply| {
            reply
                .header("x-ms-owner", &posix.owner)
                .header("x-ms-group", &posix.group)
                .header("x-ms-permissions", posix.permissions())
        };
        // Recorded: without a length.
        let empty = || Content::Chunked(body::empty());
        let reply = Reply::new(200).version(seen.etag, seen.last_modified);
        let reply = reply.content(empty());
        let kind = resource_type(seen.directory);
        Ok(match (self.shows, seen.blob) {
            (Shows::Nothing, _) => Reply::new(200).content(empty()),
            (Shows::AccessControl, _) => owned(reply).header("x-ms-acl", posix.acl_text()),
            (Shows::Properties | Shows::Status, Some(blob)) => {
                let mut reply = as_path(describe(200, &blob, call), &blob);
                // "Returns all system defined properties": not those of the user.
                if self.shows == Shows::Status {
                    reply.headers.remove("x-ms-properties");
                }
                reply.content(Content::Length(blob.length))
            }
            (_, _) => owned(reply).header("x-ms-resource-type", kind),
        })
    }
}

/// Returns a reply with the headers that describe a file or directory.
fn describe(status: u16, blob: &BlobRecord, call: &Call) -> Reply {
    let shown = Shown {
        version: call.version,
        is_base: true,
        is_partial: false,
        with_tier: true,
        now: call.arrival,
        with_access: call.settings.last_access_tracking,
        default_tier: call.settings.default_tier,
    };
    properties::describe(status, blob, shown)
}

/// Replaces the headers of the Blob service by those of the Data Lake interface.
pub fn as_path(mut reply: Reply, blob: &BlobRecord) -> Reply {
    let names: Vec<_> = reply.headers.keys().cloned().collect();
    for name in names {
        let text = name.as_str();
        if text.starts_with("x-ms-meta-") || text == "x-ms-blob-type" {
            reply.headers.remove(name);
        }
    }
    let posix = blob.posix();
    reply
        .header("x-ms-resource-type", resource_type(blob.directory))
        .header("x-ms-owner", posix.owner.clone())
        .header("x-ms-group", posix.group.clone())
        .header("x-ms-permissions", posix.permissions())
        .header("x-ms-properties", blob.metadata.properties())
}
