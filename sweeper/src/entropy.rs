//! The seeded stream of all random choices of a worker, so that a run can be reproduced.

use std::sync::Mutex;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::calls::lock;

pub(crate) struct Entropy(Mutex<ChaCha8Rng>);

impl Entropy {
    pub(crate) fn new(seed: u64) -> Self {
        Entropy(Mutex::new(ChaCha8Rng::seed_from_u64(seed)))
    }

    /// Returns a uniform value in 0.0..1.0.
    pub(crate) fn fraction(&self) -> f64 {
        // Uses the 53 bits that a double can represent.
        (lock(&self.0).next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn up_to(&self, limit: Duration) -> Duration {
        limit.mul_f64(self.fraction())
    }

    /// Returns a version 4 GUID, the required form of lease ids.
    pub(crate) fn guid(&self) -> String {
        let mut bytes = [0u8; 16];
        lock(&self.0).fill_bytes(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        parts.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream() {
        let (one, two) = (Entropy::new(7), Entropy::new(7));
        assert_eq!(one.guid(), two.guid());
        assert_eq!(one.guid().len(), 36);
        assert!((0.0..1.0).contains(&one.fraction()));
        assert_ne!(Entropy::new(8).guid(), Entropy::new(7).guid());
    }
}
