//! Records of generations whose contents are still to be deleted.

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use crate::keys::Generation;

/// The generation of a deleted container or queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GarbageRecord {
    /// Key of the record that reserves the name; `None` if the name was free at once.
    #[serde(default)]
    pub tombstone: Option<Vec<u8>>,
    /// When the name is free again.
    #[serde(default)]
    pub free_at: Timestamp,
}

/// The fields that a deleted container's record and a deleted queue's record share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Key prefix of the contents.
    pub generation: Generation,
    /// Time of the deletion.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
}
