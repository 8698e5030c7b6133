//! The values behind the model's numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use smalt_model::vocabulary::{LeaseId, MessageId, Moment, PROPOSED_LEASES, Receipt, Tag};

/// First bytes of recorded receipts; a time follows.
const RECEIPT: [u8; 12] = [2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];

/// A number for values that the service never generated.
pub const NOBODYS: u32 = 1_000_000;

/// Values of one kind, by number and by value. A search clones them with every step and rarely
/// changes them.
#[derive(Clone, Debug, Default)]
struct Bound(Arc<Texts>);

#[derive(Clone, Debug, Default)]
struct Texts {
    texts: BTreeMap<u32, Arc<str>>,
    numbers: BTreeMap<Arc<str>, u32>,
}

/// Hashes only the values, which determine the numbers.
impl std::hash::Hash for Bound {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.texts.hash(state);
    }
}

impl Bound {
    /// Binds a new number, or compares a known one.
    fn see(&mut self, number: u32, text: &str) -> Result<(), String> {
        match (self.0.texts.get(&number), self.0.numbers.get(text)) {
            (Some(known), _) if &**known == text => Ok(()),
            (Some(known), _) => Err(format!("{text} in place of {known}")),
            (None, Some(other)) => Err(format!("{text} again, which already has number {other}")),
            (None, None) => {
                let text: Arc<str> = text.into();
                let both = Arc::make_mut(&mut self.0);
                both.texts.insert(number, text.clone());
                both.numbers.insert(text, number);
                Ok(())
            }
        }
    }

    fn text(&self, number: u32) -> Option<String> {
        self.0.texts.get(&number).map(ToString::to_string)
    }

    /// Returns the number of a value; [`NOBODYS`] for an unknown one.
    fn find(&self, text: &str) -> u32 {
        self.0.numbers.get(text).copied().unwrap_or(NOBODYS)
    }

    /// Returns the number of a value; a new value gets the next number.
    fn number(&mut self, text: &str) -> u32 {
        let next = u32::try_from(self.0.numbers.len()).unwrap_or(NOBODYS);
        match self.see(next, text) {
            Ok(()) => next,
            Err(_) => self.find(text),
        }
    }
}

/// The values that the service generated in one history.
#[derive(Clone, Debug, Hash)]
pub struct Names {
    tags: Bound,
    entity_tags: Bound,
    leases: Bound,
    moments: Bound,
    messages: Bound,
    receipts: Bound,
}

impl Default for Names {
    fn default() -> Self {
        let mut leases = Bound::default();
        for number in 0..PROPOSED_LEASES {
            let own = leases.number(&guid(number));
            debug_assert_eq!(own, number, "every client's lease id is different");
        }
        Names {
            tags: Bound::default(),
            entity_tags: Bound::default(),
            leases,
            moments: Bound::default(),
            messages: Bound::default(),
            receipts: Bound::default(),
        }
    }
}

/// Returns a GUID that a client proposes, or that was never issued.
fn guid(number: u32) -> String {
    format!("{:08x}-1111-2222-3333-444455556666", 0xA000_0000 + number)
}

/// Returns the value of a number; a number without a value gets one that does not exist.
impl Names {
    /// Returns an ETag, in quotes.
    pub fn tag(&self, Tag(number): Tag) -> String {
        let known = self.tags.text(number);
        known.unwrap_or_else(|| format!("\"0x8000000{number:08X}\""))
    }

    /// Returns the ETag of an entity.
    pub fn entity_tag(&self, Tag(number): Tag) -> String {
        let known = self.entity_tags.text(number);
        known.unwrap_or_else(|| "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"".to_owned())
    }

    /// Returns a lease id.
    pub fn lease(&self, LeaseId(number): LeaseId) -> String {
        let known = self.leases.text(number);
        known.unwrap_or_else(|| guid(0x1000 + number))
    }

    /// Returns the time of a snapshot.
    pub fn moment(&self, Moment(number): Moment) -> String {
        let known = self.moments.text(number);
        known.unwrap_or_else(|| format!("2001-01-01T00:00:00.{number:07}Z"))
    }

    /// Returns a message id.
    pub fn message(&self, MessageId(number): MessageId) -> String {
        let known = self.messages.text(number);
        known.unwrap_or_else(|| guid(0x2000 + number))
    }

    /// Returns a pop receipt.
    pub fn receipt(&self, Receipt(number): Receipt) -> String {
        let known = self.receipts.text(number);
        known.unwrap_or_else(|| {
            let time = u64::from(number).to_le_bytes();
            BASE64.encode([&RECEIPT[..], &time[..]].concat())
        })
    }

    /// Returns the number of ETags seen.
    pub fn tags_seen(&self) -> usize {
        self.tags.0.numbers.len()
    }

    /// Returns the number of lease ids, including those that clients chose.
    pub fn leases_seen(&self) -> usize {
        self.leases.0.numbers.len()
    }

    /// Returns the number of an ETag; a new one gets the next number.
    pub fn number_tag(&mut self, text: &str) -> Tag {
        Tag(self.tags.number(text))
    }

    /// Returns the number of an entity's ETag; a new one gets the next number.
    pub fn number_entity_tag(&mut self, text: &str) -> Tag {
        Tag(self.entity_tags.number(text))
    }

    /// Returns the number of a lease id; a new one gets the next number.
    pub fn number_lease(&mut self, text: &str) -> LeaseId {
        LeaseId(self.leases.number(text))
    }

    /// Returns the number of a message id; a new one gets the next number.
    pub fn number_message(&mut self, text: &str) -> MessageId {
        MessageId(self.messages.number(text))
    }

    /// Returns the number of a receipt; a new one gets the next number.
    pub fn number_receipt(&mut self, text: &str) -> Receipt {
        Receipt(self.receipts.number(text))
    }

    /// Returns the number here of an ETag numbered by `others`, or [`NOBODYS`].
    pub fn tag_of(&self, others: &Names, tag: Tag) -> Tag {
        Tag(self.tags.find(&others.tag(tag)))
    }

    /// Returns the number here of an entity's ETag numbered by `others`, or [`NOBODYS`].
    pub fn entity_tag_of(&self, others: &Names, tag: Tag) -> Tag {
        Tag(self.entity_tags.find(&others.entity_tag(tag)))
    }

    /// Returns the number here of a lease id numbered by `others`, or [`NOBODYS`].
    pub fn lease_of(&self, others: &Names, lease: LeaseId) -> LeaseId {
        LeaseId(self.leases.find(&others.lease(lease)))
    }

    /// Returns the number here of a message id numbered by `others`, or [`NOBODYS`].
    pub fn message_of(&self, others: &Names, message: MessageId) -> MessageId {
        MessageId(self.messages.find(&others.message(message)))
    }

    /// Returns the number here of a receipt numbered by `others`, or [`NOBODYS`].
    pub fn receipt_of(&self, others: &Names, receipt: Receipt) -> Receipt {
        Receipt(self.receipts.find(&others.receipt(receipt)))
    }

    /// Binds or compares an ETag.
    pub fn see_tag(&mut self, Tag(number): Tag, text: &str) -> Result<(), String> {
        self.tags.see(number, text)
    }

    /// Binds or compares the ETag of an entity.
    pub fn see_entity_tag(&mut self, Tag(number): Tag, text: &str) -> Result<(), String> {
        self.entity_tags.see(number, text)
    }

    /// Binds or compares a lease id.
    pub fn see_lease(&mut self, LeaseId(number): LeaseId, text: &str) -> Result<(), String> {
        self.leases.see(number, text)
    }

    /// Binds or compares the time of a snapshot.
    pub fn see_moment(&mut self, Moment(number): Moment, text: &str) -> Result<(), String> {
        self.moments.see(number, text)
    }

    /// Binds or compares a message id.
    pub fn see_message(&mut self, MessageId(number): MessageId, text: &str) -> Result<(), String> {
        self.messages.see(number, text)
    }

    /// Binds or compares a receipt. Messages received by one request share it.
    pub fn see_receipt(&mut self, Receipt(number): Receipt, text: &str) -> Result<(), String> {
        self.receipts.see(number, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_equal_values_and_different_ones_do_not() {
        let mut names = Names::default();
        assert_eq!(names.see_tag(Tag(1), "\"a\""), Ok(()));
        assert_eq!(names.see_tag(Tag(1), "\"a\""), Ok(()));
        assert!(names.see_tag(Tag(1), "\"b\"").is_err());
        assert!(names.see_tag(Tag(2), "\"a\"").is_err());
        assert_eq!(names.tag(Tag(1)), "\"a\"");
        assert_ne!(names.tag(Tag(7)), names.tag(Tag(8)));
        let mine = names.lease(LeaseId(0));
        assert!(names.see_lease(LeaseId(PROPOSED_LEASES), &mine).is_err());
    }
}
