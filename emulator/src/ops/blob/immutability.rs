//! Set Blob Immutability Policy and Delete Blob Immutability Policy: protect a blob version from
//! changes until a date.
//!
//! Sources: "Set Blob Immutability Policy", "Delete Blob Immutability Policy". The ETag does not
//! change. A locked policy can only be extended.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=immutabilityPolicies
//! x-ms-immutability-policy-until-date: Fri, 11 Jun 2049 20:00:00 GMT
//! x-ms-immutability-policy-mode: Unlocked
//!
//! 200 OK
//! x-ms-immutability-policy-until-date: Fri, 11 Jun 2049 20:00:00 GMT
//! x-ms-immutability-policy-mode: unlocked
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use super::guard::Guard;
use super::replace::Marks;
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::{BlobAddress, Found};
use crate::records::{BlobRecord, Immutability, Record};
use crate::reply::Reply;
use crate::rules::immutability;
use crate::store::{Stamp, Transaction, View};

/// Header of the date at which a policy ends.
pub const UNTIL: &str = "x-ms-immutability-policy-until-date";
/// Header of a policy's mode.
pub const MODE: &str = "x-ms-immutability-policy-mode";
/// Header of a legal hold.
pub const HOLD: &str = "x-ms-legal-hold";

/// Since this version, responses show policies and holds. "Version 2020-06-12".
pub const SHOWN_SINCE: ApiVersion = ApiVersion::V2020_06_12;

impl Immutability {
    /// Returns the value of `x-ms-immutability-policy-mode` in responses.
    pub const fn mode(self) -> &'static str {
        if self.locked { "locked" } else { "unlocked" }
    }
}

/// The Set Blob Immutability Policy operation.
pub struct SetImmutabilityPolicy {
    address: BlobAddress,
    guard: Guard,
    policy: Immutability,
    is_supported: bool,
}

impl Write for SetImmutabilityPolicy {
    type Checked = Found;
    type Output = Immutability;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetImmutabilityPolicy {
            address: BlobAddress::of(call)?,
            guard: Guard::of_write(call)?,
            policy: policy(call)?.ok_or_else(|| StorageError::missing_header(UNTIL))?,
            is_supported: call.settings.version_immutability,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.address.find(view, stamp.now)?;
        self.guard.check_conditions(&found.blob)?;
        require(self.is_supported)?;
        immutability::judge_policy(found.blob.immutability, Some(self.policy))?;
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<Immutability, StorageError> {
        keep(tx, &self.address, found, |blob| {
            blob.immutability = Some(self.policy);
        })?;
        Ok(self.policy)
    }

    fn render(policy: Immutability, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200)
            .header(UNTIL, policy.until.rfc1123())
            .header(MODE, policy.mode()))
    }
}

/// The Delete Blob Immutability Policy operation.
pub struct DeleteImmutabilityPolicy {
    address: BlobAddress,
    guard: Guard,
    is_supported: bool,
}

impl Write for DeleteImmutabilityPolicy {
    type Checked = Found;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(DeleteImmutabilityPolicy {
            address: BlobAddress::of(call)?,
            guard: Guard::of_write(call)?,
            is_supported: call.settings.version_immutability,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.address.find(view, stamp.now)?;
        self.guard.check_conditions(&found.blob)?;
        require(self.is_supported)?;
        immutability::judge_policy(found.blob.immutability, None)?;
        Ok(found)
    }

    fn apply(self, found: Found, tx: &mut Transaction<'_>, _: &Stamp) -> Result<(), StorageError> {
        keep(tx, &self.address, found, |blob| blob.immutability = None)
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200))
    }
}

/// Parses the policy and hold that a request gives a new blob.
///
/// # Errors
/// 400 `InvalidHeaderValue`; 409 `BlobOperationNotSupported` where the account does not support
/// them.
pub fn marks(call: &Call) -> Result<Marks, StorageError> {
    let marks = Marks {
        sealed: false,
        immutability: policy(call)?,
        legal_hold: hold(call)?,
    };
    if marks != Marks::default() {
        require(call.settings.version_immutability)?;
    }
    Ok(marks)
}

/// Rejects accounts without version-level immutability.
///
/// # Errors
/// 409 `BlobOperationNotSupported`.
pub(super) fn require(is_supported: bool) -> Result<(), StorageError> {
    if is_supported {
        return Ok(());
    }
    Err(ErrorCode::BlobOperationNotSupported.into())
}

/// Stores a blob, snapshot or version with changed policy or hold; keeps ETag and last-modified
/// time.
pub(super) fn keep(
    tx: &mut Transaction<'_>,
    address: &BlobAddress,
    found: Found,
    change: impl FnOnce(&mut BlobRecord),
) -> Result<(), StorageError> {
    let Found {
        container,
        mut blob,
    } = found;
    let key = address.key(container.generation, &blob);
    change(&mut blob);
    blob.save(tx, key)?;
    Ok(())
}

/// Parses `x-ms-immutability-policy-until-date` and `-mode`, which defaults to `Unlocked`.
fn policy(call: &Call) -> Result<Option<Immutability>, StorageError> {
    let locked = match call.header(MODE)? {
        None => false,
        Some(mode) if mode.eq_ignore_ascii_case("unlocked") => false,
        Some(mode) if mode.eq_ignore_ascii_case("locked") => true,
        Some(mode) => return Err(StorageError::invalid_header(MODE, mode)),
    };
    let Some(text) = call.header(UNTIL)?.filter(|text| !text.is_empty()) else {
        return match call.header(MODE)? {
            Some(_) => Err(StorageError::missing_header(UNTIL)),
            None => Ok(None),
        };
    };
    let until = Timestamp::parse_rfc1123(text).filter(|until| *until > call.arrival);
    let until = until.ok_or_else(|| StorageError::invalid_header(UNTIL, text))?;
    Ok(Some(Immutability { until, locked }))
}

pub(super) fn hold(call: &Call) -> Result<Option<bool>, StorageError> {
    match call.header(HOLD)? {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(StorageError::invalid_header(HOLD, text)),
    }
}
