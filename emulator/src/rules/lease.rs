//! Leases of blobs and containers.
//!
//! Source: the outcome tables of "Lease Blob" and "Lease Container". Leases expire without an
//! event: [`LeaseState::at`] computes the state at a given time. [`act`] implements the lease
//! operations; [`check_read`] and [`check_write`] implement the operations that a lease guards.

mod access;
mod action;

pub use access::{Leased, check_create, check_read, check_write};
pub use action::{Action, Done, act};

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;
use uuid::Uuid;

/// The stored state of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseState {
    /// No lease.
    #[default]
    Available,
    /// An active lease.
    Leased {
        /// Lease id.
        id: Uuid,
        /// Duration in seconds; `None` for an infinite lease.
        duration_s: Option<u32>,
        /// When the lease expires; [`Timestamp::MAX`] for an infinite lease.
        until: Timestamp,
    },
    /// A broken lease whose break period still runs.
    Breaking {
        /// Lease id.
        id: Uuid,
        /// When the break period ends.
        until: Timestamp,
    },
    /// A broken lease; its id is kept.
    Broken {
        /// Lease id.
        id: Uuid,
    },
    /// An expired lease; its id is kept.
    Expired {
        /// Lease id.
        id: Uuid,
        /// Duration of a renewed lease, in seconds.
        duration_s: u32,
    },
}

impl LeaseState {
    /// Returns the state at `now`.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        match self {
            LeaseState::Leased {
                id,
                duration_s: Some(duration_s),
                until,
            } if now >= until => LeaseState::Expired { id, duration_s },
            LeaseState::Breaking { id, until } if now >= until => LeaseState::Broken { id },
            state => state,
        }
    }

    /// Returns the id of the lease, active or not.
    pub const fn id(self) -> Option<Uuid> {
        match self {
            LeaseState::Available => None,
            LeaseState::Leased { id, .. }
            | LeaseState::Breaking { id, .. }
            | LeaseState::Broken { id }
            | LeaseState::Expired { id, .. } => Some(id),
        }
    }

    /// Returns the value of `x-ms-lease-state`.
    pub const fn state_str(self) -> &'static str {
        match self {
            LeaseState::Available => "available",
            LeaseState::Leased { .. } => "leased",
            LeaseState::Breaking { .. } => "breaking",
            LeaseState::Broken { .. } => "broken",
            LeaseState::Expired { .. } => "expired",
        }
    }

    /// Returns the value of `x-ms-lease-status`.
    pub const fn status_str(self) -> &'static str {
        match self {
            LeaseState::Leased { .. } | LeaseState::Breaking { .. } => "locked",
            _ => "unlocked",
        }
    }

    /// Returns the value of `x-ms-lease-duration`; `None` unless the lease is active.
    pub const fn duration_str(self) -> Option<&'static str> {
        match self {
            LeaseState::Leased {
                duration_s: Some(_),
                ..
            } => Some("fixed"),
            LeaseState::Leased {
                duration_s: None, ..
            } => Some("infinite"),
            _ => None,
        }
    }
}
