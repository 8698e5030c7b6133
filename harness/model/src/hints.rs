//! Hints for generators, so that they can make operations that succeed.

use crate::content::Bytes;
use crate::lease::Lease;
use crate::state::{Kept, Model, Queue, Uncommitted};
use crate::tiers::Tiered;
use crate::vocabulary::{BlobId, LeaseId, MessageId, Metadata, Moment, Receipt, Tag};

/// The state of a resource, as far as a request can refer to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hint {
    /// The id of the active lease.
    pub lease: Option<LeaseId>,
    /// The id of a lease that expired or was broken.
    pub lapsed: Option<LeaseId>,
    /// Whether the active lease has a fixed duration.
    pub ends: bool,
    /// The current ETag.
    pub tag: Option<Tag>,
    /// Last modification, in seconds of the Unix epoch.
    pub modified_s: u64,
    /// Snapshots, oldest first.
    pub snapshots: Vec<Moment>,
    /// Ids of the uncommitted blocks.
    pub uncommitted: Vec<Vec<u8>>,
    /// Ids of blocks that were not committed within a week and are gone.
    pub lapsed_blocks: Vec<Vec<u8>>,
    /// Ids of the committed blocks that have one.
    pub committed: Vec<Vec<u8>>,
    /// The blob type: `BlockBlob`, `AppendBlob`, `PageBlob`, or empty without a blob.
    pub kind: &'static str,
    /// Length in bytes.
    pub length: u64,
    /// Sequence number of a page blob.
    pub number: u64,
    /// Whether an append blob is sealed.
    pub sealed: bool,
    /// Index tags.
    pub tags: Metadata,
}

/// The state of uncommitted blocks whose blob does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// The blocks are kept.
    Kept,
    /// A week has passed, so the blocks are gone.
    Lapsed,
}

impl Alone {
    fn of(open: &Uncommitted, now_s: u64) -> Self {
        match open.is_kept(now_s) {
            true => Alone::Kept,
            false => Alone::Lapsed,
        }
    }
}

/// The state of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no lease.
    Free,
    /// The lease is active.
    Held,
    /// The lease is breaking.
    Breaking,
    /// The lease was broken.
    Broken,
    /// The lease expired.
    Expired,
}

impl Hint {
    fn of_lease(lease: Lease, now_s: u64) -> Self {
        let mut hint = Hint::default();
        match lease.at(now_s) {
            Lease::Leased { id, term } => {
                hint.lease = Some(id);
                hint.ends = term.is_some();
            }
            Lease::Breaking { id, .. } => hint.lease = Some(id),
            Lease::Broken(id) | Lease::Expired(id, _) => hint.lapsed = Some(id),
            Lease::Available => {}
        }
        hint
    }
}

impl Model {
    /// Returns the hint of a container; an empty one if it does not exist.
    pub fn hint_of_container(&self, name: &str) -> Hint {
        let found = self.containers.get(name);
        found.map_or_else(Hint::default, |container| Hint {
            tag: Some(container.current().tag),
            modified_s: container.current().modified_s,
            ..Hint::of_lease(container.lease, self.now_s)
        })
    }

    /// Returns the hint of a blob; an empty one if it does not exist.
    pub fn hint_of_blob(&self, id: &BlobId) -> Hint {
        let Some(container) = self.containers.get(&id.container) else {
            return Hint::default();
        };
        let blob = container.blobs.get(&id.blob);
        let lease = blob.map_or(Lease::Available, |blob| blob.lease);
        let mut hint = Hint::of_lease(lease, self.now_s);
        if let Some(open) = container.uncommitted.get(&id.blob) {
            let blocks = open.blocks.keys().cloned().collect();
            match open.is_kept(self.now_s) {
                true => hint.uncommitted = blocks,
                false => hint.lapsed_blocks = blocks,
            }
        }
        let taken = container.snapshots.get(&id.blob);
        let living = taken
            .into_iter()
            .flatten()
            .filter(|(_, kept)| kept.is_living());
        hint.snapshots = living.map(|(moment, _)| *moment).collect();
        let Some(blob) = blob else { return hint };
        hint.tag = Some(blob.state.tag);
        hint.modified_s = blob.state.modified_s;
        hint.kind = blob.state.content.kind();
        hint.length = blob.state.content.length();
        hint.tags.clone_from(&blob.state.tags);
        match &blob.state.content {
            Bytes::Blocks(blocks) => {
                hint.committed = blocks.iter().filter_map(|(id, _)| id.clone()).collect();
            }
            Bytes::Appended { sealed, .. } => hint.sealed = *sealed,
            Bytes::Pages { number, .. } => hint.number = *number,
        }
        hint
    }

    /// Returns the names of all containers.
    pub fn containers(&self) -> impl Iterator<Item = &str> {
        self.containers.keys().map(String::as_str)
    }

    /// Returns the names of all queues.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(String::as_str)
    }

    /// Returns whether the container exists.
    pub fn has_container(&self, name: &str) -> bool {
        self.containers.contains_key(name)
    }

    /// Returns the type of a blob; empty if it does not exist.
    pub fn kind_at(&self, container: &str, blob: &str) -> &'static str {
        let container = self.containers.get(container);
        let blob = container.and_then(|container| container.blobs.get(blob));
        blob.map_or("", |blob| blob.state.content.kind())
    }

    /// Returns whether a path is a file; `None` if it does not exist.
    pub fn is_file_at(&self, container: &str, path: &str) -> Option<bool> {
        let blob = self.containers.get(container)?.blobs.get(path)?;
        Some(!blob.state.is_directory)
    }

    /// Returns where the bytes of a file end, with those that wait for a flush.
    pub fn end_of(&self, id: &BlobId) -> u64 {
        let mut end = self.hint_of_blob(id).length;
        let container = self.containers.get(&id.container);
        let open = container.and_then(|container| container.uncommitted.get(&id.blob));
        let open = open.filter(|open| open.is_kept(self.now_s));
        for (at, bytes) in open.into_iter().flat_map(|open| &open.blocks) {
            if *at == end.to_be_bytes() {
                end += bytes.len() as u64;
            }
        }
        end
    }

    /// Returns the tier of a blob; `None` without a blob.
    pub fn tier_at(&self, id: &BlobId) -> Option<Tiered> {
        let blob = self.containers.get(&id.container)?.blobs.get(&id.blob)?;
        Some(blob.state.tier.at(self.now_s))
    }

    /// Returns whether something deleted under a name can be undeleted.
    pub fn is_dormant(&self, container: &str, blob: &str) -> bool {
        let Some(container) = self.containers.get(container) else {
            return false;
        };
        let mut taken = container.snapshots.get(blob).into_iter().flatten();
        let is_dormant = |kept: &Kept| kept.is_dormant(self.now_s);
        container.dormant.get(blob).is_some_and(is_dormant)
            || taken.any(|(_, kept)| is_dormant(kept))
    }

    /// Returns whether uncommitted blocks are kept under a name.
    pub fn has_open_blocks(&self, container: &str, blob: &str) -> bool {
        let container = self.containers.get(container);
        let open = container.and_then(|container| container.uncommitted.get(blob));
        open.is_some_and(|open| open.is_kept(self.now_s))
    }

    /// Returns the state of uncommitted blocks under a name, if there is no blob.
    pub fn alone_at(&self, container: &str, blob: &str) -> Option<Alone> {
        let container = self.containers.get(container)?;
        let open = container.uncommitted.get(blob)?;
        let is_alone = !container.blobs.contains_key(blob);
        is_alone.then(|| Alone::of(open, self.now_s))
    }

    /// Returns whether a container has such blocks under a name with this prefix.
    pub fn has_alone(&self, container: &str, prefix: &str, alone: Alone) -> bool {
        let found = self.containers.get(container);
        let names = found.into_iter().flat_map(|found| found.uncommitted.keys());
        let mut names = names.filter(|name| name.starts_with(prefix));
        names.any(|name| self.alone_at(container, name) == Some(alone))
    }

    /// Returns the state of a blob's lease.
    pub fn lease_at(&self, container: &str, blob: &str) -> Standing {
        let container = self.containers.get(container);
        let blob = container.and_then(|container| container.blobs.get(blob));
        let lease = blob.map_or(Lease::Available, |blob| blob.lease);
        match lease.at(self.now_s) {
            Lease::Available => Standing::Free,
            Lease::Leased { .. } => Standing::Held,
            Lease::Breaking { .. } => Standing::Breaking,
            Lease::Broken(_) => Standing::Broken,
            Lease::Expired(..) => Standing::Expired,
        }
    }

    /// Returns the metadata of a queue, if it exists.
    pub fn metadata_of_queue(&self, name: &str) -> Option<&Metadata> {
        self.queues.get(name).map(|queue| &queue.metadata)
    }

    /// Returns whether the queue exists.
    pub fn has_queue(&self, name: &str) -> bool {
        self.queues.contains_key(name)
    }

    /// Returns the messages of a queue with their valid pop receipts.
    pub fn receipts(&self, queue: &str) -> Vec<(MessageId, Receipt)> {
        let messages = self.queues.get(queue).map(Queue::receipts);
        messages.unwrap_or_default()
    }
}
