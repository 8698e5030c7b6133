//! [`AzureStorage`]: the port implemented with Microsoft's SDK.

mod answer;
mod asides;
mod begin;
mod blobs;
mod containers;
mod copies;
mod delegate;
#[cfg(feature = "entra")]
mod delegation;
mod leases;
mod listing;
mod messages;
mod open;
mod page;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::Url;
use azure_storage_blob::BlobServiceClient;
use azure_storage_queue::QueueServiceClient;

use crate::account::Credential;
use crate::clock::Clock;
use crate::policy::backoff::{Dice, RetrySettings};

pub(crate) use begin::{BlobClient, Client, ContainerClient};
pub use open::Settings;

/// One storage account, opened with one credential.
///
/// Cheap to clone and safe to share: the SDK clients are created once, all state of a call belongs
/// to that call (DG5), and the transport pools connections.
#[derive(Clone)]
pub struct AzureStorage {
    shared: Arc<Shared>,
}

struct Shared {
    account: String,
    blob_endpoint: Option<Url>,
    blobs: Option<BlobServiceClient>,
    queues: Option<QueueServiceClient>,
    credential: Credential,
    /// The last fetched user delegation key.
    #[cfg(feature = "entra")]
    delegation: delegation::Kept,
    clock: Arc<dyn Clock>,
    /// Bounds and jitter of sequences that start again (`Sleeve::from_start`).
    retry: RetrySettings,
    dice: Dice,
}

impl AzureStorage {
    /// Returns the delay before a sequence starts again after `failed` attempts, or `None` to give
    /// up.
    pub(crate) fn delay_before_restart(&self, failed: u32) -> Option<Duration> {
        let shared = &self.shared;
        shared.retry.delay(failed, None, shared.dice.roll())
    }
}

impl fmt::Debug for AzureStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureStorage")
            .field("account", &self.shared.account)
            .field("credential", &self.shared.credential)
            .finish_non_exhaustive()
    }
}
