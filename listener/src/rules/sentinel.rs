//! One idle poller for a whole fleet: who polls is who holds the lease of a blob.
//!
//! ```text
//! Unsure --acquire granted--> Holder --renewal refused, or lapsed--> Unsure
//! Unsure, Follower --acquire refused: taken--> Follower --no answer--> Unsure
//! Holder --work for more than one, or leaving--> releases --> Unsure
//! ```
//! The holder polls. A follower does not: it tries to take the lease once in a lease's length,
//! which it gets when the holder has died, left, or has more work than it can do: so a fleet wakes
//! up one by one. Who is unsure, because the lease cannot be asked for, looks as often as the
//! watchdog does: no failure of the blob service strands a message.
//!
//! The lease saves requests and keeps nothing safe: two pollers at a time do no harm.

use std::time::Duration;

/// Shortest and longest lease in seconds (Lease Blob: 15 to 60).
pub const LEASE_S: std::ops::RangeInclusive<u64> = 15..=60;
/// After a failed request, the next one follows in this time.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The holder renews after a lease's length over this.
const RENEW_PARTS: u32 = 3;

/// What a listener of a fleet is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Not known: the watchdog looks.
    Unsure,
    /// Another one polls.
    Follower,
    /// This one polls.
    Holder,
}

/// A request to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Take the lease.
    Acquire,
    /// Keep it.
    Renew,
    /// Give it up.
    Release,
}

/// How it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was done.
    Done,
    /// Another has the lease.
    Taken,
    /// Nothing that helps.
    Failed,
}

/// A request with its answer, as the executor reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) ask: Ask,
    pub(crate) asked: Duration,
    pub(crate) said: Said,
}

/// The state of one listener. Times are since any fixed moment.
#[derive(Clone, Copy, Debug)]
pub struct Sentinel {
    lease: Duration,
    role: Role,
    /// Until when the lease holds, while it is held.
    valid_until: Duration,
    /// When the next request is due.
    next_at: Duration,
}

impl Sentinel {
    /// One that knows nothing yet.
    pub fn new(lease: Duration) -> Self {
        Sentinel {
            lease,
            role: Role::Unsure,
            valid_until: Duration::ZERO,
            next_at: Duration::ZERO,
        }
    }

    /// The role at `now`; a lease that was not renewed in time is nobody's.
    pub fn role(&self, now: Duration) -> Role {
        match self.role {
            Role::Holder if now >= self.valid_until => Role::Unsure,
            role => role,
        }
    }

    /// The request that is due, if one is. A lease that is held and not wanted is given up; one
    /// that is wanted is asked for, or kept.
    pub fn due(&self, now: Duration, wanted: bool) -> Option<Ask> {
        match (self.role(now), wanted) {
            (Role::Holder, false) => Some(Ask::Release),
            (_, false) => None,
            _ if now < self.next_at => None,
            (Role::Holder, true) => Some(Ask::Renew),
            (Role::Unsure | Role::Follower, true) => Some(Ask::Acquire),
        }
    }

    /// Takes in the answer to a request that was sent at `asked`. `jitter_permille` spreads the
    /// attempts of the followers.
    pub fn answered(&mut self, ask: Ask, asked: Duration, said: Said, jitter_permille: u32) {
        let jittered = self.lease * jitter_permille / 1000;
        match (ask, said) {
            (Ask::Acquire | Ask::Renew, Said::Done) => {
                self.role = Role::Holder;
                self.valid_until = asked + self.lease;
                self.next_at = asked + self.lease / RENEW_PARTS;
            }
            (Ask::Acquire | Ask::Renew, Said::Taken) => {
                self.role = Role::Follower;
                self.next_at = asked + jittered;
            }
            // A holder stays one until its lease lapses.
            (Ask::Renew, Said::Failed) => self.next_at = asked + AGAIN_AFTER,
            (Ask::Acquire, Said::Failed) => {
                self.role = Role::Unsure;
                self.next_at = asked + AGAIN_AFTER;
            }
            (Ask::Release, _) => {
                // Others had their turn while there was more to do than this one could.
                self.role = Role::Unsure;
                self.next_at = asked;
            }
        }
    }

    /// The longest that the fleet is without a poller: its holder dies right after a renewal, and
    /// each follower has just asked.
    pub fn gap(lease: Duration) -> Duration {
        lease + lease * crate::rules::backoff::JITTER_MAX_PERMILLE / 1000
    }
}

#[cfg(test)]
#[path = "sentinel_tests.rs"]
mod tests;
