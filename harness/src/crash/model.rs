//! What must be there: every acknowledged operation, and the one that was not answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::content::Content;

/// A blob as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Its bytes.
    pub content: Content,
    /// Its one piece of metadata.
    pub mark: u64,
    /// Its ETag.
    pub etag: String,
}

/// A message as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// An operation of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Put Blob with one piece of metadata.
    PutBlob {
        /// Name.
        name: String,
        /// Bytes.
        content: Content,
        /// Metadata.
        mark: u64,
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
}

/// What one connection expects of its container and its queue.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Blobs by name.
    pub blobs: BTreeMap<String, Blob>,
    /// Messages by id.
    pub messages: BTreeMap<String, Message>,
    /// The operation that was sent and not answered.
    pub pending: Option<Op>,
}

impl Model {
    /// Whether the unanswered operation may have touched this message.
    pub fn is_uncertain(&self, message: &str) -> bool {
        match &self.pending {
            Some(Op::UpdateMessage { id, .. } | Op::DeleteMessage { id }) => id == message,
            Some(Op::GetMessages) => true,
            _ => false,
        }
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Something acknowledged is not there, or not honoured.
    Lost(String),
    /// Something is there that cannot be.
    Corrupt(String),
}

/// Values that the service must never give twice, over the whole run.
#[derive(Clone, Debug, Default)]
pub struct Unique(Arc<Mutex<BTreeSet<String>>>);

impl Unique {
    /// Notes a value; a flaw when it was given before.
    pub fn note(&self, what: &str, value: &str) -> Option<Flaw> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !value.is_empty() && seen.insert(format!("{what} {value}"));
        (!is_new).then(|| Flaw::Corrupt(format!("{what} {value:?} was given twice")))
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
}
