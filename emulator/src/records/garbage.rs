//! Generations whose contents are still to be removed.

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use crate::keys::Generation;

/// What is left of a deleted container or queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GarbageRecord {
    /// Key of the record that keeps the name taken; absent when the name was free at once.
    #[serde(default)]
    pub tombstone: Option<Vec<u8>>,
    /// When that name is free.
    #[serde(default)]
    pub free_at: Timestamp,
}

/// What the records of a deleted container and of a deleted queue have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Generation.
    pub generation: Generation,
    /// When it was deleted.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
}
