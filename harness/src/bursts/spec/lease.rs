//! A lease while time stands still. Source: "Lease Blob" and "Lease Container", outcome tables.

use smalt_model::vocabulary::{LeaseAction, LeaseId};
use smalt_protocol::ErrorCode;

use super::output::Output;
use super::value::Value;
use super::{Refused, same};

/// A lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lease {
    /// Nobody has it.
    #[default]
    Free,
    /// Somebody has it, for so many seconds or for ever.
    Held(Value, Option<u32>),
    /// It ends in so many seconds.
    Breaking(Value, u32),
    /// It was broken.
    Broken(Value),
}

/// What an answer to a lease operation shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Status.
    pub status: u16,
    /// `x-ms-lease-id`, where it is shown.
    pub id: Option<Value>,
    /// `x-ms-lease-time` in seconds.
    pub time_s: Option<u32>,
}

/// Codes of uses without a lease operation: no lease, another's, a broken one.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    absent: ErrorCode,
    mismatch: ErrorCode,
}

/// Codes of blobs.
pub const BLOB: Codes = Codes {
    absent: ErrorCode::LeaseNotPresentWithBlobOperation,
    mismatch: ErrorCode::LeaseIdMismatchWithBlobOperation,
};
/// Codes of containers.
pub const CONTAINER: Codes = Codes {
    absent: ErrorCode::LeaseNotPresentWithContainerOperation,
    mismatch: ErrorCode::LeaseIdMismatchWithContainerOperation,
};

impl Lease {
    fn id(self) -> Option<Value> {
        match self {
            Lease::Free => None,
            Lease::Held(id, _) | Lease::Breaking(id, _) | Lease::Broken(id) => Some(id),
        }
    }

    fn is(self, LeaseId(number): LeaseId) -> bool {
        self.id().is_some_and(|id| id.is(number))
    }

    fn is_active(self) -> bool {
        matches!(self, Lease::Held(..) | Lease::Breaking(..))
    }

    /// `x-ms-lease-state`.
    pub fn state(self) -> &'static str {
        match self {
            Lease::Free => "available",
            Lease::Held(..) => "leased",
            Lease::Breaking(..) => "breaking",
            Lease::Broken(_) => "broken",
        }
    }

    /// What a write leaves of it.
    #[must_use]
    pub fn after_write(self) -> Self {
        match self {
            Lease::Broken(_) => Lease::Free,
            lease => lease,
        }
    }

    /// A use that works without an id.
    ///
    /// # Errors
    /// When an id is given that is not the active one.
    pub fn check_use(self, codes: Codes, given: Option<LeaseId>) -> Result<(), Refused> {
        match given {
            None => Ok(()),
            Some(_) if self == Lease::Free => Err(codes.absent.into()),
            Some(given) if !self.is(given) => Err(codes.mismatch.into()),
            Some(_) if self.is_active() => Ok(()),
            Some(_) => Err(ErrorCode::LeaseLost.into()),
        }
    }

    /// A use that an active lease guards.
    ///
    /// # Errors
    /// As [`Lease::check_use`], and when no id is given although there is one.
    pub fn check_guarded(self, codes: Codes, given: Option<LeaseId>) -> Result<(), Refused> {
        match given {
            None if self.is_active() => Err(ErrorCode::LeaseIdMissing.into()),
            given => self.check_use(codes, given),
        }
    }

    /// A lease operation. `shown` is the id of an answer that was seen: the service makes one up
    /// for who proposes none.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn act(&mut self, action: LeaseAction, shown: Value) -> Result<Leased, Refused> {
        match action {
            LeaseAction::Acquire {
                proposed,
                duration_s,
            } => self.acquire(proposed, duration_s, shown),
            LeaseAction::Renew(id) => self.renew(id),
            LeaseAction::Change(id, proposed) => self.change(id, proposed),
            LeaseAction::Release(id) if self.is(id) => {
                *self = Lease::Free;
                Ok(leased(200, None, None))
            }
            LeaseAction::Release(_) => Err(ErrorCode::LeaseIdMismatchWithLeaseOperation.into()),
            LeaseAction::Break { period_s } => self.end(period_s),
        }
    }

    fn acquire(
        &mut self,
        proposed: Option<LeaseId>,
        duration_s: Option<u32>,
        shown: Value,
    ) -> Result<Leased, Refused> {
        let is_same = proposed.is_some_and(|id| self.is(id));
        match *self {
            Lease::Breaking(..) if is_same => {
                return Err(ErrorCode::LeaseIsBreakingAndCannotBeAcquired.into());
            }
            lease if lease.is_active() && !is_same => {
                return Err(ErrorCode::LeaseAlreadyPresent.into());
            }
            _ => {}
        }
        let id = proposed.map_or(shown, |LeaseId(number)| Value::Seen(number));
        *self = Lease::Held(id, duration_s);
        Ok(leased(201, Some(id), None))
    }

    fn renew(&mut self, id: LeaseId) -> Result<Leased, Refused> {
        match *self {
            lease if !lease.is(id) => Err(ErrorCode::LeaseIdMismatchWithLeaseOperation.into()),
            Lease::Held(id, _) => Ok(leased(200, Some(id), None)),
            _ => Err(ErrorCode::LeaseIsBrokenAndCannotBeRenewed.into()),
        }
    }

    fn change(&mut self, id: LeaseId, proposed: LeaseId) -> Result<Leased, Refused> {
        let knows = self.is(id) || self.is(proposed);
        match *self {
            Lease::Held(_, length_s) if knows => {
                let id = Value::Seen(proposed.0);
                *self = Lease::Held(id, length_s);
                Ok(leased(200, Some(id), None))
            }
            Lease::Breaking(..) if knows => {
                Err(ErrorCode::LeaseIsBreakingAndCannotBeChanged.into())
            }
            Lease::Held(..) | Lease::Breaking(..) => {
                Err(ErrorCode::LeaseIdMismatchWithLeaseOperation.into())
            }
            _ => Err(ErrorCode::LeaseNotPresentWithLeaseOperation.into()),
        }
    }

    fn end(&mut self, period_s: Option<u32>) -> Result<Leased, Refused> {
        let (id, left_s) = match *self {
            Lease::Free => return Err(ErrorCode::LeaseNotPresentWithLeaseOperation.into()),
            // An infinite lease has no rest of its own.
            Lease::Held(id, None) => (id, period_s.unwrap_or(0)),
            Lease::Held(id, Some(left_s)) | Lease::Breaking(id, left_s) => (id, left_s),
            Lease::Broken(id) => (id, 0),
        };
        let left_s = period_s.map_or(left_s, |period_s| left_s.min(period_s));
        *self = match left_s {
            0 => Lease::Broken(id),
            left_s => Lease::Breaking(id, left_s),
        };
        Ok(leased(202, None, Some(left_s)))
    }
}

fn leased(status: u16, id: Option<Value>, time_s: Option<u32>) -> Leased {
    Leased { status, id, time_s }
}

impl Leased {
    /// Compares with the answer that was seen.
    ///
    /// # Errors
    /// When it shows another id or time.
    pub fn check(self, seen: &Output) -> Result<(), String> {
        if let Some(id) = self.id {
            same(
                "lease id",
                &id,
                &seen.lease.map_or(Value::Unseen, Value::Seen),
            )?;
        }
        let time = self.time_s.map(|time_s| time_s.to_string());
        match time {
            Some(_) => same("lease time", &time, &seen.lease_time),
            None => Ok(()),
        }
    }
}
