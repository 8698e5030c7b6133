//! Opens an account: the SDK's clients with the sleeve's policies and transport.

use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use azure_core::http::policies::Policy;
use azure_core::http::{ClientOptions, RetryOptions, Transport as SdkTransport};
use azure_storage_blob::{BlobServiceClient, BlobServiceClientOptions};
use azure_storage_queue::{QueueServiceClient, QueueServiceClientOptions};
use smalt_protocol::ApiVersion;
use smalt_protocol::service::Service;

use super::{AzureStorage, Shared};
use crate::account::{Account, AccountError, Credential};
use crate::ambient::{self, SystemClock};
use crate::clock::Clock;
use crate::policy::backoff::{Dice, RetrySettings};
use crate::policy::keep::KeepPolicy;
use crate::policy::query::QueryPolicy;
use crate::policy::retry::RetryPolicy;
use crate::policy::stamp::{Signer, StampPolicy};
use crate::transport::{SdkClient, Transport};

/// Settings of the storage client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Clock that stamps and signs requests. Default: the system's clock.
    pub clock: Arc<dyn Clock>,
    /// Number of attempts and delays of retries.
    pub retry: RetrySettings,
    /// Seed of the retry jitter. Default: from the system, so that workers do not retry in step.
    /// Tests set their own.
    pub seed: Option<u64>,
    /// `x-ms-version` of every request. Default: the SDK's own, 2026-04-06.
    pub api_version: ApiVersion,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            clock: Arc::new(SystemClock),
            retry: RetrySettings::default(),
            seed: None,
            api_version: ApiVersion::V2026_04_06,
        }
    }
}

impl AzureStorage {
    /// Opens `account` through `transport`. Sends nothing yet.
    ///
    /// # Errors
    /// [`AccountError::Client`] if the SDK rejects the combination of endpoint and credential.
    pub fn open(
        account: Account,
        transport: Arc<dyn Transport>,
        settings: Settings,
    ) -> Result<Self, AccountError> {
        let pipeline = Pipeline {
            account: &account,
            transport,
            settings: &settings,
        };
        let token = token(&account.credential);
        let mut blobs = None;
        if let Some(endpoint) = account.blob.clone() {
            let options = BlobServiceClientOptions {
                client_options: pipeline.options(Service::Blob),
                version: settings.api_version.to_string(),
            };
            let client = BlobServiceClient::new(endpoint, token.clone(), Some(options));
            blobs = Some(client.map_err(|error| AccountError::Client(error.to_string()))?);
        }
        let mut queues = None;
        if let Some(endpoint) = account.queue.clone() {
            let options = QueueServiceClientOptions {
                client_options: pipeline.options(Service::Queue),
                version: settings.api_version.to_string(),
            };
            let client = QueueServiceClient::new(endpoint, token, Some(options));
            queues = Some(client.map_err(|error| AccountError::Client(error.to_string()))?);
        }
        Ok(AzureStorage {
            shared: Arc::new(Shared {
                account: account.name,
                blob_endpoint: account.blob,
                blobs,
                queues,
                credential: account.credential,
                #[cfg(feature = "entra")]
                delegation: super::delegation::Kept::default(),
                clock: settings.clock,
                retry: settings.retry,
                dice: Dice::new(settings.seed.unwrap_or_else(ambient::seed)),
            }),
        })
    }
}

#[cfg(feature = "entra")]
fn token(credential: &Credential) -> Option<Arc<dyn TokenCredential>> {
    match credential {
        Credential::Token(token) => Some(Arc::clone(token)),
        _ => None,
    }
}

#[cfg(not(feature = "entra"))]
fn token(_: &Credential) -> Option<Arc<dyn TokenCredential>> {
    None
}

/// Components of the pipelines of both services.
struct Pipeline<'a> {
    account: &'a Account,
    transport: Arc<dyn Transport>,
    settings: &'a Settings,
}

impl Pipeline<'_> {
    fn options(&self, service: Service) -> ClientOptions {
        let clock = || Arc::clone(&self.settings.clock);
        // Each service has its own random stream, so that events on one do not change the other's
        // delays.
        let seed = self.settings.seed.unwrap_or_else(ambient::seed) ^ u64::from(service.letter());
        let sas = match &self.account.credential {
            Credential::Sas(sas) => Some(sas.clone()),
            _ => None,
        };
        let signer = match &self.account.credential {
            Credential::Key(key) => Some(Signer {
                service,
                version: self.settings.api_version,
                account: self.account.name.clone(),
                key: key.clone(),
            }),
            _ => None,
        };
        let query: Arc<dyn Policy> = Arc::new(QueryPolicy::new(sas));
        let retry = Arc::new(RetryPolicy::new(self.settings.retry, clock(), seed));
        let stamp = Arc::new(StampPolicy::new(clock(), signer));
        let transport = Arc::new(SdkClient::new(Arc::clone(&self.transport)));
        ClientOptions {
            per_call_policies: vec![Arc::new(KeepPolicy), query, retry],
            per_try_policies: vec![stamp],
            retry: RetryOptions::none(),
            transport: Some(SdkTransport::new(transport)),
            ..ClientOptions::default()
        }
    }
}
