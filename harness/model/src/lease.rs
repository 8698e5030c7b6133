//! Leases: states, actions, uses. Source: "Lease Blob" and "Lease Container", outcome tables.

use smalt_protocol::ErrorCode;

use crate::expected::{Expected, Fact, Refusal};
use crate::vocabulary::{LeaseAction, LeaseId, Numbers};

/// A lease as of its last change. [`Lease::at`] returns its state at a later time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Hash)]
pub enum Lease {
    /// There is no lease.
    #[default]
    Available,
    /// The lease is active.
    Leased {
        /// The lease id.
        id: LeaseId,
        /// Duration in seconds and end, in seconds of the Unix epoch; `None` if infinite.
        term: Option<(u32, u64)>,
    },
    /// The lease is breaking, and ends at `until_s`.
    Breaking {
        /// The lease id.
        id: LeaseId,
        /// The end of the lease, in seconds of the Unix epoch.
        until_s: u64,
    },
    /// The lease was broken.
    Broken(LeaseId),
    /// The lease expired; the number is its duration in seconds.
    Expired(LeaseId, u32),
}

/// The kind of the leased resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// A blob.
    Blob,
    /// A container.
    Container,
}

impl Lease {
    /// Returns the state of the lease at this time.
    #[must_use]
    pub fn at(self, now_s: u64) -> Self {
        match self {
            Lease::Leased {
                id,
                term: Some((length_s, until_s)),
            } if until_s <= now_s => Lease::Expired(id, length_s),
            Lease::Breaking { id, until_s } if until_s <= now_s => Lease::Broken(id),
            lease => lease,
        }
    }

    /// Returns the lease after a write: a broken or expired lease can no longer be renewed.
    #[must_use]
    pub fn after_write(self, now_s: u64) -> Self {
        match self.at(now_s) {
            Lease::Broken(_) | Lease::Expired(..) => Lease::Available,
            lease => lease,
        }
    }

    /// Returns the headers that show the lease.
    pub fn facts(self, now_s: u64) -> [Fact; 3] {
        let (state, status, duration) = match self.at(now_s) {
            Lease::Available => ("available", "unlocked", None),
            Lease::Leased { term: None, .. } => ("leased", "locked", Some("infinite")),
            Lease::Leased { .. } => ("leased", "locked", Some("fixed")),
            Lease::Breaking { .. } => ("breaking", "locked", None),
            Lease::Broken(_) => ("broken", "unlocked", None),
            Lease::Expired(..) => ("expired", "unlocked", None),
        };
        let header = |name, value: &str| Fact::Header(name, Some(value.to_owned()));
        [
            header("x-ms-lease-state", state),
            header("x-ms-lease-status", status),
            Fact::Header("x-ms-lease-duration", duration.map(str::to_owned)),
        ]
    }

    pub(crate) fn id(self) -> Option<LeaseId> {
        match self {
            Lease::Available => None,
            Lease::Leased { id, .. }
            | Lease::Breaking { id, .. }
            | Lease::Broken(id)
            | Lease::Expired(id, _) => Some(id),
        }
    }

    fn is_active(self) -> bool {
        matches!(self, Lease::Leased { .. } | Lease::Breaking { .. })
    }
}

/// Checks an operation that needs no lease id; an id that is given must be that of the active
/// lease.
pub fn check_use(of: Of, lease: Lease, given: Option<LeaseId>) -> Result<(), Refusal> {
    let Some(given) = given else { return Ok(()) };
    let (absent, mismatch) = match of {
        Of::Blob => (
            ErrorCode::LeaseNotPresentWithBlobOperation,
            ErrorCode::LeaseIdMismatchWithBlobOperation,
        ),
        Of::Container => (
            ErrorCode::LeaseNotPresentWithContainerOperation,
            ErrorCode::LeaseIdMismatchWithContainerOperation,
        ),
    };
    match lease.id() {
        None => Err(absent.into()),
        Some(id) if id != given => Err(mismatch.into()),
        Some(_) if lease.is_active() => Ok(()),
        Some(_) => Err(ErrorCode::LeaseLost.into()),
    }
}

/// Checks an operation that requires the id of an active lease.
pub fn check_guarded(of: Of, lease: Lease, given: Option<LeaseId>) -> Result<(), Refusal> {
    if given.is_none() && lease.is_active() {
        return Err(ErrorCode::LeaseIdMissing.into());
    }
    check_use(of, lease, given)
}

/// Does a lease operation; returns the new lease, and the answer without tag and time.
pub fn act(
    lease: Lease,
    action: LeaseAction,
    now_s: u64,
    numbers: &mut Numbers,
) -> Result<(Lease, Expected), Refusal> {
    let lease = lease.at(now_s);
    match action {
        LeaseAction::Acquire {
            proposed,
            duration_s,
        } => acquire(lease, proposed, duration_s, now_s, numbers),
        LeaseAction::Renew(id) => renew(lease, id, now_s),
        LeaseAction::Change(id, proposed) => change(lease, id, proposed),
        LeaseAction::Release(id) if lease.id() == Some(id) => {
            Ok((Lease::Available, Expected::ok(200)))
        }
        LeaseAction::Release(_) => Err(ErrorCode::LeaseIdMismatchWithLeaseOperation.into()),
        LeaseAction::Break { period_s } => end(lease, period_s, now_s),
    }
}

fn held(id: LeaseId, duration_s: Option<u32>, now_s: u64) -> Lease {
    let term = duration_s.map(|length_s| (length_s, now_s + u64::from(length_s)));
    Lease::Leased { id, term }
}

fn acquire(
    lease: Lease,
    proposed: Option<LeaseId>,
    duration_s: Option<u32>,
    now_s: u64,
    numbers: &mut Numbers,
) -> Result<(Lease, Expected), Refusal> {
    let is_same = proposed.is_some() && lease.id() == proposed;
    match lease {
        Lease::Breaking { .. } if is_same => {
            return Err(ErrorCode::LeaseIsBreakingAndCannotBeAcquired.into());
        }
        Lease::Leased { .. } if is_same => {}
        lease if lease.is_active() => return Err(ErrorCode::LeaseAlreadyPresent.into()),
        _ => {}
    }
    let id = proposed.unwrap_or_else(|| numbers.lease());
    let answer = Expected::ok(201).with(Fact::LeaseId(id));
    Ok((held(id, duration_s, now_s), answer))
}

fn renew(lease: Lease, id: LeaseId, now_s: u64) -> Result<(Lease, Expected), Refusal> {
    let duration_s = match lease {
        lease if lease.id() != Some(id) => {
            return Err(ErrorCode::LeaseIdMismatchWithLeaseOperation.into());
        }
        Lease::Leased { term, .. } => term.map(|(length_s, _)| length_s),
        Lease::Expired(_, length_s) => Some(length_s),
        _ => return Err(ErrorCode::LeaseIsBrokenAndCannotBeRenewed.into()),
    };
    let answer = Expected::ok(200).with(Fact::LeaseId(id));
    Ok((held(id, duration_s, now_s), answer))
}

fn change(lease: Lease, id: LeaseId, proposed: LeaseId) -> Result<(Lease, Expected), Refusal> {
    let knows = lease.id() == Some(id) || lease.id() == Some(proposed);
    match lease {
        Lease::Leased { term, .. } if knows => {
            let changed = Lease::Leased { id: proposed, term };
            Ok((changed, Expected::ok(200).with(Fact::LeaseId(proposed))))
        }
        Lease::Breaking { .. } if knows => Err(ErrorCode::LeaseIsBreakingAndCannotBeChanged.into()),
        Lease::Leased { .. } | Lease::Breaking { .. } => {
            Err(ErrorCode::LeaseIdMismatchWithLeaseOperation.into())
        }
        _ => Err(ErrorCode::LeaseNotPresentWithLeaseOperation.into()),
    }
}

fn end(lease: Lease, period_s: Option<u32>, now_s: u64) -> Result<(Lease, Expected), Refusal> {
    let id = lease
        .id()
        .ok_or(ErrorCode::LeaseNotPresentWithLeaseOperation)?;
    let left_s = match lease {
        Lease::Leased { term: None, .. } => u64::from(period_s.unwrap_or(0)),
        Lease::Leased {
            term: Some((_, until_s)),
            ..
        }
        | Lease::Breaking { until_s, .. } => until_s - now_s,
        _ => 0,
    };
    let time_s = period_s.map_or(left_s, |period_s| left_s.min(u64::from(period_s)));
    let until_s = now_s + time_s;
    let answer = Expected::ok(202).with(Fact::Header("x-ms-lease-time", Some(time_s.to_string())));
    Ok((Lease::Breaking { id, until_s }, answer))
}
