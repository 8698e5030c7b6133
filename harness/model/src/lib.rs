//! A model of Azure Storage as its documents describe it, with plain maps.
//!
//! A [`Model`] takes one [`Operation`] after the other and returns the answer that the service must
//! give: status, error code and [`Fact`]s. It does not know the emulator, only the types of the
//! wire (`smalt-protocol`). It is written from the documents and from production's answers, so that
//! both being wrong in the same way is unlikely.
//!
//! - Time is in whole seconds, and only [`Operation::Advance`] moves it.
//! - Values that the service makes up (tags, lease ids, snapshot times, message ids, receipts) are
//!   numbers here. A comparison binds each number to the string that it first sees: equal numbers
//!   must stay equal strings, different numbers different strings.
//! - An operation may use a number that nothing has yet, because shrinking removed the operation
//!   that would have created it. It then stands for a string that was never issued.
//!
//! # Layout
//! - [`vocabulary`]: operations and their parameters.
//! - [`mod@expected`]: the answers.
//! - [`lease`], [`conditions`]: rules that blobs and containers share.
//! - `state`: what an account holds.
//! - `account`, `access`, `containers`, `blobs`, `content`, `blocks`, `copies`, `deletion`,
//!   [`tiers`], `queues`: one area each.
//! - `lake`: directories, and the operations of the Data Lake interface.
//! - [`tables`]: tables and their entities, which are independent of the rest.
//! - `dispatch`: dispatches operations to rules.
//! - [`outcomes`]: the closed list of answers of each operation.
//! - [`matrix`]: the closed list of circumstances in which operations must meet.
//! - [`hints`]: hints for generators.

pub mod conditions;
pub mod expected;
pub mod hints;
pub mod lease;
pub mod matrix;
pub mod outcomes;
pub mod vocabulary;

mod access;
mod account;
mod blobs;
mod blocks;
mod containers;
mod content;
mod copies;
mod deletion;
mod dispatch;
mod lake;
mod malformed;
mod queues;
mod state;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod tiers;

pub use expected::{Expected, Fact};
pub use state::Model;
pub use vocabulary::{Numbers, Operation};

use tables::Tables;

impl Model {
    /// Returns an empty account at this time, in seconds of the Unix epoch.
    pub fn new(now_s: u64) -> Self {
        Model {
            now_s,
            ..Model::default()
        }
    }

    /// Returns an empty account with a hierarchical namespace.
    pub fn hierarchical(now_s: u64) -> Self {
        Model {
            hierarchical: true,
            ..Model::new(now_s)
        }
    }

    /// Returns whether paths have directories.
    pub fn is_hierarchical(&self) -> bool {
        self.hierarchical
    }

    /// Returns the time, in seconds of the Unix epoch.
    pub fn now_s(&self) -> u64 {
        self.now_s
    }

    /// Returns the numbers issued so far, from which generators choose.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Returns the tables, for generators.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Numbers new values from `first` on. Times of snapshots never decrease, since their numbers
    /// are their order.
    pub fn number_from(&mut self, first: u32) {
        self.numbers.start_at(first);
        self.tables.number_from(first);
    }

    /// Does an operation and returns the expected answer.
    pub fn step(&mut self, operation: &Operation) -> Expected {
        match operation {
            Operation::Container(name, operation) => self.container(name, operation),
            Operation::Blob(id, operation) => self.blob(id, operation),
            Operation::Path(id, operation) => self.path(id, operation),
            Operation::Queue(name, operation) => self.queue(name, operation),
            Operation::Table(name, operation) => self.table(name, operation),
            Operation::Account(operation) => self.account(operation),
            Operation::Access(service, name, operation) => self.access(*service, name, *operation),
            Operation::Malformed(malformed) => malformed::refused(*malformed),
            Operation::Advance { seconds } => {
                self.now_s += seconds;
                self.expire();
                Expected::nothing()
            }
            // A restart loses nothing that was acknowledged.
            Operation::Restart => Expected::nothing(),
        }
    }
}

/// Hashes equal for states that no operation can distinguish while time stands still. The counters
/// of numbers are excluded: a search over states sets them before each call.
impl std::hash::Hash for Model {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.now_s, self.numbers.moments, self.retention_days).hash(state);
        (&self.containers, &self.tables, &self.policies).hash(state);
        self.queues.len().hash(state);
        for (name, queue) in &self.queues {
            (name, &queue.metadata, queue.told_apart(self.now_s)).hash(state);
        }
    }
}
