//! The only source of randomness: request ids, message ids, lease ids, copy ids, pop receipts.
//!
//! All ids come from one seeded stream, so the same seed and the same requests give the same ids.
//! The binary seeds it from the system; tests pass a number. The nth id does not depend on the use
//! of earlier ids. A reopened store continues with ids that it does not contain yet.

use std::sync::atomic::{AtomicU64, Ordering};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use smalt_protocol::Timestamp;
use uuid::{Builder, Uuid};

/// A stream of ids from one seed.
#[derive(Debug)]
pub struct Ids {
    stream: ChaCha8Rng,
    drawn: AtomicU64,
}

impl Ids {
    /// Creates the stream of this seed for a store whose last commit had the tick `opened_after`.
    pub fn seeded(seed: u64, opened_after: Timestamp) -> Self {
        let mut stream = ChaCha8Rng::seed_from_u64(seed);
        stream.set_stream(opened_after.ticks());
        Ids {
            stream,
            drawn: AtomicU64::new(0),
        }
    }

    /// Creates a stream that is unique to this start of the process.
    pub fn from_system() -> Self {
        let mut seed = [0_u8; 32];
        // Without entropy, the time since the epoch still distinguishes two starts.
        if getrandom::fill(&mut seed).is_err() {
            let now = crate::clock::Clock::system().now();
            seed[..8].copy_from_slice(&now.ticks().to_le_bytes());
        }
        Ids {
            stream: ChaCha8Rng::from_seed(seed),
            drawn: AtomicU64::new(0),
        }
    }

    /// Returns an independent stream that continues from the current place.
    #[must_use]
    pub fn fork(&self) -> Self {
        Ids {
            stream: self.stream.clone(),
            drawn: AtomicU64::new(self.drawn.load(Ordering::Relaxed)),
        }
    }

    /// Skips the ids that a fork has drawn.
    pub fn catch_up(&self, fork: &Ids) {
        let drawn = fork.drawn.load(Ordering::Relaxed);
        self.drawn.fetch_max(drawn, Ordering::Relaxed);
    }

    /// Returns the next id, as a version 4 UUID.
    pub fn next(&self) -> Uuid {
        let place = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut stream = self.stream.clone();
        // Each id takes four words of the stream, so draws never overlap and need no lock.
        stream.set_word_pos(u128::from(place) * 4);
        let mut bytes = [0_u8; 16];
        stream.fill_bytes(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_same_ids_without_duplicates() {
        let fresh = |seed| Ids::seeded(seed, Timestamp::from_ticks(0));
        let (a, b) = (fresh(7), fresh(7));
        let first: Vec<Uuid> = (0..100).map(|_| a.next()).collect();
        let again: Vec<Uuid> = (0..100).map(|_| b.next()).collect();
        assert_eq!(first, again);
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(distinct.len(), first.len());
        assert_ne!(fresh(8).next(), first[0]);
        let reopened = Ids::seeded(7, Timestamp::from_ticks(1));
        assert!((0..100).all(|_| !distinct.contains(&reopened.next())));
    }
}
