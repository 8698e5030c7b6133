//! Contents that a seed determines, so that they need not be stored.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// Returns the random stream of a place in the run: the same arguments give the same stream.
pub fn stream(seed: u64, round: u64, worker: u64) -> ChaCha8Rng {
    let mut place = [0_u8; 32];
    place[..8].copy_from_slice(&seed.to_le_bytes());
    place[8..16].copy_from_slice(&round.to_le_bytes());
    place[16..24].copy_from_slice(&worker.to_le_bytes());
    ChaCha8Rng::from_seed(place)
}

/// Returns a random number below `bound`, which must not be zero.
pub fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    random.next_u64() % bound.max(1)
}

/// A content, by its seed and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Seed of the bytes.
    pub seed: u64,
    /// Length in bytes.
    pub length: usize,
}

impl Content {
    /// Returns the bytes.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        ChaCha8Rng::seed_from_u64(self.seed).fill_bytes(&mut bytes);
        bytes
    }

    /// Returns the content as letters, which XML can carry.
    pub fn text(self) -> String {
        let letter = |byte: u8| char::from(b'a' + byte % 26);
        self.bytes().into_iter().map(letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_bytes() {
        let content = Content {
            seed: 7,
            length: 100,
        };
        assert_eq!(content.bytes(), content.bytes());
        assert_ne!(content.bytes(), Content { seed: 8, ..content }.bytes());
        assert!(content.text().bytes().all(|byte| byte.is_ascii_lowercase()));
        assert_ne!(stream(1, 2, 3), stream(1, 3, 2));
    }
}
