//! The listener's random numbers: one stream per dequeue task, all from one seed (DL5).

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::rules::backoff::{JITTER_MAX_PERMILLE, JITTER_MIN_PERMILLE};

#[derive(Clone, Debug)]
pub(crate) struct Jitter(ChaCha8Rng);

impl Jitter {
    /// Returns stream number `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Jitter(rng)
    }

    /// Returns a factor from 0.8 to 1.2, in thousandths.
    pub(crate) fn permille(&mut self) -> u32 {
        let span = JITTER_MAX_PERMILLE - JITTER_MIN_PERMILLE + 1;
        JITTER_MIN_PERMILLE + self.0.next_u32() % span
    }
}

/// Returns a factor from 0.8 to 1.2, in thousandths, that depends only on the message and the
/// attempt. It is the same in every run, and different messages do not coincide.
pub(crate) fn of_message(id: &str, attempt: u64) -> u32 {
    let hash = fnv(0xcbf2_9ce4_8422_2325 ^ attempt, id);
    let span = u64::from(JITTER_MAX_PERMILLE - JITTER_MIN_PERMILLE + 1);
    JITTER_MIN_PERMILLE + u32::try_from(hash % span).unwrap_or(0)
}

/// Returns a seed for a worker without one.
pub(crate) fn of_name(worker: &str) -> u64 {
    fnv(0xcbf2_9ce4_8422_2325, worker)
}

/// FNV-1a; any hash that spreads well would do.
fn fnv(start: u64, text: &str) -> u64 {
    text.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_wait_in_step() {
        let factors: std::collections::BTreeSet<u32> = (0..50)
            .map(|n| of_message(&format!("message {n}"), 0))
            .collect();
        assert!(factors.len() > 25, "{factors:?}");
        assert!(factors.iter().all(|f| (800..=1200).contains(f)));
    }

    /// DL5: tasks that start at the same moment draw different numbers; the same seed repeats a
    /// run.
    #[test]
    fn dl5_every_task_has_its_own_stream() {
        let draw = |seed, stream| {
            let mut jitter = Jitter::new(seed, stream);
            (0..20).map(|_| jitter.permille()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
        assert!(draw(7, 1).iter().all(|p| (800..=1200).contains(p)));
    }
}
