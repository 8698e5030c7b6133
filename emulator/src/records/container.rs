//! Records of containers.
//!
//! The contents are stored under the generation, not under the name: see `keys`.

use serde::{Deserialize, Serialize};
use smalt_protocol::xml::SignedIdentifier;
use smalt_protocol::{ETag, Metadata, Timestamp};

use super::is_default;
use crate::keys::Generation;
use crate::rules::acl::{self, Posix};
use crate::rules::lease::LeaseState;
use crate::store::Stamp;

/// A container, possibly a deleted one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// Key prefix of the contents.
    pub generation: Generation,
    /// `ETag` of the last change to the container itself.
    pub etag: ETag,
    /// Time of the last change to the container itself.
    pub last_modified: Timestamp,
    /// Metadata set by the client.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Metadata,
    /// What anonymous callers may read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub public_access: PublicAccess,
    /// Stored access policies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policies: Vec<SignedIdentifier>,
    /// State of the lease.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lease: LeaseState,
    /// Time of the deletion, while the name is not free yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted_at: Option<Timestamp>,
    /// Retention of a deleted container in days; `None` if it cannot be restored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retention_days: Option<u32>,
    /// Default encryption scope, and whether it denies requests that name another one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encryption_scope: Option<(String, bool)>,
    /// Owner, group and permissions of the root directory; `None` for the usual ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub posix: Option<Box<Posix>>,
}

impl ContainerRecord {
    /// Returns owner, group and permissions of the root directory.
    pub fn posix(&self) -> Posix {
        let usual = || Posix::of_new(true, None, acl::UMASK_DEFAULT, None);
        self.posix.as_deref().cloned().unwrap_or_else(usual)
    }

    /// Sets the `ETag` and time of a change to the container itself.
    pub fn touch(&mut self, stamp: &Stamp) {
        self.etag = stamp.etag();
        self.last_modified = stamp.now;
    }
}

/// Public access to a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicAccess {
    /// No public access.
    #[default]
    Private,
    /// Anonymous callers may read blobs.
    Blob,
    /// Anonymous callers may read and list blobs.
    Container,
}
