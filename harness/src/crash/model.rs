//! The expected contents of the store: every acknowledged operation, and the unanswered one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::property::{Flaw, Property};

/// A blob as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Content of the blob.
    pub content: Content,
    /// Value of its one metadata entry.
    pub mark: u64,
    /// ETag of the blob.
    pub etag: String,
}

/// A message as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Text of the message.
    pub content: Content,
    /// The valid pop receipt.
    pub receipt: String,
    /// An earlier pop receipt that must not work any more.
    pub replaced: Option<String>,
    /// Number of times that the message was taken.
    pub dequeue_count: u32,
}

/// An entity as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Text of the entity.
    pub content: Content,
    /// Number of the operation that wrote it.
    pub mark: u64,
    /// ETag of the entity.
    pub etag: String,
}

/// A change of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Insert Entity.
    Insert(Content),
    /// Update Entity, for any ETag.
    Replace(Content),
    /// Delete Entity, for any ETag.
    Delete,
}

impl Change {
    /// Returns the text after the change; `None` when it deletes the entity.
    pub fn content(self) -> Option<Content> {
        match self {
            Change::Insert(content) | Change::Replace(content) => Some(content),
            Change::Delete => None,
        }
    }
}

/// An operation of one connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Put Blob with one metadata entry, or two of Put Block and a Put Block List.
    PutBlob {
        /// Name of the blob.
        name: String,
        /// Content of the blob.
        content: Content,
        /// Value of the metadata entry.
        mark: u64,
        /// Whether the content is uploaded in two blocks.
        in_blocks: bool,
    },
    /// Set Blob Metadata.
    SetMetadata {
        /// Name of the blob.
        name: String,
        /// Value of the metadata entry.
        mark: u64,
    },
    /// Delete Blob.
    DeleteBlob {
        /// Name of the blob.
        name: String,
    },
    /// Put Message.
    PutMessage {
        /// Text of the message.
        content: Content,
    },
    /// Update Message with a new text, visible at once.
    UpdateMessage {
        /// Message id.
        id: String,
        /// New text.
        content: Content,
    },
    /// Delete Message.
    DeleteMessage {
        /// Message id.
        id: String,
    },
    /// Get Messages.
    GetMessages,
    /// A change of one entity, or an entity group transaction of several.
    ChangeEntities {
        /// Different row keys, and the change of each.
        changes: Vec<(String, Change)>,
        /// Mark of every entity that is written.
        mark: u64,
    },
    /// Lease Container, for a minute, with an id that the client chooses.
    AcquireLease {
        /// Lease id.
        id: String,
    },
    /// Lease Container, action release.
    ReleaseLease {
        /// Lease id.
        id: String,
    },
}

/// The values of an acknowledgement that later operations need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// ETag of what was written.
    pub etag: String,
    /// ETags of the entities that were written, in the order of the changes; empty for a deletion.
    pub etags: Vec<String>,
    /// Id of the message that was put.
    pub id: String,
    /// Pop receipt of the message that was put or updated.
    pub receipt: String,
    /// Ids and pop receipts of the messages that were taken.
    pub taken: Vec<(String, String)>,
}

/// The expected contents of one connection's container, queue and table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Model {
    /// Blobs by name.
    pub blobs: BTreeMap<String, Blob>,
    /// Messages by id.
    pub messages: BTreeMap<String, Message>,
    /// Entities by row key.
    pub entities: BTreeMap<String, Entity>,
    /// Id of the lease on the container.
    pub lease: Option<String>,
    /// The operation that was sent and not answered.
    pub pending: Option<Op>,
    /// Number of Get Messages that failed and may have taken messages.
    pub uncertain_gets: u32,
}

impl Model {
    /// Whether the unanswered operation may have changed this message.
    pub fn is_uncertain(&self, message: &str) -> bool {
        if self.uncertain_gets > 0 {
            return true;
        }
        match &self.pending {
            Some(Op::UpdateMessage { id, .. } | Op::DeleteMessage { id }) => id == message,
            Some(Op::GetMessages) => true,
            _ => false,
        }
    }

    /// Applies an acknowledged operation. Returns the flaws in its answer.
    pub fn acknowledge(&mut self, op: Op, outcome: Outcome, unique: &Unique) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        match op {
            Op::PutBlob {
                name,
                content,
                mark,
                ..
            } => {
                flaws.extend(unique.note("ETag", &outcome.etag));
                let blob = Blob {
                    content,
                    mark,
                    etag: outcome.etag,
                };
                self.blobs.insert(name, blob);
            }
            Op::SetMetadata { name, mark } => {
                flaws.extend(unique.note("ETag", &outcome.etag));
                if let Some(blob) = self.blobs.get_mut(&name) {
                    (blob.mark, blob.etag) = (mark, outcome.etag);
                }
            }
            Op::DeleteBlob { name } => drop(self.blobs.remove(&name)),
            Op::ChangeEntities { changes, mark } => {
                flaws.extend(unique.note_etags(&changes, &outcome.etags));
                self.change_entities(changes, mark, outcome.etags);
            }
            Op::AcquireLease { id } => self.lease = Some(id),
            Op::ReleaseLease { .. } => self.lease = None,
            op => self.acknowledge_on_queue(op, outcome, unique, &mut flaws),
        }
        self.pending = None;
        flaws
    }

    /// Applies a complete transaction.
    fn change_entities(&mut self, changes: Vec<(String, Change)>, mark: u64, etags: Vec<String>) {
        for ((row, change), etag) in changes.into_iter().zip(etags) {
            match change.content() {
                Some(content) => drop(self.entities.insert(
                    row,
                    Entity {
                        content,
                        mark,
                        etag,
                    },
                )),
                None => drop(self.entities.remove(&row)),
            }
        }
    }

    fn acknowledge_on_queue(
        &mut self,
        op: Op,
        outcome: Outcome,
        unique: &Unique,
        flaws: &mut Vec<Flaw>,
    ) {
        match op {
            Op::PutMessage { content } => {
                flaws.extend(unique.note("message id", &outcome.id));
                flaws.extend(unique.note_receipt(&outcome.id, &outcome.receipt));
                let message = Message {
                    content,
                    receipt: outcome.receipt,
                    replaced: None,
                    dequeue_count: 0,
                };
                self.messages.insert(outcome.id, message);
            }
            Op::UpdateMessage { id, content } => {
                flaws.extend(unique.note_receipt(&id, &outcome.receipt));
                if let Some(message) = self.messages.get_mut(&id) {
                    let old = std::mem::replace(&mut message.receipt, outcome.receipt);
                    message.replaced = Some(old);
                    message.content = content;
                }
            }
            Op::DeleteMessage { id } => drop(self.messages.remove(&id)),
            _ => {
                for (id, receipt) in outcome.taken {
                    flaws.extend(unique.note_receipt(&id, &receipt));
                    let Some(message) = self.messages.get_mut(&id) else {
                        let text = format!("message {id} was deleted or never put");
                        flaws.push(Flaw::new(Property::C1, text));
                        continue;
                    };
                    message.replaced = Some(std::mem::replace(&mut message.receipt, receipt));
                    message.dequeue_count += 1;
                }
            }
        }
    }
}

/// Values that the service must never give twice in a run.
#[derive(Clone, Debug, Default)]
pub struct Unique(Arc<Mutex<BTreeSet<String>>>);

impl Unique {
    /// Records a pop receipt: those of two messages may be equal, those of one may not.
    pub fn note_receipt(&self, id: &str, receipt: &str) -> Option<Flaw> {
        self.note("receipt of", &format!("{id} {receipt}"))
    }

    /// Records the ETags of one operation: entities that were written together may share one.
    fn note_etags(&self, changes: &[(String, Change)], etags: &[String]) -> Vec<Flaw> {
        let written = changes.iter().zip(etags);
        let written = written.filter(|((_, change), _)| change.content().is_some());
        let distinct: BTreeSet<&String> = written.map(|(_, etag)| etag).collect();
        let notes = distinct.into_iter().map(|etag| self.note("ETag", etag));
        notes.flatten().collect()
    }

    /// Records a value. Returns a flaw when it was given before.
    pub fn note(&self, what: &str, value: &str) -> Option<Flaw> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !value.is_empty() && seen.insert(format!("{what} {value}"));
        (!is_new).then(|| Flaw::new(Property::C4, format!("{what} {value:?} was given twice")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_given_twice_is_a_flaw() {
        let unique = Unique::default();
        assert_eq!(unique.note("ETag", "1"), None);
        assert_eq!(unique.note("id", "1"), None);
        assert!(unique.clone().note("ETag", "1").is_some());
        assert!(unique.note("ETag", "").is_some());
    }

    #[test]
    fn an_unanswered_get_makes_every_receipt_uncertain() {
        let mut model = Model::default();
        assert!(!model.is_uncertain("a"));
        model.pending = Some(Op::GetMessages);
        assert!(model.is_uncertain("a"));
        model.pending = Some(Op::DeleteMessage { id: "b".to_owned() });
        assert!(!model.is_uncertain("a") && model.is_uncertain("b"));
    }

    #[test]
    fn entities_that_were_written_together_may_share_an_etag() {
        let (mut model, unique) = (Model::default(), Unique::default());
        let content = Content { seed: 1, length: 1 };
        let mut write = |change: Change, etag: &str| {
            let rows = ["a", "b", "c"].map(str::to_owned);
            let changes = rows.into_iter().map(|row| (row, change)).collect();
            let outcome = Outcome {
                etags: vec![etag.to_owned(); 3],
                ..Outcome::default()
            };
            let flaws =
                model.acknowledge(Op::ChangeEntities { changes, mark: 1 }, outcome, &unique);
            (flaws.len(), model.entities.len())
        };
        assert_eq!(write(Change::Insert(content), "1"), (0, 3));
        assert_eq!(write(Change::Replace(content), "2"), (0, 3));
        assert_eq!(write(Change::Replace(content), "1"), (1, 3));
        assert_eq!(write(Change::Delete, ""), (0, 0));
    }
}
