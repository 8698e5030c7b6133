//! Numbers for what the service made up, in the order in which anybody saw it.

use std::collections::HashMap;

use smalt_model::vocabulary::tables::RowId;
use smalt_model::vocabulary::{LeaseId, MessageId, PROPOSED_LEASES, Receipt, Tag};

use crate::histories::names::Names;

/// A number that nothing will ever have.
pub const NOBODYS: u32 = 1_000_000;

/// Everything that clients have seen in one burst.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    names: Names,
    tags: HashMap<String, u32>,
    leases: HashMap<String, u32>,
    messages: HashMap<String, u32>,
    receipts: HashMap<String, u32>,
    /// Messages with their receipts, as they were shown.
    shown: Vec<(MessageId, Receipt)>,
    entity_tags: HashMap<String, u32>,
    /// Entities with their tags, as they were shown.
    entities: Vec<(RowId, Tag)>,
}

/// The number of a text; a new one is the next.
fn number<K: std::hash::Hash + Eq>(known: &mut HashMap<K, u32>, key: K, first: u32) -> u32 {
    let next = first + u32::try_from(known.len()).unwrap_or(NOBODYS);
    *known.entry(key).or_insert(next)
}

/// Adds a tag that was shown with an entity, if it is new.
pub fn learn(entities: &mut Vec<(RowId, Tag)>, id: &RowId, tag: Tag) {
    let pair = (id.clone(), tag);
    if !entities.contains(&pair) {
        entities.push(pair);
    }
}

impl Pool {
    /// The texts, for who sends.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// An ETag as it was shown.
    ///
    /// # Errors
    /// Never for one text: a number has one.
    pub fn tag(&mut self, text: &str) -> Result<Tag, String> {
        let tag = Tag(number(&mut self.tags, text.to_owned(), 0));
        self.names.see_tag(tag, text).map(|()| tag)
    }

    /// A lease id as it was shown: a client's own, or one of the service's.
    ///
    /// # Errors
    /// As [`Pool::tag`].
    pub fn lease(&mut self, text: &str) -> Result<LeaseId, String> {
        let own = (0..PROPOSED_LEASES).map(LeaseId);
        if let Some(own) = own.into_iter().find(|id| self.names.lease(*id) == text) {
            return Ok(own);
        }
        let id = LeaseId(number(&mut self.leases, text.to_owned(), PROPOSED_LEASES));
        self.names.see_lease(id, text).map(|()| id)
    }

    /// A message id as it was shown.
    ///
    /// # Errors
    /// As [`Pool::tag`].
    pub fn message(&mut self, text: &str) -> Result<MessageId, String> {
        let id = MessageId(number(&mut self.messages, text.to_owned(), 0));
        self.names.see_message(id, text).map(|()| id)
    }

    /// A receipt as it was shown with its message.
    ///
    /// # Errors
    /// As [`Pool::tag`].
    pub fn receipt(&mut self, id: MessageId, text: &str) -> Result<Receipt, String> {
        let receipt = Receipt(number(&mut self.receipts, text.to_owned(), 0));
        self.names.see_receipt(receipt, text)?;
        if !self.shown.contains(&(id, receipt)) {
            self.shown.push((id, receipt));
        }
        Ok(receipt)
    }

    /// The tag of an entity as it was shown with it.
    ///
    /// # Errors
    /// As [`Pool::tag`].
    pub fn entity(&mut self, id: &RowId, text: &str) -> Result<Tag, String> {
        let tag = Tag(number(&mut self.entity_tags, text.to_owned(), 0));
        self.names.see_entity_tag(tag, text)?;
        learn(&mut self.entities, id, tag);
        Ok(tag)
    }

    /// Entities with the tags that were shown with them, oldest first.
    pub fn entities(&self) -> &[(RowId, Tag)] {
        &self.entities
    }

    /// How many ETags were seen: every smaller number is one.
    pub fn tags(&self) -> u32 {
        u32::try_from(self.tags.len()).unwrap_or(NOBODYS)
    }

    /// How many lease ids there are, those of clients among them.
    pub fn leases(&self) -> u32 {
        PROPOSED_LEASES + u32::try_from(self.leases.len()).unwrap_or(NOBODYS)
    }

    /// Messages with the receipts that were shown with them, oldest first.
    pub fn shown(&self) -> &[(MessageId, Receipt)] {
        &self.shown
    }
}
