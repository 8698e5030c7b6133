//! Transactions, their chunks, and the result of a chunk. Everything is a function of the plan, so
//! that the correct sums are known beforehand.

use std::collections::BTreeMap;

use clap::Args;
use serde::{Deserialize, Serialize};

/// Cents per minute, off-peak and in peak hours.
const RATES: [u64; 2] = [3, 7];
/// Smallest charge of a call, in cents.
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

/// The submissions: their number and size.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// Seed of the transactions.
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of submissions.
    #[arg(long, global = true, default_value_t = 20)]
    pub(crate) submissions: u32,
    /// Transactions per submission.
    #[arg(long, global = true, default_value_t = 10_000)]
    pub(crate) transactions: u32,
    /// Transactions per chunk. Chunks above 16 KiB, about 250 transactions, are stored in blobs.
    #[arg(long, global = true, default_value_t = 500)]
    pub(crate) chunk: u32,
    /// Number of accounts that the transactions belong to.
    #[arg(long, global = true, default_value_t = 100)]
    pub(crate) accounts: u32,
}

/// A part of a submission: the body of a work message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) submission: u32,
    pub(crate) number: u32,
    /// Number of chunks of the submission.
    pub(crate) chunks: u32,
    pub(crate) transactions: Vec<Transaction>,
}

/// The result of a chunk: the body of a result message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartialSum {
    pub(crate) submission: u32,
    pub(crate) number: u32,
    pub(crate) chunks: u32,
    pub(crate) transactions: u64,
    pub(crate) cents: Cents,
}

impl Plan {
    /// Returns the transactions of a submission.
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

    /// Returns the chunks of a submission, always the same ones.
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

    /// Returns the correct sums, computed directly from the transactions without chunks and queues.
    pub(crate) fn expected(&self) -> Cents {
        let mut cents = Cents::new();
        for submission in 0..self.submissions {
            for transaction in self.submission(submission) {
                *cents.entry(transaction.account).or_default() += charge(&transaction);
            }
        }
        cents
    }

    /// Returns the number of all transactions.
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.submissions) * u64::from(self.transactions)
    }
}

/// Returns the price of a transaction in cents.
pub(crate) fn charge(transaction: &Transaction) -> u64 {
    let rate = RATES[usize::from(transaction.peak)];
    (transaction.minutes * rate).max(LEAST_CHARGE)
}

/// Computes the result of a chunk.
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
