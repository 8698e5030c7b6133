//! What must be there: every acknowledged operation, and the one that was not answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::property::{Flaw, Property};

/// A blob as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Its bytes.
    pub content: Content,
    /// Its one piece of metadata.
    pub mark: u64,
    /// Its ETag.
    pub etag: String,
}

/// A message as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its text.
    pub content: Content,
    /// The receipt that works.
    pub receipt: String,
    /// A receipt that worked before and must not any more.
    pub replaced: Option<String>,
    /// How often it was handed out.
    pub dequeue_count: u32,
}

/// An entity as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Its text.
    pub content: Content,
    /// The number of the operation that wrote it.
    pub mark: u64,
    /// Its ETag.
    pub etag: String,
}

/// What is done to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Insert Entity.
    Insert(Content),
    /// Update Entity, whatever its ETag.
    Replace(Content),
    /// Delete Entity, whatever its ETag.
    Delete,
}

impl Change {
    /// The text that it leaves; `None` when it leaves no entity.
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
    /// Put Blob with one piece of metadata, or two of Put Block and a Put Block List.
    PutBlob {
        /// Name.
        name: String,
        /// Bytes.
        content: Content,
        /// Metadata.
        mark: u64,
        /// Whether it goes up in two blocks.
        in_blocks: bool,
    },
    /// Set Blob Metadata.
    SetMetadata {
        /// Name.
        name: String,
        /// Metadata.
        mark: u64,
    },
    /// Delete Blob.
    DeleteBlob {
        /// Name.
        name: String,
    },
    /// Put Message.
    PutMessage {
        /// Text.
        content: Content,
    },
    /// Update Message with a new text, visible at once.
    UpdateMessage {
        /// Id.
        id: String,
        /// Text.
        content: Content,
    },
    /// Delete Message.
    DeleteMessage {
        /// Id.
        id: String,
    },
    /// Get Messages.
    GetMessages,
    /// A change of one entity, or an entity group transaction of several.
    ChangeEntities {
        /// Row keys, none of them twice, and what is done to each.
        changes: Vec<(String, Change)>,
        /// What every entity that is written carries.
        mark: u64,
    },
    /// Lease Container, for a minute, by an id of the client's.
    AcquireLease {
        /// Id.
        id: String,
    },
    /// Lease Container: released.
    ReleaseLease {
        /// Id.
        id: String,
    },
}

/// What an acknowledgement said, as far as anybody can use it later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// ETag of what was written.
    pub etag: String,
    /// ETags of the entities that were written, in the order of the changes; a deletion's is empty.
    pub etags: Vec<String>,
    /// Id of the message that was put.
    pub id: String,
    /// Its receipt, or the new one.
    pub receipt: String,
    /// Ids and receipts of the messages that were taken.
    pub taken: Vec<(String, String)>,
}

/// What one connection expects of its container, its queue and its table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Model {
    /// Blobs by name.
    pub blobs: BTreeMap<String, Blob>,
    /// Messages by id.
    pub messages: BTreeMap<String, Message>,
    /// Entities by row key.
    pub entities: BTreeMap<String, Entity>,
    /// The lease on the container.
    pub lease: Option<String>,
    /// The operation that was sent and not answered.
    pub pending: Option<Op>,
    /// Get Messages that were refused and may have taken messages.
    pub uncertain_gets: u32,
}

impl Model {
    /// Whether the unanswered operation may have touched this message.
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

    /// Notes that an operation was acknowledged; the flaws that its answer shows.
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

    /// The whole of a transaction.
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

/// Values that the service must never give twice, over the whole run.
#[derive(Clone, Debug, Default)]
pub struct Unique(Arc<Mutex<BTreeSet<String>>>);

impl Unique {
    /// Notes a receipt: those of two messages may be alike, those of one never.
    pub fn note_receipt(&self, id: &str, receipt: &str) -> Option<Flaw> {
        self.note("receipt of", &format!("{id} {receipt}"))
    }

    /// Notes the ETags of one operation: entities that were written together may share theirs.
    fn note_etags(&self, changes: &[(String, Change)], etags: &[String]) -> Vec<Flaw> {
        let written = changes.iter().zip(etags);
        let written = written.filter(|((_, change), _)| change.content().is_some());
        let distinct: BTreeSet<&String> = written.map(|(_, etag)| etag).collect();
        let notes = distinct.into_iter().map(|etag| self.note("ETag", etag));
        notes.flatten().collect()
    }

    /// Notes a value; a flaw when it was given before.
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
