//! One idle poller for a whole fleet: the listener that holds the lease of a blob polls.
//!
//! ```text
//! Unsure --acquire granted--> Holder --renewal refused, or lapsed--> Unsure
//! Unsure, Follower --acquire refused: taken--> Follower --no answer--> Unsure
//! Holder --work for more than one, or leaving--> releases --> Unsure
//! ```
//! The holder polls. A follower does not poll; it tries to acquire the lease once per lease length.
//! It succeeds when the holder has died, stopped, or has more work than it can do, so that a fleet
//! wakes up one listener at a time. A listener that is unsure, because its request for the lease
//! failed, looks as often as the watchdog does, so that no failure of the blob service strands a
//! message.
//!
//! The lease saves requests but protects nothing: two pollers at a time do no harm.

use std::time::Duration;

/// Shortest and longest lease in seconds (Lease Blob: 15 to 60).
pub const LEASE_S: std::ops::RangeInclusive<u64> = 15..=60;
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The holder renews this many times per lease length.
const RENEW_PARTS: u32 = 3;

/// The role of a listener in its fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Unknown: only the watchdog looks.
    Unsure,
    /// Another listener polls.
    Follower,
    /// This listener polls.
    Holder,
}

/// A request about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Acquire the lease.
    Acquire,
    /// Renew the lease.
    Renew,
    /// Release the lease.
    Release,
}

/// The answer to a request about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The request succeeded.
    Done,
    /// Another listener holds the lease.
    Taken,
    /// The request failed, or its answer says nothing about the holder.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseAnswer {
    pub(crate) ask: Ask,
    pub(crate) asked: Duration,
    pub(crate) said: Said,
}

/// The sentinel state of one listener. Times count from any fixed moment.
#[derive(Clone, Copy, Debug)]
pub struct Sentinel {
    lease: Duration,
    role: Role,
    /// Whether the service may have granted the lease: no answer since has denied it.
    may_hold: bool,
    /// End of the lease while it is held.
    valid_until: Duration,
    /// Time of the next request.
    next_at: Duration,
}

impl Sentinel {
    /// Creates the state of a listener that has not yet asked for the lease.
    pub fn new(lease: Duration) -> Self {
        Sentinel {
            lease,
            role: Role::Unsure,
            may_hold: false,
            valid_until: Duration::ZERO,
            next_at: Duration::ZERO,
        }
    }

    /// Returns the role at `now`; a lease that was not renewed in time is lost.
    pub fn role(&self, now: Duration) -> Role {
        match self.role {
            Role::Holder if now >= self.valid_until => Role::Unsure,
            role => role,
        }
    }

    /// Returns whether the lease must be released when the listener leaves. The service may have
    /// granted it although its answer was lost, or came after the lease had lapsed here.
    pub fn may_hold(&self) -> bool {
        self.may_hold
    }

    /// Returns the request that is due, if any: releases a held lease that is not wanted, and
    /// acquires or renews one that is.
    pub fn due(&self, now: Duration, wanted: bool) -> Option<Ask> {
        match (self.role(now), wanted) {
            (Role::Holder, false) => Some(Ask::Release),
            (_, false) => None,
            _ if now < self.next_at => None,
            (Role::Holder, true) => Some(Ask::Renew),
            (Role::Unsure | Role::Follower, true) => Some(Ask::Acquire),
        }
    }

    /// Records the answer to a request sent at `asked`. `jitter_permille` spreads the attempts of
    /// the followers.
    pub fn answered(&mut self, ask: Ask, asked: Duration, said: Said, jitter_permille: u32) {
        let jittered = self.lease * jitter_permille / 1000;
        self.may_hold = match (ask, said) {
            (_, Said::Taken) | (Ask::Release, Said::Done) => false,
            (Ask::Acquire | Ask::Renew, _) => true,
            (Ask::Release, Said::Failed) => self.may_hold,
        };
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
            // A holder keeps its role until its lease expires.
            (Ask::Renew, Said::Failed) => self.next_at = asked + AGAIN_AFTER,
            (Ask::Acquire, Said::Failed) => {
                self.role = Role::Unsure;
                self.next_at = asked + AGAIN_AFTER;
            }
            (Ask::Release, _) => {
                // Others could acquire the lease while this listener had more work than it could
                // do.
                self.role = Role::Unsure;
                self.next_at = asked;
            }
        }
    }

    /// Returns the longest time that the fleet is without a poller: its holder dies right after a
    /// renewal, and each follower has just asked.
    pub fn gap(lease: Duration) -> Duration {
        lease + lease * crate::rules::backoff::JITTER_MAX_PERMILLE / 1000
    }
}

#[cfg(test)]
#[path = "sentinel_tests.rs"]
mod tests;
