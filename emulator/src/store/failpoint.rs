//! Named steps at which the crash test lets its child process die. Without the feature `failpoints`
//! the names do nothing and none can be chosen.

/// Every step, in the order of a store's life. `harness check crash --part failpoints` dies at
/// each.
pub const POINTS: &[&str] = &[
    "open.locked",
    "open.begun",
    "open.engine_begun",
    "open.log_applied",
    "open.log_synced",
    "open.log_restarted",
    "open.names_synced",
    "open.noted",
    "open.extents_listed",
    "recover.backed_up",
    "recover.copied",
    "stage.segment_created",
    "stage.frame_written",
    "stage.completed",
    "commit.collected",
    "commit.payload_synced",
    "commit.segment_named",
    "commit.payloads_durable",
    "commit.log_turned",
    "commit.logged",
    "commit.synced",
    "commit.published",
    "drain.step",
    "drain.applied",
    "drain.flushed",
    "drain.synced",
    "drain.recycled",
    "maintain.copied",
    "maintain.moved",
    "maintain.sealed",
    "maintain.retired",
    "maintain.deleted",
    "reset.engine_begun",
    "reset.noted",
    "reset.published",
    "close.durable",
    "close.noted",
];

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The name, and how often it is still passed before the process dies there.
    static ARMED: OnceLock<(String, AtomicU64)> = OnceLock::new();

    /// Aborts the process when it reaches `name` for the `nth` time, counted from 1. Only the first
    /// call of a process has an effect.
    pub fn arm(name: &str, nth: u64) {
        // A second call has no effect.
        let _ = ARMED.set((name.to_owned(), AtomicU64::new(nth)));
    }

    pub(in crate::store) fn reach(name: &str) {
        let armed = ARMED.get().filter(|(armed, _)| armed == name);
        // Like `kill -9`, this runs no destructor and flushes no buffer.
        if armed.is_some_and(|(_, left)| left.fetch_sub(1, Ordering::AcqRel) == 1) {
            std::process::abort();
        }
    }
}

#[cfg(feature = "failpoints")]
pub use armed::arm;
#[cfg(feature = "failpoints")]
pub(super) use armed::reach;

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(super) const fn reach(_: &str) {}
