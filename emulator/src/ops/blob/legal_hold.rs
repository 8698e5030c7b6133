//! Set Blob Legal Hold: protects a blob version from changes until the hold is removed.
//!
//! Source: "Set Blob Legal Hold". The ETag does not change.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=legalhold
//! x-ms-legal-hold: true
//!
//! 200 OK
//! x-ms-legal-hold: true
//! ```

use smalt_protocol::StorageError;

use super::guard::Guard;
use super::immutability::{self, HOLD};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::{BlobAddress, Found};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Set Blob Legal Hold operation.
pub struct SetLegalHold {
    address: BlobAddress,
    guard: Guard,
    hold: bool,
    is_supported: bool,
}

impl Write for SetLegalHold {
    type Checked = Found;
    type Output = bool;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetLegalHold {
            address: BlobAddress::of(call)?,
            guard: Guard::of_write(call)?,
            hold: immutability::hold(call)?.ok_or_else(|| StorageError::missing_header(HOLD))?,
            is_supported: call.settings.version_immutability,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.address.find(view, stamp.now)?;
        self.guard.check_conditions(&found.blob)?;
        immutability::require(self.is_supported)?;
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<bool, StorageError> {
        immutability::keep(tx, &self.address, found, |blob| {
            blob.legal_hold = Some(self.hold);
        })?;
        Ok(self.hold)
    }

    fn render(hold: bool, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200).header(HOLD, if hold { "true" } else { "false" }))
    }
}
