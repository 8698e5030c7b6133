//! Checks of lease ids for operations on a leased resource.
//!
//! Source: "Lease Blob" and "Lease Container", outcomes of use attempts; where their tables print
//! 409, their text and the recordings have 412. The functions expect the state at the current time
//! ([`LeaseState::at`]). The lease is checked before conditional headers, as recorded.

use smalt_protocol::{ErrorCode, StorageError};
use uuid::Uuid;

use super::LeaseState;

/// The kind of the leased resource, which decides error codes and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leased {
    /// A leased blob.
    Blob,
    /// A leased container.
    Container,
}

impl Leased {
    fn absent(self) -> StorageError {
        match self {
            Leased::Blob => ErrorCode::LeaseNotPresentWithBlobOperation.into(),
            Leased::Container => ErrorCode::LeaseNotPresentWithContainerOperation.into(),
        }
    }

    fn mismatch(self) -> StorageError {
        match self {
            Leased::Blob => ErrorCode::LeaseIdMismatchWithBlobOperation.into(),
            Leased::Container => ErrorCode::LeaseIdMismatchWithContainerOperation.into(),
        }
    }

    fn lost(self) -> StorageError {
        let error = StorageError::new(ErrorCode::LeaseLost);
        match self {
            Leased::Blob => error,
            Leased::Container => error.with_message(
                "A lease ID was specified, but the lease for the container has expired.",
            ),
        }
    }

    fn missing(self) -> StorageError {
        let error = StorageError::new(ErrorCode::LeaseIdMissing);
        match self {
            Leased::Blob => error,
            Leased::Container => error.with_message(
                "There is currently a lease on the container and no lease ID was specified in the \
                 request.",
            ),
        }
    }
}

/// Checks an operation that a lease guards: a write to a blob, or the deletion of a container.
///
/// # Errors
/// 412 `LeaseIdMissing` without an id on a leased resource, else as [`check_read`].
pub fn check_write(of: Leased, state: LeaseState, given: Option<Uuid>) -> Result<(), StorageError> {
    let is_locked = matches!(
        state,
        LeaseState::Leased { .. } | LeaseState::Breaking { .. }
    );
    if given.is_none() && is_locked {
        return Err(of.missing());
    }
    check_read(of, state, given)
}

/// Checks an operation that needs no lease. If an id is given, it must be that of the active lease.
///
/// # Errors
/// 412 `LeaseNotPresentWith...Operation` if there is no lease, 412
/// `LeaseIdMismatchWith...Operation` for another id, 412 `LeaseLost` if the lease has expired or
/// was broken.
pub fn check_read(of: Leased, state: LeaseState, given: Option<Uuid>) -> Result<(), StorageError> {
    let Some(given) = given else { return Ok(()) };
    match state {
        LeaseState::Available => Err(of.absent()),
        LeaseState::Leased { id, .. } | LeaseState::Breaking { id, .. } if id == given => Ok(()),
        LeaseState::Broken { id } | LeaseState::Expired { id, .. } if id == given => Err(of.lost()),
        _ => Err(of.mismatch()),
    }
}

/// Checks a write that may create the blob. `None` means that there is no blob.
///
/// # Errors
/// As [`check_write`]; 412 `LeaseNotPresentWithBlobOperation` for an id without a blob.
pub fn check_create(state: Option<LeaseState>, given: Option<Uuid>) -> Result<(), StorageError> {
    check_write(Leased::Blob, state.unwrap_or_default(), given)
}

impl LeaseState {
    /// Returns the lease after a write, which forgets an expired or broken lease.
    #[must_use]
    pub fn after_write(self) -> Self {
        match self {
            LeaseState::Broken { .. } | LeaseState::Expired { .. } => LeaseState::Available,
            state => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smalt_protocol::Timestamp;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);

    fn states() -> [LeaseState; 5] {
        let until = Timestamp::from_unix_s(100);
        [
            LeaseState::Available,
            LeaseState::Leased {
                id: A,
                duration_s: Some(15),
                until,
            },
            LeaseState::Breaking { id: A, until },
            LeaseState::Broken { id: A },
            LeaseState::Expired {
                id: A,
                duration_s: 15,
            },
        ]
    }

    /// The use table of "Lease Blob", one row per line: available, leased, breaking, broken,
    /// expired.
    #[test]
    fn uses_of_a_blob_follow_the_table() {
        use ErrorCode::{
            LeaseIdMismatchWithBlobOperation as Mismatch, LeaseIdMissing as Missing,
            LeaseLost as Lost, LeaseNotPresentWithBlobOperation as Absent,
        };
        let (ok, no) = (None, Some);
        for (is_write, given, expected) in [
            (true, Some(A), [no(Absent), ok, ok, no(Lost), no(Lost)]),
            (
                true,
                Some(B),
                [
                    no(Absent),
                    no(Mismatch),
                    no(Mismatch),
                    no(Mismatch),
                    no(Mismatch),
                ],
            ),
            (true, None, [ok, no(Missing), no(Missing), ok, ok]),
            (false, Some(A), [no(Absent), ok, ok, no(Lost), no(Lost)]),
            (
                false,
                Some(B),
                [
                    no(Absent),
                    no(Mismatch),
                    no(Mismatch),
                    no(Mismatch),
                    no(Mismatch),
                ],
            ),
            (false, None, [ok, ok, ok, ok, ok]),
        ] {
            for (state, expected) in states().into_iter().zip(expected) {
                let check = if is_write { check_write } else { check_read };
                let error = check(Leased::Blob, state, given).err();
                assert!(error.iter().all(|e| e.status() == 412));
                assert_eq!(
                    error.map(|e| e.code()),
                    expected,
                    "{is_write} {given:?} {state:?}"
                );
            }
        }
    }

    #[test]
    fn containers_have_their_own_messages() {
        let [_, leased, _, broken, _] = states();
        let error = |state, given| check_write(Leased::Container, state, given).unwrap_err();
        assert!(error(leased, None).message().contains("on the container"));
        assert!(
            error(broken, Some(A))
                .message()
                .contains("for the container")
        );
        assert_eq!(
            error(leased, Some(B)).code(),
            ErrorCode::LeaseIdMismatchWithContainerOperation
        );
    }

    #[test]
    fn write_forgets_only_inactive_leases() {
        let after = states().map(LeaseState::after_write);
        let [available, leased, breaking, ..] = states();
        assert_eq!(after, [available, leased, breaking, available, available]);
    }

    #[test]
    fn lease_id_without_a_blob_is_rejected() {
        let error = check_create(None, Some(A)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LeaseNotPresentWithBlobOperation);
        assert_eq!(check_create(None, None), Ok(()));
    }
}
