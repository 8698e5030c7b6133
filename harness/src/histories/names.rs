//! The texts behind the model's numbers.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use smalt_model::vocabulary::{LeaseId, MessageId, Moment, PROPOSED_LEASES, Receipt, Tag};

/// How recorded receipts start; a time follows.
const RECEIPT: [u8; 12] = [2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];

/// Texts of one kind, both ways.
#[derive(Clone, Debug, Default)]
struct Bound {
    texts: BTreeMap<u32, String>,
    numbers: BTreeMap<String, u32>,
}

/// One way says all.
impl std::hash::Hash for Bound {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.texts.hash(state);
    }
}

impl Bound {
    /// Binds a number that is new, or compares.
    fn see(&mut self, number: u32, text: &str) -> Result<(), String> {
        match (self.texts.get(&number), self.numbers.get(text)) {
            (Some(known), _) if known == text => Ok(()),
            (Some(known), _) => Err(format!("{text} in place of {known}")),
            (None, Some(other)) => Err(format!("{text} again, which was number {other}")),
            (None, None) => {
                self.texts.insert(number, text.to_owned());
                self.numbers.insert(text.to_owned(), number);
                Ok(())
            }
        }
    }
}

/// What the service made up in one history.
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
            let text = guid(number);
            leases.texts.insert(number, text.clone());
            leases.numbers.insert(text, number);
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

/// A GUID that clients propose, or that nobody ever issued.
fn guid(number: u32) -> String {
    format!("{:08x}-1111-2222-3333-444455556666", 0xA000_0000 + number)
}

/// A number without a text is named by one that nothing has.
impl Names {
    /// An ETag, quoted.
    pub fn tag(&self, Tag(number): Tag) -> String {
        let known = self.tags.texts.get(&number).cloned();
        known.unwrap_or_else(|| format!("\"0x8000000{number:08X}\""))
    }

    /// The ETag of an entity.
    pub fn entity_tag(&self, Tag(number): Tag) -> String {
        let known = self.entity_tags.texts.get(&number).cloned();
        known.unwrap_or_else(|| "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"".to_owned())
    }

    /// A lease id.
    pub fn lease(&self, LeaseId(number): LeaseId) -> String {
        let known = self.leases.texts.get(&number).cloned();
        known.unwrap_or_else(|| guid(0x1000 + number))
    }

    /// The time of a snapshot.
    pub fn moment(&self, Moment(number): Moment) -> String {
        let known = self.moments.texts.get(&number).cloned();
        known.unwrap_or_else(|| format!("2001-01-01T00:00:00.{number:07}Z"))
    }

    /// A message id.
    pub fn message(&self, MessageId(number): MessageId) -> String {
        let known = self.messages.texts.get(&number).cloned();
        known.unwrap_or_else(|| guid(0x2000 + number))
    }

    /// A pop receipt.
    pub fn receipt(&self, Receipt(number): Receipt) -> String {
        let known = self.receipts.texts.get(&number).cloned();
        known.unwrap_or_else(|| {
            let time = u64::from(number).to_le_bytes();
            BASE64.encode([&RECEIPT[..], &time[..]].concat())
        })
    }

    /// How many ETags were seen.
    pub fn tags_seen(&self) -> usize {
        self.tags.numbers.len()
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

    /// Binds or compares a receipt. Messages that were given out together share it.
    pub fn see_receipt(&mut self, Receipt(number): Receipt, text: &str) -> Result<(), String> {
        self.receipts.see(number, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_equal_texts_and_different_ones_are_not() {
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
