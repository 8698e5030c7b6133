//! What a generator has to know to make operations that can succeed.

use crate::Model;
use crate::blocks::Uncommitted;
use crate::content::Bytes;
use crate::deletion::Kept;
use crate::lease::Lease;
use crate::vocabulary::{BlobId, LeaseId, MessageId, Metadata, Moment, Receipt, Tag};

/// What stands somewhere, as far as a request can refer to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hint {
    /// The id of the active lease.
    pub lease: Option<LeaseId>,
    /// The id of a lease that ended by itself or was broken.
    pub lapsed: Option<LeaseId>,
    /// Whether the active lease has an end.
    pub ends: bool,
    /// Tag.
    pub tag: Option<Tag>,
    /// Last change, in seconds of the Unix epoch.
    pub modified_s: u64,
    /// Snapshots, oldest first.
    pub snapshots: Vec<Moment>,
    /// Uncommitted blocks.
    pub uncommitted: Vec<Vec<u8>>,
    /// Blocks that nobody committed within their week: they are no more.
    pub lapsed_blocks: Vec<Vec<u8>>,
    /// Committed blocks that have ids.
    pub committed: Vec<Vec<u8>>,
    /// What is there: `BlockBlob`, `AppendBlob`, `PageBlob`; empty: nothing.
    pub kind: &'static str,
    /// Length in bytes.
    pub length: u64,
    /// Sequence number of a page blob.
    pub number: u64,
    /// Whether an append blob is sealed.
    pub sealed: bool,
    /// Index tags.
    pub tags: Metadata,
    /// Whether something that was deleted can be brought back.
    pub dormant: bool,
}

/// Blocks of a name under which there is no blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// They are kept.
    Kept,
    /// Their week is over.
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

/// How a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Free,
    /// Somebody has it.
    Held,
    /// It is about to end.
    Breaking,
    /// It was broken.
    Broken,
    /// It ran out.
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
    /// What is known of a container; nothing where there is none.
    pub fn hint_of_container(&self, name: &str) -> Hint {
        let found = self.containers.get(name);
        found.map_or_else(Hint::default, |container| Hint {
            tag: Some(container.current().tag),
            modified_s: container.current().modified_s,
            ..Hint::of_lease(container.lease, self.now_s)
        })
    }

    /// What is known of a blob; nothing where there is none.
    pub fn hint_of_blob(&self, id: &BlobId) -> Hint {
        let Some(container) = self.containers.get(&id.container) else {
            return Hint::default();
        };
        let blob = container.blobs.get(&id.blob);
        let lease = blob.map_or(Lease::Available, |blob| blob.lease);
        let mut hint = Hint::of_lease(lease, self.now_s);
        if let Some(open) = container.uncommitted.get(&id.blob) {
            let blocks = open.ids().cloned().collect();
            match open.is_kept(self.now_s) {
                true => hint.uncommitted = blocks,
                false => hint.lapsed_blocks = blocks,
            }
        }
        let taken = container.snapshots.get(&id.blob);
        let dormant = |kept: &Kept| kept.is_dormant(self.now_s);
        hint.dormant = container.dormant.get(&id.blob).is_some_and(dormant)
            || taken.is_some_and(|taken| taken.values().any(dormant));
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

    /// The names of all containers.
    pub fn containers(&self) -> impl Iterator<Item = &str> {
        self.containers.keys().map(String::as_str)
    }

    /// The names of all queues.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(String::as_str)
    }

    /// Whether there is a container of this name.
    pub fn has_container(&self, name: &str) -> bool {
        self.containers.contains_key(name)
    }

    /// The type of a blob; empty: there is none.
    pub fn kind_at(&self, container: &str, blob: &str) -> &'static str {
        let container = self.containers.get(container);
        let blob = container.and_then(|container| container.blobs.get(blob));
        blob.map_or("", |blob| blob.state.content.kind())
    }

    /// Whether blocks wait under a name for a list that commits them.
    pub fn has_open_blocks(&self, container: &str, blob: &str) -> bool {
        let container = self.containers.get(container);
        let open = container.and_then(|container| container.uncommitted.get(blob));
        open.is_some_and(|open| open.is_kept(self.now_s))
    }

    /// Blocks that stand alone under a name: no blob is there.
    pub fn alone_at(&self, container: &str, blob: &str) -> Option<Alone> {
        let container = self.containers.get(container)?;
        let open = container.uncommitted.get(blob)?;
        let is_alone = !container.blobs.contains_key(blob);
        is_alone.then(|| Alone::of(open, self.now_s))
    }

    /// Whether such blocks stand somewhere in a container under names that start like this.
    pub fn has_alone(&self, container: &str, prefix: &str, alone: Alone) -> bool {
        let found = self.containers.get(container);
        let names = found.into_iter().flat_map(|found| found.uncommitted.keys());
        let mut names = names.filter(|name| name.starts_with(prefix));
        names.any(|name| self.alone_at(container, name) == Some(alone))
    }

    /// How the lease of a blob stands.
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

    /// Metadata of a queue, if it is there.
    pub fn metadata_of_queue(&self, name: &str) -> Option<&Metadata> {
        self.queues.get(name).map(|queue| &queue.metadata)
    }

    /// Whether there is a queue of this name.
    pub fn has_queue(&self, name: &str) -> bool {
        self.queues.contains_key(name)
    }

    /// The messages of a queue with the receipts that work.
    pub fn receipts(&self, queue: &str) -> Vec<(MessageId, Receipt)> {
        let messages = self.queues.get(queue).map(crate::queues::Queue::receipts);
        messages.unwrap_or_default()
    }
}
