//! What a lease lets through: operations on the resource, with or without a lease id.

use smalt_protocol::{ErrorCode, StorageError};
use uuid::Uuid;

use super::{LeaseState, Subject};

/// Whether an operation that a lease does not guard may go on: every read, and on a container
/// everything but its deletion. An id that was given must be that of an active lease.
///
/// # Errors
/// The 412 of the table "use of the resource".
pub fn check_read(
    subject: Subject,
    state: LeaseState,
    given: Option<Uuid>,
) -> Result<(), StorageError> {
    let Some(given) = given else { return Ok(()) };
    match state {
        LeaseState::Available => Err(not_present(subject)),
        _ if state.id() != Some(given) => Err(mismatch(subject)),
        LeaseState::Leased { .. } | LeaseState::Breaking { .. } => Ok(()),
        LeaseState::Broken { .. } | LeaseState::Expired { .. } => Err(lost(subject)),
    }
}

/// Whether an operation that a lease guards may go on: every write to a blob, and the deletion of a
/// blob or container. While the lease is active its id must be given.
///
/// # Errors
/// The 412 of the table "use of the resource".
pub fn check_write(
    subject: Subject,
    state: LeaseState,
    given: Option<Uuid>,
) -> Result<(), StorageError> {
    match state {
        LeaseState::Leased { .. } | LeaseState::Breaking { .. } if given.is_none() => {
            Err(missing(subject))
        }
        _ => check_read(subject, state, given),
    }
}

/// The lease of a blob after a write: one that had ended is forgotten, so that who held it cannot
/// renew it over somebody else's change.
pub const fn after_write(state: LeaseState) -> LeaseState {
    match state {
        LeaseState::Broken { .. } | LeaseState::Expired { .. } => LeaseState::Available,
        state => state,
    }
}

fn missing(subject: Subject) -> StorageError {
    StorageError::new(ErrorCode::LeaseIdMissing).with_message(match subject {
        Subject::Blob => {
            "There is currently a lease on the blob and no lease ID was specified in the request."
        }
        Subject::Container => {
            "There is currently a lease on the container and no lease ID was specified in the \
             request."
        }
    })
}

fn lost(subject: Subject) -> StorageError {
    StorageError::new(ErrorCode::LeaseLost).with_message(match subject {
        Subject::Blob => "A lease ID was specified, but the lease for the blob has expired.",
        Subject::Container => {
            "A lease ID was specified, but the lease for the container has expired."
        }
    })
}

fn mismatch(subject: Subject) -> StorageError {
    match subject {
        Subject::Blob => ErrorCode::LeaseIdMismatchWithBlobOperation.into(),
        Subject::Container => ErrorCode::LeaseIdMismatchWithContainerOperation.into(),
    }
}

fn not_present(subject: Subject) -> StorageError {
    match subject {
        Subject::Blob => ErrorCode::LeaseNotPresentWithBlobOperation.into(),
        Subject::Container => ErrorCode::LeaseNotPresentWithContainerOperation.into(),
    }
}

#[cfg(test)]
mod tests {
    use smalt_protocol::Timestamp;

    use super::*;
    use ErrorCode::{LeaseIdMissing as Missing, LeaseLost as Lost};

    const A: Uuid = Uuid::from_u128(0xA);
    const B: Uuid = Uuid::from_u128(0xB);

    fn states() -> [LeaseState; 5] {
        let until = Timestamp::from_unix_s(60);
        let duration_s = Some(60);
        [
            LeaseState::Available,
            LeaseState::Leased {
                id: A,
                duration_s,
                until,
            },
            LeaseState::Breaking { id: A, until },
            LeaseState::Broken { id: A },
            LeaseState::Expired {
                id: A,
                duration_s: 60,
            },
        ]
    }

    fn codes(
        check: fn(Subject, LeaseState, Option<Uuid>) -> Result<(), StorageError>,
        subject: Subject,
        given: Option<Uuid>,
    ) -> [Option<ErrorCode>; 5] {
        states().map(|state| check(subject, state, given).err().map(|error| error.code()))
    }

    #[test]
    fn the_tables_of_use_hold_for_every_state_and_id() {
        for (subject, absent, other) in [
            (
                Subject::Blob,
                ErrorCode::LeaseNotPresentWithBlobOperation,
                ErrorCode::LeaseIdMismatchWithBlobOperation,
            ),
            (
                Subject::Container,
                ErrorCode::LeaseNotPresentWithContainerOperation,
                ErrorCode::LeaseIdMismatchWithContainerOperation,
            ),
        ] {
            let with_a = [Some(absent), None, None, Some(Lost), Some(Lost)];
            let with_b = [
                Some(absent),
                Some(other),
                Some(other),
                Some(other),
                Some(other),
            ];
            let without = [None, Some(Missing), Some(Missing), None, None];
            assert_eq!(codes(check_write, subject, Some(A)), with_a);
            assert_eq!(codes(check_write, subject, Some(B)), with_b);
            assert_eq!(codes(check_write, subject, None), without);
            assert_eq!(codes(check_read, subject, Some(A)), with_a);
            assert_eq!(codes(check_read, subject, Some(B)), with_b);
            assert_eq!(codes(check_read, subject, None), [None; 5]);
        }
    }

    #[test]
    fn a_write_forgets_a_lease_that_had_ended() {
        let [available, leased, breaking, broken, expired] = states();
        for (before, after) in [
            (available, available),
            (leased, leased),
            (breaking, breaking),
            (broken, available),
            (expired, available),
        ] {
            assert_eq!(after_write(before), after);
        }
    }
}
