//! Gridwich's storage service: sleeves, and the providers that hand them out.
//!
//! A [`Sleeve`] is {client, service, context}: one blob or container, its account, and what its
//! calls send (G14). Each operation returns its result and the sleeve for the next one, whose
//! context has the ETag of the response (G13, DG5):
//!
//! ```
//! # use smalt_sleeve::port::{BlobId, CallContext, DeleteSnapshots, PortResult};
//! # use smalt_sleeve::{Accounts, StorageContext};
//! # async fn example(accounts: &Accounts) -> PortResult<()> {
//! let context = StorageContext::from(CallContext::safe(r#"{"job":7}"#));
//! accounts
//!     .serve(async |providers| {
//!         let blob = BlobId::new("inbox", "film.mp4");
//!         let sleeve = providers.blob("archive", &blob, &context)?;
//!         sleeve
//!             .from_start(async |sleeve| {
//!                 let (properties, sleeve) = sleeve.properties().await?;
//!                 if properties.metadata.contains_key("done") {
//!                     // Deletes what was looked at, or starts again.
//!                     sleeve.tracking(true).delete(DeleteSnapshots::Refuse).await?;
//!                 }
//!                 Ok(())
//!             })
//!             .await
//!     })
//!     .await
//! # }
//! ```

mod blob;
mod container;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::context::StorageContext;
use crate::error::ErrorKind;
use crate::policy::{Call, Repeat};
use crate::port::{BlobId, CallContext, Conditions, PortResult, Storage, Tag};
use crate::storage::{AzureStorage, BlobClient, Client, ContainerClient};

pub use self::blob::CopyFrom;

/// The sleeve of a blob.
pub type BlobSleeve<'r> = Sleeve<'r, azure_storage_blob::BlobClient>;
/// The sleeve of a container.
pub type ContainerSleeve<'r> = Sleeve<'r, azure_storage_blob::BlobContainerClient>;

/// The accounts that a storage service is configured for, by name.
#[derive(Debug, Default)]
pub struct Accounts(BTreeMap<String, AzureStorage>);

impl FromIterator<AzureStorage> for Accounts {
    fn from_iter<I: IntoIterator<Item = AzureStorage>>(accounts: I) -> Self {
        let accounts = accounts.into_iter();
        Accounts(accounts.map(|it| (it.account().to_owned(), it)).collect())
    }
}

impl Accounts {
    /// Serves one external request. Its providers and sleeves end with it (G15): what `work`
    /// returns cannot contain them, and nothing that outlives the request can.
    ///
    /// ```compile_fail
    /// # use smalt_sleeve::{Accounts, Providers};
    /// async fn singleton(accounts: &'static Accounts) {
    ///     let mut kept: Option<&'static Providers<'static>> = None;
    ///     accounts.serve(async |providers| kept = Some(providers)).await;
    /// }
    /// ```
    pub async fn serve<R>(&self, work: impl AsyncFnOnce(&Providers<'_>) -> R) -> R {
        let providers = Providers {
            accounts: self,
            blobs: Cache::default(),
            containers: Cache::default(),
        };
        work(&providers).await
    }
}

/// Hands out the sleeves of one external request. Each blob and container has one client per
/// account and operation context (G5, DG4).
pub struct Providers<'a> {
    accounts: &'a Accounts,
    blobs: Cache<(String, BlobId), BlobClient>,
    containers: Cache<(String, String), ContainerClient>,
}

impl Providers<'_> {
    /// Returns the sleeve of a blob.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the account is not configured.
    pub fn blob(
        &self,
        account: &str,
        blob: &BlobId,
        context: &StorageContext,
    ) -> PortResult<BlobSleeve<'_>> {
        let service = self.service(account)?;
        let (key, cx) = ((account.to_owned(), blob.clone()), context.call());
        let client = self.blobs.get(key, cx, || service.blob(cx, blob));
        Ok(Sleeve {
            client,
            service,
            context: context.clone(),
        })
    }

    /// Returns the sleeve of a container.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the account is not configured.
    pub fn container(
        &self,
        account: &str,
        container: &str,
        context: &StorageContext,
    ) -> PortResult<ContainerSleeve<'_>> {
        let service = self.service(account)?;
        let (key, cx) = ((account.to_owned(), container.to_owned()), context.call());
        let client = self
            .containers
            .get(key, cx, || service.container(cx, container));
        Ok(Sleeve {
            client,
            service,
            context: context.clone(),
        })
    }

    fn service(&self, account: &str) -> PortResult<&AzureStorage> {
        self.accounts.0.get(account).ok_or_else(|| {
            let call = Call::new("Open Account", account.to_owned(), Repeat::Read, None);
            call.invalid("the storage service is not configured for this account")
        })
    }
}

impl fmt::Debug for Providers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Providers").field(self.accounts).finish()
    }
}

/// Clients by place and operation context.
struct Cache<K, C>(Mutex<HashMap<(K, CallContext), Arc<C>>>);

impl<K, C> Default for Cache<K, C> {
    fn default() -> Self {
        Cache(Mutex::default())
    }
}

impl<K: Eq + Hash, C> Cache<K, C> {
    fn get(&self, place: K, cx: &CallContext, make: impl FnOnce() -> C) -> Arc<C> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let client = clients.entry((place, cx.clone()));
        Arc::clone(client.or_insert_with(|| Arc::new(make())))
    }
}

/// One blob or container, its account, and the context of the next call.
pub struct Sleeve<'r, C> {
    client: Arc<Client<C>>,
    service: &'r AzureStorage,
    context: StorageContext,
}

impl<C> Clone for Sleeve<'_, C> {
    fn clone(&self) -> Self {
        self.with(self.context.clone())
    }
}

impl<C> fmt::Debug for Sleeve<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleeve")
            .field("service", self.service)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl<'r, C> Sleeve<'r, C> {
    /// Returns the account.
    pub fn service(&self) -> &'r AzureStorage {
        self.service
    }

    /// Returns the URL of the blob or container with a SAS, for steps that need a credential of
    /// their own, such as encoders ([`AzureStorage::signed_url`]).
    ///
    /// # Errors
    /// As [`AzureStorage::signed_url`], except that a missing signing key is fetched.
    pub async fn signed_url(&self, permissions: &str, lifetime: Duration) -> PortResult<String> {
        let (service, client) = (self.service, &self.client);
        if service.lacks_signing_key(lifetime) {
            let cx = self.context.call();
            service.fetch_signing_key(cx, lifetime).await?;
        }
        service.signed_url(
            &client.container,
            client.blob.as_deref(),
            permissions,
            lifetime,
        )
    }

    /// Returns what the next call sends.
    pub fn context(&self) -> &StorageContext {
        &self.context
    }

    /// Returns the sleeve whose next call sends the ETag of the last response, or does not.
    #[must_use]
    pub fn tracking(&self, tracking: bool) -> Self {
        self.with(self.context.with_tracking(tracking))
    }

    /// Runs `sequence`, and runs it again from the start while it fails because the resource
    /// changed in between ([`ErrorKind::ConditionNotMet`], G11). Attempts and jittered delays are
    /// those of [`RetrySettings`](crate::RetrySettings) (DG3). Each run begins without an ETag.
    ///
    /// # Errors
    /// Returns the last error. [`ErrorKind::OutcomeUnknown`] does not start again: the write may
    /// have been executed, and only the caller knows whether it may be executed twice.
    pub async fn from_start<T>(
        &self,
        mut sequence: impl AsyncFnMut(Self) -> PortResult<T>,
    ) -> PortResult<T> {
        let mut failed = 0;
        loop {
            let error = match sequence(self.with(self.context.reset())).await {
                Err(error) if error.kind == ErrorKind::ConditionNotMet => error,
                done => return done,
            };
            failed += 1;
            let wait = self.service.delay_before_restart(failed);
            tokio::time::sleep(wait.ok_or(error)?).await;
        }
    }

    fn with(&self, context: StorageContext) -> Self {
        Sleeve {
            client: Arc::clone(&self.client),
            service: self.service,
            context,
        }
    }

    /// Returns the sleeve after a response: an ETag replaces the last one, whether it is tracked or
    /// not; a response without one leaves it.
    fn after(&self, etag: &Tag) -> Self {
        self.with(self.context.with_etag(Some(etag.clone())))
    }

    /// Returns the sleeve after a delete (DG2).
    fn gone(&self) -> Self {
        self.with(self.context.with_etag(None))
    }

    fn conditions(&self) -> Conditions {
        self.context.conditions()
    }

    /// Refuses to send a tracked request to an operation for which the service has no `If-Match`.
    fn untracked(&self, operation: &'static str) -> PortResult<()> {
        let (call, _) = self.client.begin(operation, Repeat::Read)?;
        match self.conditions().if_match {
            None => Ok(()),
            Some(_) => Err(call.invalid("the service compares no ETags here: stop tracking")),
        }
    }
}
