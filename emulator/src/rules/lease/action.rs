//! Lease operations: the outcome for each state, action and id.

use smalt_protocol::{ErrorCode, StorageError, Timestamp};
use uuid::Uuid;

use super::{LeaseState, Leased};

/// A lease operation with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Acquires a lease, or replaces the caller's own with another duration.
    Acquire {
        /// Id of the new lease: the proposed one, or a fresh one.
        id: Uuid,
        /// Duration in seconds; `None` for an infinite lease.
        duration_s: Option<u32>,
    },
    /// Restarts the duration.
    Renew {
        /// Id of the caller's lease.
        id: Uuid,
    },
    /// Changes the id of the lease.
    Change {
        /// Id of the caller's lease.
        id: Uuid,
        /// The new id.
        proposed: Uuid,
    },
    /// Frees the resource at once.
    Release {
        /// Id of the caller's lease.
        id: Uuid,
    },
    /// Ends the lease without its id.
    Break {
        /// Maximum time until the lease ends, in seconds; `None` for the rest of a fixed lease, or
        /// at once for an infinite one.
        period_s: Option<u32>,
    },
}

/// The outcome of a lease operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The new state of the lease.
    pub state: LeaseState,
    /// `x-ms-lease-id`, after acquire, renew and change.
    pub id: Option<Uuid>,
    /// `x-ms-lease-time`, in seconds, after break.
    pub time_s: Option<u64>,
}

/// Applies a lease operation to the state at `now`.
///
/// # Errors
/// The 409 errors of the outcome tables.
pub fn act(
    of: Leased,
    state: LeaseState,
    action: Action,
    now: Timestamp,
) -> Result<Done, StorageError> {
    let state = state.at(now);
    match action {
        Action::Acquire { id, duration_s } => {
            check_acquire(state, id)?;
            Ok(held(id, duration_s, now))
        }
        Action::Renew { id } => {
            let duration_s = check_renew(of, state, id)?;
            Ok(held(id, duration_s, now))
        }
        Action::Change { id, proposed } => change(of, state, id, proposed),
        Action::Release { id } if state.id() == Some(id) => Ok(Done {
            state: LeaseState::Available,
            id: None,
            time_s: None,
        }),
        Action::Release { .. } => Err(mismatch(of)),
        Action::Break { period_s } => end(of, state, period_s, now),
    }
}

fn held(id: Uuid, duration_s: Option<u32>, now: Timestamp) -> Done {
    let until = duration_s.map_or(Timestamp::MAX, |s| now.plus_s(u64::from(s)));
    Done {
        state: LeaseState::Leased {
            id,
            duration_s,
            until,
        },
        id: Some(id),
        time_s: None,
    }
}

fn check_acquire(state: LeaseState, id: Uuid) -> Result<(), StorageError> {
    match state {
        LeaseState::Leased { id: held, .. } if held != id => {
            Err(ErrorCode::LeaseAlreadyPresent.into())
        }
        LeaseState::Breaking { id: held, .. } if held == id => {
            Err(ErrorCode::LeaseIsBreakingAndCannotBeAcquired.into())
        }
        LeaseState::Breaking { .. } => Err(ErrorCode::LeaseAlreadyPresent.into()),
        _ => Ok(()),
    }
}

/// Returns the duration of the renewed lease. Its holder can renew an expired lease: had the blob
/// been written since, the lease would be available ([`LeaseState::after_write`]).
fn check_renew(of: Leased, state: LeaseState, id: Uuid) -> Result<Option<u32>, StorageError> {
    if state.id() != Some(id) {
        return Err(mismatch(of));
    }
    match state {
        LeaseState::Leased { duration_s, .. } => Ok(duration_s),
        LeaseState::Expired { duration_s, .. } => Ok(Some(duration_s)),
        _ => Err(ErrorCode::LeaseIsBrokenAndCannotBeRenewed.into()),
    }
}

fn change(of: Leased, state: LeaseState, id: Uuid, proposed: Uuid) -> Result<Done, StorageError> {
    // Repeating a completed change succeeds, because its response may have been lost.
    let knows = |held: Uuid| held == id || held == proposed;
    match state {
        LeaseState::Leased {
            id: held,
            duration_s,
            until,
        } if knows(held) => Ok(Done {
            state: LeaseState::Leased {
                id: proposed,
                duration_s,
                until,
            },
            id: Some(proposed),
            time_s: None,
        }),
        LeaseState::Breaking { id: held, .. } if knows(held) => {
            Err(ErrorCode::LeaseIsBreakingAndCannotBeChanged.into())
        }
        LeaseState::Leased { .. } | LeaseState::Breaking { .. } => Err(mismatch(of)),
        _ => Err(not_present(of)),
    }
}

fn end(
    of: Leased,
    state: LeaseState,
    period_s: Option<u32>,
    now: Timestamp,
) -> Result<Done, StorageError> {
    let asked = period_s.map(|period_s| now.plus_s(u64::from(period_s)));
    // A period can only bring the end of a fixed or breaking lease forward.
    let (id, limit) = match state {
        LeaseState::Available => return Err(not_present(of)),
        LeaseState::Broken { id } | LeaseState::Expired { id, .. } => (id, now),
        LeaseState::Leased {
            id,
            duration_s: None,
            ..
        } => (id, asked.unwrap_or(now)),
        LeaseState::Leased { id, until, .. } | LeaseState::Breaking { id, until } => (id, until),
    };
    let until = asked.filter(|asked| *asked < limit).unwrap_or(limit);
    let state = if until > now {
        LeaseState::Breaking { id, until }
    } else {
        LeaseState::Broken { id }
    };
    Ok(Done {
        state,
        id: None,
        time_s: Some(seconds_until(until, now)),
    })
}

/// Rounds to the nearest second: "approximate time remaining in the lease period". A client that
/// repeats the break until it gets 0 may find the lease still breaking for up to half a second.
fn seconds_until(until: Timestamp, now: Timestamp) -> u64 {
    let left = until.since(now);
    left.as_secs() + u64::from(left.subsec_millis() >= 500)
}

fn mismatch(of: Leased) -> StorageError {
    StorageError::new(ErrorCode::LeaseIdMismatchWithLeaseOperation).with_message(match of {
        Leased::Blob => "The lease ID specified did not match the lease ID for the blob.",
        Leased::Container => "The lease ID specified did not match the lease ID for the container.",
    })
}

fn not_present(of: Leased) -> StorageError {
    StorageError::new(ErrorCode::LeaseNotPresentWithLeaseOperation).with_message(match of {
        Leased::Blob => "There is currently no lease on the blob.",
        Leased::Container => "There is currently no lease on the container.",
    })
}

#[cfg(test)]
#[path = "action_tests.rs"]
mod tests;
