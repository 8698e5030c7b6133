//! The sums so far, and the chunks that they contain.
//!
//! Messages are delivered at least once, so a result may arrive twice, or from two processors. The
//! ledger holds the sums *and* the numbers of their chunks in one blob that is replaced under its
//! ETag: a result is either in both or in neither, and a result that is already included changes
//! nothing. Therefore the sums are exact whichever process dies at any time.
//!
//! When a submission is complete, the numbers of its chunks are dropped, so the ledger stays small.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::batch::{Cents, PartialSum};

/// The sums and the chunks that they contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// Complete submissions.
    pub(crate) complete: BTreeSet<u32>,
    /// Included chunks of the other submissions.
    pub(crate) open: BTreeMap<u32, BTreeSet<u32>>,
    /// Number of included transactions.
    pub(crate) transactions: u64,
    /// Number of results that arrived again.
    pub(crate) duplicates: u64,
    /// The sums by account.
    pub(crate) cents: Cents,
}

impl Ledger {
    /// Adds a result; returns `false` if it was already included.
    pub(crate) fn add(&mut self, sum: &PartialSum) -> bool {
        if self.complete.contains(&sum.submission) {
            self.duplicates += 1;
            return false;
        }
        let chunks = self.open.entry(sum.submission).or_default();
        if !chunks.insert(sum.number) {
            self.duplicates += 1;
            return false;
        }
        if chunks.len() == sum.chunks as usize {
            self.open.remove(&sum.submission);
            self.complete.insert(sum.submission);
        }
        self.transactions += sum.transactions;
        for (account, cents) in &sum.cents {
            *self.cents.entry(*account).or_default() += cents;
        }
        true
    }
}
