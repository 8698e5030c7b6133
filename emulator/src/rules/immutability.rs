//! Immutability policies and legal holds of single versions.
//!
//! Sources: "Store business-critical blob data with immutable storage", "Set Blob Immutability
//! Policy". A version under a hold or a policy can be neither deleted nor changed in place; a
//! version whose policy has expired can be deleted. The hold is checked first.

use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::records::Immutability;

/// The protection of a blob at a given time, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// An expired policy.
    PastPolicy,
    /// A policy that has not expired.
    Policy,
    /// A legal hold, with or without a policy.
    LegalHold,
}

/// The kind of change to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// New content or metadata in the same version.
    InPlace,
    /// Deletion of the version, at once or softly.
    Removal,
}

/// Returns the protection of a blob with this policy and hold.
pub fn protection(
    policy: Option<Immutability>,
    hold: Option<bool>,
    now: Timestamp,
) -> Option<Protection> {
    match policy {
        _ if hold == Some(true) => Some(Protection::LegalHold),
        Some(policy) if now < policy.until => Some(Protection::Policy),
        Some(_) => Some(Protection::PastPolicy),
        None => None,
    }
}

/// Checks whether the protection permits a change.
///
/// # Errors
/// 409 `BlobImmutableDueToLegalHold`, 409 `BlobImmutableDueToPolicy`.
pub fn judge(protection: Option<Protection>, change: Change) -> Result<(), StorageError> {
    match (protection, change) {
        (None, _) | (Some(Protection::PastPolicy), Change::Removal) => Ok(()),
        (Some(Protection::LegalHold), _) => Err(ErrorCode::BlobImmutableDueToLegalHold.into()),
        (Some(_), _) => Err(ErrorCode::BlobImmutableDueToPolicy.into()),
    }
}

/// Checks whether `wanted` may replace the current policy; `None` deletes it. A locked policy can
/// only be extended.
///
/// # Errors
/// 409 `BlobImmutableDueToPolicy`.
pub fn judge_policy(
    current: Option<Immutability>,
    wanted: Option<Immutability>,
) -> Result<(), StorageError> {
    let Some(current) = current.filter(|current| current.locked) else {
        return Ok(());
    };
    match wanted {
        Some(wanted) if wanted.locked && wanted.until >= current.until => Ok(()),
        _ => Err(ErrorCode::BlobImmutableDueToPolicy.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(until_s: u64, locked: bool) -> Immutability {
        Immutability {
            until: Timestamp::from_unix_s(until_s),
            locked,
        }
    }

    #[test]
    fn holds_and_policies_prevent_changes() {
        let (due_to_policy, due_to_hold) = (
            Err(ErrorCode::BlobImmutableDueToPolicy),
            Err(ErrorCode::BlobImmutableDueToLegalHold),
        );
        let now = Timestamp::from_unix_s(100);
        for (policy, hold, in_place, removal) in [
            (None, None, Ok(()), Ok(())),
            (None, Some(false), Ok(()), Ok(())),
            (None, Some(true), due_to_hold, due_to_hold),
            (Some(policy(101, false)), None, due_to_policy, due_to_policy),
            (
                Some(policy(101, true)),
                Some(true),
                due_to_hold,
                due_to_hold,
            ),
            (Some(policy(100, true)), None, due_to_policy, Ok(())),
            (
                Some(policy(100, false)),
                Some(true),
                due_to_hold,
                due_to_hold,
            ),
        ] {
            let protection = protection(policy, hold, now);
            for (change, expected) in [(Change::InPlace, in_place), (Change::Removal, removal)] {
                let judged = judge(protection, change).map_err(|error| error.code());
                assert_eq!(judged, expected, "{policy:?} {hold:?} {change:?}");
            }
        }
    }

    #[test]
    fn locked_policy_can_only_be_extended() {
        for (current, wanted, expected) in [
            (None, Some(policy(1, true)), true),
            (Some(policy(5, false)), Some(policy(1, false)), true),
            (Some(policy(5, false)), None, true),
            (Some(policy(5, true)), Some(policy(6, true)), true),
            (Some(policy(5, true)), Some(policy(5, true)), true),
            (Some(policy(5, true)), Some(policy(4, true)), false),
            (Some(policy(5, true)), Some(policy(6, false)), false),
            (Some(policy(5, true)), None, false),
        ] {
            let judged = judge_policy(current, wanted).is_ok();
            assert_eq!(judged, expected, "{current:?} {wanted:?}");
        }
    }
}
