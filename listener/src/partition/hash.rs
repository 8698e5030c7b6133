//! Consistent hashing of keys to partitions.
//!
//! The key's hash is the first eight bytes of its SHA-256, read as a big-endian number. The
//! partition is that number's bucket by *jump consistent hash* (Lamping and Veach, "A Fast, Minimal
//! Memory, Consistent Hash Algorithm", 2014). Buckets are filled evenly, and from `n` to `n + 1`
//! buckets only one key of `n + 1` moves, each into the new bucket.
//!
//! Both are stable: tests fix their values, and any language can compute them.

use sha2::{Digest, Sha256};

/// Multiplier of the generator from which the algorithm draws its jumps.
const STEP: u64 = 2_862_933_555_777_941_757;
/// 2^31: the generator's upper bits are read as a fraction of it.
const SPAN: f64 = 2_147_483_648.0;

/// Returns the partition of a key among `partitions`, from 0; 0 if there are none.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    let digest = Sha256::digest(key);
    let hash = digest
        .iter()
        .take(8)
        .fold(0, |hash: u64, byte| hash << 8 | u64::from(*byte));
    jump(hash, partitions)
}

/// Returns the bucket of a hash among `buckets`, from 0.
pub fn jump(mut hash: u64, buckets: u32) -> u32 {
    let (mut bucket, mut next) = (0_u32, 0.0_f64);
    while next < f64::from(buckets) {
        // Below `buckets`, so it is a whole number that fits.
        bucket = next as u32;
        hash = hash.wrapping_mul(STEP).wrapping_add(1);
        let fraction = SPAN / ((hash >> 33) + 1) as f64;
        next = ((f64::from(bucket) + 1.0) * fraction).floor();
    }
    bucket
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Known values of the algorithm.
    #[test]
    fn jump_vectors() {
        let table = [
            (1, 1, 0),
            (42, 57, 43),
            (0xdead_10cc, 1, 0),
            (0xdead_10cc, 666, 361),
            (256, 1024, 520),
            (0, 0, 0),
            (u64::MAX, 1, 0),
        ];
        for (hash, buckets, wanted) in table {
            assert_eq!(jump(hash, buckets), wanted, "{hash} of {buckets}");
        }
    }

    /// These values never change: messages must be found in the queues into which earlier releases
    /// put them.
    #[test]
    fn key_vectors() {
        let table: [(&str, [u32; 4]); 4] = [
            ("", [1, 2, 5, 22]),
            ("customer-1", [1, 2, 2, 90]),
            ("customer-2", [0, 2, 2, 96]),
            ("Zürich", [1, 1, 1, 17]),
        ];
        for (key, wanted) in table {
            let found = [2, 4, 16, 100].map(|n| partition_of(key.as_bytes(), n));
            assert_eq!(found, wanted, "{key}");
        }
    }

    /// Each of 16 partitions gets 6,250 of 100,000 keys, within 5 %.
    #[test]
    fn keys_are_spread_evenly() {
        let mut filled = [0_u32; 16];
        for number in 0..100_000 {
            let key = format!("account-{number}");
            filled[partition_of(key.as_bytes(), 16) as usize] += 1;
        }
        for count in filled {
            assert!((5_938..=6_562).contains(&count), "{filled:?}");
        }
    }

    proptest! {
        /// A key stays or moves into the new partition; about one in `n + 1` moves.
        #[test]
        fn growing_by_one_moves_few(partitions in 1u32..100, seed: u64) {
            let mut moved = 0;
            for number in 0..1_000_u64 {
                let hash = seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (before, after) = (jump(hash, partitions), jump(hash, partitions + 1));
                prop_assert!(after == before || after == partitions);
                prop_assert!(before < partitions);
                moved += u32::from(after != before);
            }
            let fair = 1_000 / (partitions + 1);
            prop_assert!(moved <= 2 * fair + 30, "{moved} moved, {fair} would be fair");
        }
    }
}
