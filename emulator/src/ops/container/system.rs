//! Containers that the service makes by itself: `$logs` and `$web`.
//!
//! Sources: "Storage Analytics logging" (`$logs` is made when logging is enabled and cannot be
//! deleted, its blobs can) and "Static website hosting in Azure Storage" (`$web` is made when the
//! website is enabled). No document has the answer to a deletion of `$logs`. smalt gives the one
//! that production gives for `$blobchangefeed`, as reported in microsoft/AzureStorageExplorer,
//! issue 6550.

use std::sync::Arc;

use smalt_protocol::{ErrorCode, StorageError};

use super::create::{self, Fresh};
use crate::config::AccountSettings;
use crate::ops::lookup::ContainerName;
use crate::store::{Stamp, Transaction};

/// The container of Storage Analytics logging.
pub const LOGS: &str = "$logs";
/// The container of a static website.
pub const WEB: &str = "$web";

/// Returns the name of such a container.
pub fn name(account: &str, settings: Arc<AccountSettings>, container: &str) -> ContainerName {
    ContainerName {
        account: account.to_owned(),
        container: container.to_owned(),
        settings,
        data_lake: false,
        creator: None,
    }
}

/// Makes a container that does not exist.
///
/// # Errors
/// When the store fails.
pub fn make_missing(
    tx: &mut Transaction<'_>,
    name: &ContainerName,
    stamp: &Stamp,
) -> Result<(), StorageError> {
    let there = name.load(tx)?.filter(|found| found.deleted_at.is_none());
    if there.is_none() {
        create::make(tx, name, Fresh::default(), stamp)?;
    }
    Ok(())
}

/// Rejects the deletion of `$logs`, and that of its name.
///
/// # Errors
/// 403 `InsufficientAccountPermissions`.
pub fn check_removable(name: &ContainerName) -> Result<(), StorageError> {
    if name.container != LOGS {
        return Ok(());
    }
    let code = ErrorCode::InsufficientAccountPermissions;
    Err(StorageError::new(code).with_message(
        "The account being accessed does not have sufficient permissions to execute this \
         operation.",
    ))
}
