//! Containers.
//!
//! Their contents stand under the generation, not under the name: see `keys`.

use serde::{Deserialize, Serialize};
use smalt_protocol::xml::SignedIdentifier;
use smalt_protocol::{ETag, Metadata, Timestamp};

use super::is_default;
use crate::keys::Generation;
use crate::rules::lease::LeaseState;
use crate::store::Stamp;

/// A container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// What its contents are keyed by.
    pub generation: Generation,
    /// Tag of the last change of the container itself.
    pub etag: ETag,
    /// Last change of the container itself.
    pub last_modified: Timestamp,
    /// User metadata.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Metadata,
    /// Who may read without credentials.
    #[serde(default, skip_serializing_if = "is_default")]
    pub public_access: PublicAccess,
    /// Stored access policies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policies: Vec<SignedIdentifier>,
    /// Lease.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lease: LeaseState,
    /// Set when it was deleted and its name is not free yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted_at: Option<Timestamp>,
    /// How long a deleted container can be restored, in days.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retention_days: Option<u32>,
    /// Default encryption scope, and whether requests may name another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encryption_scope: Option<(String, bool)>,
}

impl ContainerRecord {
    /// Gives the container the tag and time of a change of its own.
    pub fn touch(&mut self, stamp: &Stamp) {
        self.etag = stamp.etag();
        self.last_modified = stamp.now;
    }
}

/// Public access to a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicAccess {
    /// None.
    #[default]
    Private,
    /// Blobs can be read.
    Blob,
    /// Blobs can be read and listed.
    Container,
}
