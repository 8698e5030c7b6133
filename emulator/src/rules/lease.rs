//! Leases of blobs and containers.
//!
//! Source: the outcome tables of "Lease Blob" and "Lease Container". Time-driven transitions are
//! not events: [`LeaseState::at`] computes the state that holds at a time. [`act`] is the table of
//! lease operations, [`check_read`] and [`check_write`] are the tables of the operations that a
//! lease guards.

mod access;
mod action;

pub use access::{Leased, check_create, check_read, check_write};
pub use action::{Action, Done, act};

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;
use uuid::Uuid;

/// A lease as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseState {
    /// Nobody holds it.
    #[default]
    Available,
    /// Held under this id.
    Leased {
        /// Lease id.
        id: Uuid,
        /// Length in seconds; absent: infinite.
        duration_s: Option<u32>,
        /// When it expires; [`Timestamp::MAX`] when infinite.
        until: Timestamp,
    },
    /// Broken, but still held until then.
    Breaking {
        /// Lease id.
        id: Uuid,
        /// When it is free.
        until: Timestamp,
    },
    /// Was broken; the id is remembered.
    Broken {
        /// Lease id.
        id: Uuid,
    },
    /// Ran out; the id is remembered.
    Expired {
        /// Lease id.
        id: Uuid,
        /// Length that a renewal gives, in seconds.
        duration_s: u32,
    },
}

impl LeaseState {
    /// The state that holds at this time.
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

    /// The id of the lease, active or remembered.
    pub const fn id(self) -> Option<Uuid> {
        match self {
            LeaseState::Available => None,
            LeaseState::Leased { id, .. }
            | LeaseState::Breaking { id, .. }
            | LeaseState::Broken { id }
            | LeaseState::Expired { id, .. } => Some(id),
        }
    }

    /// `x-ms-lease-state`.
    pub const fn state_str(self) -> &'static str {
        match self {
            LeaseState::Available => "available",
            LeaseState::Leased { .. } => "leased",
            LeaseState::Breaking { .. } => "breaking",
            LeaseState::Broken { .. } => "broken",
            LeaseState::Expired { .. } => "expired",
        }
    }

    /// `x-ms-lease-status`.
    pub const fn status_str(self) -> &'static str {
        match self {
            LeaseState::Leased { .. } | LeaseState::Breaking { .. } => "locked",
            _ => "unlocked",
        }
    }

    /// `x-ms-lease-duration`, shown while leased.
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
