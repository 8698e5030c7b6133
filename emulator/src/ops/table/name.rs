//! Names and look-up of the table that a request addresses.

use smalt_protocol::table::TableName;
use smalt_protocol::{ErrorCode, StorageError};

use crate::auth::Identity;
use crate::call::Call;
use crate::keys;
use crate::records::{Record, TableRecord};
use crate::store::View;

/// The valid name of a table, with its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRef {
    /// The account's name.
    pub account: String,
    /// The table's name.
    pub name: TableName,
}

impl TableRef {
    /// Returns the table that a call addresses, directly or through an entity.
    ///
    /// # Errors
    /// 400 for an invalid table name. 403 `AuthorizationFailure` if the signature is for another
    /// table.
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

    /// Returns the key of the table's record.
    pub fn key(&self) -> Vec<u8> {
        keys::table(&self.account, self.name.key())
    }

    /// Loads the record, even of a deleted table.
    pub fn load(&self, view: &dyn View) -> Result<Option<TableRecord>, StorageError> {
        Ok(TableRecord::load(view, &self.key())?)
    }

    /// Loads the table, or fails with the given error.
    pub fn find_or(
        &self,
        view: &dyn View,
        missing: ErrorCode,
    ) -> Result<TableRecord, StorageError> {
        let found = self.load(view)?.filter(|table| table.deleted_at.is_none());
        found.ok_or_else(|| missing.into())
    }

    /// Loads the table, or fails with 404 `TableNotFound`.
    pub fn find(&self, view: &dyn View) -> Result<TableRecord, StorageError> {
        self.find_or(view, ErrorCode::TableNotFound)
    }
}
