//! Finding the table that a request addresses.

use smalt_protocol::table::TableName;
use smalt_protocol::{ErrorCode, StorageError};

use crate::auth::Identity;
use crate::call::Call;
use crate::keys;
use crate::records::{Record, TableRecord};
use crate::store::View;

/// A table by account and name. Its name is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRef {
    /// Account.
    pub account: String,
    /// Name.
    pub name: TableName,
}

impl TableRef {
    /// The table that a call addresses, by itself or by an entity.
    ///
    /// # Errors
    /// 400 for a name that no table can have.
    /// 403 `AuthorizationFailure` for another table than the one that a signature is for.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let signed = call
            .query("tn")
            .filter(|_| matches!(call.identity, Identity::Sas(_)));
        if signed.is_some_and(|signed| !signed.eq_ignore_ascii_case(call.table())) {
            return Err(ErrorCode::AuthorizationFailure.into());
        }
        Ok(TableRef {
            account: call.account().to_owned(),
            name: TableName::parse(call.table())?,
        })
    }

    /// Its key.
    pub fn key(&self) -> Vec<u8> {
        keys::table(&self.account, self.name.key())
    }

    /// The table as it stands, a deleted one included.
    pub fn load(&self, view: &dyn View) -> Result<Option<TableRecord>, StorageError> {
        Ok(TableRecord::load(view, &self.key())?)
    }

    /// The table, or this refusal.
    pub fn find_or(
        &self,
        view: &dyn View,
        missing: ErrorCode,
    ) -> Result<TableRecord, StorageError> {
        let found = self.load(view)?.filter(|table| table.deleted_at.is_none());
        found.ok_or_else(|| missing.into())
    }

    /// The table, or 404 `TableNotFound`.
    pub fn find(&self, view: &dyn View) -> Result<TableRecord, StorageError> {
        self.find_or(view, ErrorCode::TableNotFound)
    }
}
