//! The state of an account.

use std::collections::BTreeMap;
use std::sync::Arc;

use smalt_protocol::Service;

use crate::content::Bytes;
use crate::lease::Lease;
use crate::tables::Tables;
use crate::tiers::Tiered;
use crate::vocabulary::{
    ContentHeaders, MessageId, Metadata, Moment, Numbers, Receipt, Tag, Terms,
};

/// A storage account with its blob, queue and table service.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(crate) now_s: u64,
    /// Whether paths have directories.
    pub(crate) hierarchical: bool,
    pub(crate) numbers: Numbers,
    pub(crate) containers: BTreeMap<String, Container>,
    pub(crate) queues: BTreeMap<String, Queue>,
    pub(crate) tables: Tables,
    /// Stored access policies of containers, queues and tables that exist.
    pub(crate) policies: BTreeMap<(Service, String), Terms>,
    /// Days that deleted blobs are kept; `None` without soft delete.
    pub(crate) retention_days: Option<u64>,
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Container {
    pub(crate) tag: Tag,
    pub(crate) modified_s: u64,
    pub(crate) metadata: Metadata,
    pub(crate) lease: Lease,
    /// Blobs by name.
    pub(crate) blobs: BTreeMap<String, Blob>,
    /// Uncommitted blocks by name of their blob, which need not exist.
    pub(crate) uncommitted: BTreeMap<String, Uncommitted>,
    /// Snapshots by name of their blob, including deleted ones.
    pub(crate) snapshots: BTreeMap<String, Taken>,
    /// Deleted blobs by name.
    pub(crate) dormant: BTreeMap<String, Kept>,
}

/// A blob. Its snapshots are stored separately in the container.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Blob {
    pub(crate) state: State,
    pub(crate) lease: Lease,
}

/// The state of a blob or a snapshot.
#[derive(Clone, Debug, Hash)]
pub(crate) struct State {
    pub(crate) tag: Tag,
    pub(crate) is_directory: bool,
    /// When the file expires, in seconds of the Unix epoch; `None` for never.
    pub(crate) expires_s: Option<u64>,
    /// Last modification, in seconds of the Unix epoch.
    pub(crate) modified_s: u64,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Metadata,
    pub(crate) headers: ContentHeaders,
    /// Whether a copy created it and no later write cleared the copy properties.
    pub(crate) copied: bool,
    pub(crate) tier: Tiered,
    pub(crate) content: Bytes,
}

/// Uncommitted blocks of one blob.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Uncommitted {
    pub(crate) touched_s: u64,
    pub(crate) blocks: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Snapshots of one name, oldest first.
pub(crate) type Taken = BTreeMap<Moment, Kept>;

/// A snapshot, or a deleted blob.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Kept {
    pub(crate) state: State,
    /// Until when it can be undeleted, in seconds of the Unix epoch; `None` if it is not deleted.
    pub(crate) until_s: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) metadata: Metadata,
    pub(crate) messages: BTreeMap<MessageId, Message>,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) text: Arc<str>,
    pub(crate) receipt: Receipt,
    pub(crate) dequeue_count: u32,
    pub(crate) inserted_s: u64,
    pub(crate) expires_s: Option<u64>,
    pub(crate) visible_s: u64,
    /// Position in the order of Put Message.
    pub(crate) sequence: u64,
    /// Position among messages that become visible at the same time. The service promises no order;
    /// smalt keeps the order of Put Message, and an update counts as one.
    pub(crate) place: u64,
}
