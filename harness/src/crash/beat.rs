//! A clock that stands still while the machine gives the process no time.
//!
//! How much a store in the mode `fast` may lose depends on real time: a thread of its own must have
//! run by then. On a machine that is short of processors that thread runs late, and so does this
//! one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Time between two beats.
const BEAT: Duration = Duration::from_millis(5);

/// A thread that counts beats for as long as a `Beat` exists.
#[derive(Clone, Debug)]
pub struct Beat(Arc<AtomicU64>);

impl Beat {
    /// Starts to count.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start() -> std::io::Result<Self> {
        let beats = Arc::new(AtomicU64::new(0));
        let seen = Arc::downgrade(&beats);
        let name = "crash-beat".to_owned();
        std::thread::Builder::new()
            .name(name)
            .spawn(move || count(&seen))?;
        Ok(Beat(beats))
    }

    /// Returns the milliseconds since the start.
    pub fn ms(&self) -> u64 {
        let beat_ms = u64::try_from(BEAT.as_millis()).unwrap_or(u64::MAX);
        self.0.load(Ordering::Acquire).saturating_mul(beat_ms)
    }
}

fn count(beats: &Weak<AtomicU64>) {
    while let Some(beats) = beats.upgrade() {
        beats.fetch_add(1, Ordering::AcqRel);
        drop(beats);
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is measured is the time of the machine, on a thread of its own"
)]
fn pause() {
    std::thread::sleep(BEAT);
}
