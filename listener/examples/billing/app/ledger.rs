//! The sums so far, and which chunks are in them.
//!
//! Messages are delivered at least once, so a result may come twice, or from two processors. The
//! ledger holds the sums *and* the numbers of the chunks that they are made of, in one blob that is
//! replaced under its ETag: a result is either in both or in neither, and one that is in already
//! changes nothing. That makes the sums exact, whoever dies when.
//!
//! The numbers of a submission are forgotten when all of it is in: the ledger stays small.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::batch::{Cents, PartialSum};

/// The ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// Submissions that are all in.
    pub(crate) complete: BTreeSet<u32>,
    /// Chunks that are in, of the other submissions.
    pub(crate) open: BTreeMap<u32, BTreeSet<u32>>,
    /// Transactions that are in.
    pub(crate) transactions: u64,
    /// Results that came although they were in.
    pub(crate) duplicates: u64,
    /// The sums.
    pub(crate) cents: Cents,
}

impl Ledger {
    /// Adds a result; `false` when it was in already.
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
