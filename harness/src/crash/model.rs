//! The expected contents of the store: every acknowledged operation, and the unanswered one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::property::{Flaw, Property};

/// A blob or an entity as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Content of the blob, or text of the entity.
    pub content: Content,
    /// Value of the blob's one metadata entry, or number of the operation that wrote the entity.
    pub mark: u64,
    /// ETag.
    pub etag: String,
}

/// A kind of [`Item`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Blobs, by name.
    #[default]
    Blob,
    /// Entities, by row key.
    Entity,
}

impl Kind {
    /// Returns the bytes that a read of this content shows.
    pub fn bytes(self, content: Content) -> Vec<u8> {
        match self {
            Kind::Blob => content.bytes(),
            Kind::Entity => content.text().into_bytes(),
        }
    }
}

/// Content and mark of an item after an operation; `None` when it is deleted.
pub type Effect = Option<(Content, u64)>;

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
    /// Rename of a directory of a hierarchical container, with everything in it.
    Rename {
        /// Name of the directory.
        from: String,
        /// Its new name.
        to: String,
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

impl Op {
    /// Returns the items of this kind that the operation changes in this state.
    pub fn effects(&self, kind: Kind, before: &Model) -> Vec<(String, Effect)> {
        match (kind, self) {
            (
                Kind::Blob,
                Op::PutBlob {
                    name,
                    content,
                    mark,
                    ..
                },
            ) => vec![(name.clone(), Some((*content, *mark)))],
            (Kind::Blob, Op::SetMetadata { name, mark }) => {
                let blob = before.blobs.get(name).into_iter();
                blob.map(|blob| (name.clone(), Some((blob.content, *mark))))
                    .collect()
            }
            (Kind::Blob, Op::DeleteBlob { name }) => vec![(name.clone(), None)],
            (Kind::Blob, Op::Rename { from, to }) => {
                let moved = before.blobs.iter().filter_map(|(name, blob)| {
                    let new = renamed(name, from, to)?;
                    Some([(name.clone(), None), (new, Some((blob.content, blob.mark)))])
                });
                moved.flatten().collect()
            }
            (Kind::Entity, Op::ChangeEntities { changes, mark }) => {
                let effect = |change: Change| change.content().map(|content| (content, *mark));
                let changes = changes.iter();
                changes
                    .map(|(row, change)| (row.clone(), effect(*change)))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
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
    pub blobs: BTreeMap<String, Item>,
    /// Messages by id.
    pub messages: BTreeMap<String, Message>,
    /// Entities by row key.
    pub entities: BTreeMap<String, Item>,
    /// Whether the container is hierarchical.
    #[serde(default)]
    pub is_lake: bool,
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

    /// Returns the texts that a message may have.
    pub fn texts(&self, message: &str) -> impl Iterator<Item = Content> {
        let told = self.messages.get(message).map(|message| message.content);
        let unanswered = match &self.pending {
            Some(Op::UpdateMessage { id, content }) if id == message => Some(*content),
            Some(Op::PutMessage { content }) if told.is_none() => Some(*content),
            _ => None,
        };
        told.into_iter().chain(unanswered)
    }

    /// Returns the items of this kind.
    pub fn items(&self, kind: Kind) -> &BTreeMap<String, Item> {
        match kind {
            Kind::Blob => &self.blobs,
            Kind::Entity => &self.entities,
        }
    }

    /// Applies an acknowledged operation. Returns the flaws in its answer.
    pub fn acknowledge(&mut self, op: Op, outcome: Outcome, unique: &Unique) -> Vec<Flaw> {
        if let Op::Rename { from, to } = &op {
            // What is renamed keeps its ETag.
            let blobs = std::mem::take(&mut self.blobs).into_iter();
            let moved = blobs.map(|(name, blob)| (renamed(&name, from, to).unwrap_or(name), blob));
            self.blobs = moved.collect();
            self.pending = None;
            return Vec::new();
        }
        let blobs = op.effects(Kind::Blob, self);
        let etag = std::slice::from_ref(&outcome.etag);
        let mut flaws = write(&mut self.blobs, blobs, etag, unique);
        let entities = op.effects(Kind::Entity, self);
        flaws.extend(write(&mut self.entities, entities, &outcome.etags, unique));
        match op {
            Op::AcquireLease { id } => self.lease = Some(id),
            Op::ReleaseLease { .. } => self.lease = None,
            op => self.acknowledge_on_queue(op, outcome, unique, &mut flaws),
        }
        self.pending = None;
        flaws
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

/// Returns the name of a blob after the rename of a directory; `None` if it is not in it.
fn renamed(name: &str, from: &str, to: &str) -> Option<String> {
    let rest = name.strip_prefix(from)?.strip_prefix('/')?;
    Some(format!("{to}/{rest}"))
}

/// Changes all these items, and records their ETags: entities that were written together may share
/// one.
fn write(
    items: &mut BTreeMap<String, Item>,
    effects: Vec<(String, Effect)>,
    etags: &[String],
    unique: &Unique,
) -> Vec<Flaw> {
    let mut given = BTreeSet::new();
    for ((name, effect), etag) in effects.into_iter().zip(etags) {
        let Some((content, mark)) = effect else {
            items.remove(&name);
            continue;
        };
        given.insert(etag);
        let etag = etag.clone();
        items.insert(
            name,
            Item {
                content,
                mark,
                etag,
            },
        );
    }
    let notes = given.into_iter().map(|etag| unique.note("ETag", etag));
    notes.flatten().collect()
}

/// Values that the service must never give twice in a run.
#[derive(Clone, Debug, Default)]
pub struct Unique(Arc<Mutex<BTreeSet<String>>>);

impl Unique {
    /// Records a pop receipt: those of two messages may be equal, those of one may not.
    pub fn note_receipt(&self, id: &str, receipt: &str) -> Option<Flaw> {
        self.note("receipt of", &format!("{id} {receipt}"))
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
