//! What the documents of Azure Storage say that a storage does, in plain maps.
//!
//! A [`Model`] takes one [`Operation`] after the other and says what the service has to answer:
//! status, error code and [`Fact`]s. It knows nothing of the emulator, only the vocabulary of the
//! wire (`smalt-protocol`), and is written from the documents and from what production answered,
//! so that both being wrong in the same way is unlikely.
//!
//! - Time is a number of whole seconds that only [`Operation::Advance`] moves.
//! - What the service makes up (tags, lease ids, snapshot times, message ids, receipts) is a number
//!   here. Who compares binds each number to the text that it sees first: equal numbers have to
//!   stay equal texts, different ones different texts.
//! - An operation may name a number that nothing has yet: shrinking takes away the operation that
//!   would have made it. It is then a text that nobody ever issued.
//!
//! # Layout
//! - [`vocabulary`]: operations and what they name.
//! - [`mod@expected`] says what is answered.
//! - [`lease`], [`conditions`]: rules that blobs and containers share.
//! - `account`, `containers`, `blobs`, `content`, `blocks`, `copies`, `deletion`, `queues`: an area
//!   each.
//! - [`tables`]: tables and their entities, which know nothing of the rest.
//! - `dispatch`: which rule answers which operation.
//! - [`outcomes`]: what each operation can be answered, as a closed list.
//! - [`hints`]: what a generator has to know.

pub mod conditions;
pub mod expected;
pub mod hints;
pub mod lease;
pub mod outcomes;
pub mod vocabulary;

mod account;
mod blobs;
mod blocks;
mod containers;
mod content;
mod copies;
mod deletion;
mod dispatch;
mod malformed;
mod queues;
pub mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use expected::{Expected, Fact};
pub use vocabulary::{Numbers, Operation};

use containers::Container;
use queues::Queue;
use tables::Tables;

/// A storage account with its blob, queue and table service.
#[derive(Clone, Debug, Default)]
pub struct Model {
    now_s: u64,
    numbers: Numbers,
    containers: BTreeMap<String, Container>,
    queues: BTreeMap<String, Queue>,
    tables: Tables,
    /// For how many days what is deleted is kept.
    retention_days: Option<u64>,
}

impl Model {
    /// An empty account at this time, in seconds of the Unix epoch.
    pub fn new(now_s: u64) -> Self {
        Model {
            now_s,
            ..Model::default()
        }
    }

    /// The time, in seconds of the Unix epoch.
    pub fn now_s(&self) -> u64 {
        self.now_s
    }

    /// What was made up so far: generators choose from it.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The tables: generators look at what there is.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Numbers from this one on are new. Times of snapshots only grow, since
    /// their numbers are their order.
    pub fn number_from(&mut self, first: u32) {
        self.numbers.start_at(first);
        self.tables.number_from(first);
    }

    /// Does an operation and says what has to be answered.
    pub fn step(&mut self, operation: &Operation) -> Expected {
        match operation {
            Operation::Container(name, operation) => self.container(name, operation),
            Operation::Blob(id, operation) => self.blob(id, operation),
            Operation::Queue(name, operation) => self.queue(name, operation),
            Operation::Table(name, operation) => self.tables.step(name, operation).into(),
            Operation::Account(operation) => self.account(operation),
            Operation::Malformed(malformed) => malformed::refused(*malformed),
            Operation::Advance { seconds } => {
                self.now_s += seconds;
                Expected::nothing()
            }
            // Everything acknowledged is still there.
            Operation::Restart => Expected::nothing(),
        }
    }
}

/// Equal for states that no operation tells apart while time stands still. Numbers that were not
/// given out yet are left out: who compares states numbers what each call makes by the call.
impl std::hash::Hash for Model {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.now_s, self.numbers.moments, self.retention_days).hash(state);
        (&self.containers, &self.tables).hash(state);
        self.queues.len().hash(state);
        for (name, queue) in &self.queues {
            (name, &queue.metadata, queue.told_apart(self.now_s)).hash(state);
        }
    }
}
