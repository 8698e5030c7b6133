//! Transactions, the chunks that they travel in, and what is computed of a chunk. All of it is a
//! function of the plan, so that anybody can say beforehand what the sums must be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Cents per minute, in peak hours and out of them.
const RATES: [u64; 2] = [3, 7];
/// Every call costs this much at least, in cents.
const LEAST_CHARGE: u64 = 9;

/// Cents by account.
pub(crate) type Cents = BTreeMap<u32, u64>;

/// One call of a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) id: u64,
    pub(crate) account: u32,
    pub(crate) minutes: u64,
    pub(crate) peak: bool,
}

/// What is submitted: so many batches of so many transactions.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) submissions: u32,
    /// Transactions of a submission.
    pub(crate) transactions: u32,
    /// Transactions of a chunk, the unit of work.
    pub(crate) chunk: u32,
    pub(crate) accounts: u32,
}

/// A part of a submission: one message of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) submission: u32,
    pub(crate) number: u32,
    /// Chunks of its submission.
    pub(crate) chunks: u32,
    pub(crate) transactions: Vec<Transaction>,
}

/// What a processor makes of a chunk: one message of results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartialSum {
    pub(crate) submission: u32,
    pub(crate) number: u32,
    pub(crate) chunks: u32,
    pub(crate) transactions: u64,
    pub(crate) cents: Cents,
}

impl Plan {
    /// The transactions of a submission.
    pub(crate) fn submission(&self, submission: u32) -> Vec<Transaction> {
        let first = u64::from(submission) * u64::from(self.transactions);
        let ids = first..first + u64::from(self.transactions);
        ids.map(|id| self.transaction(id)).collect()
    }

    fn transaction(&self, id: u64) -> Transaction {
        let dice = mix(self.seed ^ mix(id));
        Transaction {
            id,
            account: (dice % u64::from(self.accounts.max(1))) as u32,
            minutes: 1 + (dice >> 32) % 90,
            peak: dice >> 63 == 1,
        }
    }

    /// The chunks of a submission: the same ones whenever it is split.
    pub(crate) fn chunks(&self, submission: u32) -> Vec<Chunk> {
        let transactions = self.submission(submission);
        let parts = transactions.chunks(self.chunk.max(1) as usize);
        let chunks = parts.len() as u32;
        let numbered = (0..).zip(parts);
        numbered
            .map(|(number, part)| Chunk {
                submission,
                number,
                chunks,
                transactions: part.to_vec(),
            })
            .collect()
    }

    /// What the sums must be: computed straight from the transactions, without chunks and queues.
    pub(crate) fn expected(&self) -> Cents {
        let mut cents = Cents::new();
        for submission in 0..self.submissions {
            for transaction in self.submission(submission) {
                *cents.entry(transaction.account).or_default() += charge(&transaction);
            }
        }
        cents
    }

    /// All transactions.
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.submissions) * u64::from(self.transactions)
    }
}

/// What a transaction costs, in cents.
pub(crate) fn charge(transaction: &Transaction) -> u64 {
    let rate = RATES[usize::from(transaction.peak)];
    (transaction.minutes * rate).max(LEAST_CHARGE)
}

/// The processor's work.
pub(crate) fn compute(chunk: &Chunk) -> PartialSum {
    let mut cents = Cents::new();
    for transaction in &chunk.transactions {
        *cents.entry(transaction.account).or_default() += charge(transaction);
    }
    PartialSum {
        submission: chunk.submission,
        number: chunk.number,
        chunks: chunk.chunks,
        transactions: chunk.transactions.len() as u64,
        cents,
    }
}

/// SplitMix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
