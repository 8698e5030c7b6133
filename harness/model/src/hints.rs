//! What a generator has to know to make operations that can succeed.

use crate::Model;
use crate::lease::Lease;
use crate::vocabulary::{BlobId, LeaseId, MessageId, Moment, Receipt, Tag};

/// What stands somewhere, as far as a request can refer to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hint {
    /// The id of the active lease.
    pub lease: Option<LeaseId>,
    /// Tag.
    pub tag: Option<Tag>,
    /// Snapshots, oldest first.
    pub snapshots: Vec<Moment>,
    /// Uncommitted blocks.
    pub uncommitted: Vec<Vec<u8>>,
    /// Committed blocks that have ids.
    pub committed: Vec<Vec<u8>>,
}

fn active(lease: Lease, now_s: u64) -> Option<LeaseId> {
    match lease.at(now_s) {
        Lease::Leased { id, .. } | Lease::Breaking { id, .. } => Some(id),
        _ => None,
    }
}

impl Model {
    /// What is known of a container; nothing where there is none.
    pub fn hint_of_container(&self, name: &str) -> Hint {
        let found = self.containers.get(name);
        found.map_or_else(Hint::default, |container| Hint {
            lease: active(container.lease, self.now_s),
            tag: Some(container.current().tag),
            ..Hint::default()
        })
    }

    /// What is known of a blob; nothing where there is none.
    pub fn hint_of_blob(&self, id: &BlobId) -> Hint {
        let Some(container) = self.containers.get(&id.container) else {
            return Hint::default();
        };
        let open = container.uncommitted.get(&id.blob);
        let uncommitted = open.map(|open| open.ids().cloned().collect());
        let Some(blob) = container.blobs.get(&id.blob) else {
            return Hint {
                uncommitted: uncommitted.unwrap_or_default(),
                ..Hint::default()
            };
        };
        let ids = blob.state.blocks.iter().filter_map(|(id, _)| id.clone());
        Hint {
            lease: active(blob.lease, self.now_s),
            tag: Some(blob.state.tag),
            snapshots: blob.snapshots.keys().copied().collect(),
            uncommitted: uncommitted.unwrap_or_default(),
            committed: ids.collect(),
        }
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
