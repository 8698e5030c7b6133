//! An account that lives as long as the test.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use azure_core::http::{ClientOptions, Url};
use azure_storage_blob::{BlobContainerClient, BlobServiceClient, BlobServiceClientOptions};
use azure_storage_queue::{QueueClient, QueueServiceClient, QueueServiceClientOptions};
use smalt::{Clock, Emulator, Exchange, Timestamp};
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;
use smalt_sleeve::{FnTransport, Transport};

pub use smalt::store::OpenError;

use super::{FaultPlan, LeasedSection, Messages, Work, blind};
use crate::wire::in_process;

/// Initial time of the service: 2026-11-21 10:00:00.
const START_UNIX_S: u64 = 1_795_255_200;
/// Default seed.
const SEED: u64 = 1;

/// The account `devstoreaccount1` of a separate emulator, in this process and in memory. Clones
/// share the account.
#[derive(Clone, Debug)]
pub struct TestAccount {
    emulator: Emulator,
    seen: Arc<Mutex<Vec<Exchange>>>,
}

impl TestAccount {
    /// Opens a fresh account. Must be called in a tokio runtime, whose time the service uses.
    ///
    /// # Errors
    /// When the emulator cannot be opened, which does not happen in memory.
    pub fn open() -> Result<Self, OpenError> {
        Self::seeded(SEED)
    }

    /// Opens a fresh account that generates its ids from this seed: request ids, ETags, lease ids,
    /// pop receipts.
    ///
    /// # Errors
    /// As [`TestAccount::open`].
    pub fn seeded(seed: u64) -> Result<Self, OpenError> {
        let start = Timestamp::from_unix_s(START_UNIX_S);
        Self::on_clock(Clock::tokio(start), seed)
    }

    /// Opens a fresh account with a given clock: [`Clock::system`] for clients behind sockets,
    /// which sign with the machine's time; [`Clock::manual`] when time must only move on request.
    ///
    /// # Errors
    /// As [`TestAccount::open`].
    pub fn on_clock(clock: Clock, seed: u64) -> Result<Self, OpenError> {
        let seen: Arc<Mutex<Vec<Exchange>>> = Arc::default();
        let noted = Arc::clone(&seen);
        let emulator = Emulator::builder()
            .clock(clock)
            .seed(seed)
            .observe(move |exchange| {
                let mut seen = noted.lock().unwrap_or_else(PoisonError::into_inner);
                seen.push(exchange);
            })
            .open()?;
        Ok(TestAccount { emulator, seen })
    }

    /// Returns the emulator, for raw requests, account settings and the clock.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Returns the service's time.
    pub fn now(&self) -> Timestamp {
        self.emulator.now()
    }

    /// Advances the service's clock without the time of your code.
    pub fn advance(&self, by: Duration) {
        self.emulator.clock().advance(by);
    }

    /// Returns options for any of Microsoft's clients. They need no credential.
    pub fn client_options(&self) -> ClientOptions {
        ClientOptions {
            transport: Some(self.emulator.sdk_transport()),
            ..ClientOptions::default()
        }
    }

    /// Returns Microsoft's client of the Blob service.
    ///
    /// # Errors
    /// As returned by the SDK.
    pub fn blobs(&self) -> azure_core::Result<BlobServiceClient> {
        let options = BlobServiceClientOptions {
            client_options: self.client_options(),
            ..Default::default()
        };
        BlobServiceClient::new(endpoint(10000)?, None, Some(options))
    }

    /// Returns Microsoft's client of the Queue service.
    ///
    /// # Errors
    /// As returned by the SDK.
    pub fn queues(&self) -> azure_core::Result<QueueServiceClient> {
        let options = QueueServiceClientOptions {
            client_options: self.client_options(),
            ..Default::default()
        };
        QueueServiceClient::new(endpoint(10001)?, None, Some(options))
    }

    /// Creates a container.
    ///
    /// # Errors
    /// As returned by the service, for example when the container exists.
    pub async fn container(&self, name: &str) -> azure_core::Result<BlobContainerClient> {
        let container = self.blobs()?.blob_container_client(name);
        container.create(None).await?;
        Ok(container)
    }

    /// Creates a queue.
    ///
    /// # Errors
    /// As returned by the service.
    pub async fn queue(&self, name: &str) -> azure_core::Result<QueueClient> {
        let queue = self.queues()?.queue_client(name)?;
        queue.create(None).await?;
        Ok(queue)
    }

    /// Returns the transport for clients made with `smalt-sleeve`, the sweeper and the listener.
    pub fn transport(&self) -> Arc<dyn Transport> {
        let emulator = self.emulator.clone();
        Arc::new(FnTransport::new(move |request: http::Request<_>| {
            let emulator = emulator.clone();
            async move { in_process::call(&emulator, request).await }
        }))
    }

    /// Plans a fault in calls of an operation; by default in the next one. Operations are named by
    /// their ids in `docs/operations.md`; `*` matches all.
    #[must_use = "a plan has no effect until a method says how the calls fail"]
    pub fn fault(&self, operation: &str) -> FaultPlan<'_> {
        FaultPlan::new(self.emulator.faults(), operation)
    }

    /// Returns a record of who works on what, for the assertions.
    pub fn work(&self) -> Work {
        Work::new(self.emulator.clone())
    }

    /// Returns a watch over the holders of the lease of `path`: a container, or `container/blob`.
    pub fn leased_section(&self, path: &str) -> LeasedSection {
        LeasedSection::new(self.clone(), path)
    }

    /// Returns the history of each message of a queue.
    pub fn messages(&self, queue: &str) -> Messages {
        Messages::of(&self.history(), queue, self.now())
    }

    /// Returns every exchange so far, as the service saw it.
    pub fn history(&self) -> Vec<Exchange> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    /// Asserts that every planned fault fired as often as planned, so that the test covers what it
    /// claims.
    ///
    /// # Panics
    /// When a fault did not fire as often as planned.
    #[track_caller]
    pub fn assert_faults_fired(&self) {
        let accounts = self.emulator.faults().account();
        let quiet: Vec<String> = accounts
            .iter()
            .filter(|account| account.fired < account.rule.times)
            .map(|a| {
                let (rule, seen, fired) = (&a.rule, a.seen, a.fired);
                format!(
                    "  {fired} of {} times in {seen} matching calls: {rule:?}",
                    rule.times
                )
            })
            .collect();
        if !quiet.is_empty() {
            super::fail(format!(
                "planned faults did not fire:\n{}",
                quiet.join("\n")
            ));
        }
    }

    /// Asserts that no message of `queue` was lost or deleted before its work was done. A message
    /// in `<queue>-poison` counts as kept.
    ///
    /// # Panics
    /// With the history of each lost message.
    #[track_caller]
    pub fn assert_no_message_lost(&self, queue: &str, work: &Work) {
        let poison = self.messages(&format!("{queue}-poison"));
        self.messages(queue)
            .or_kept_in(&poison)
            .assert_none_lost(work);
    }

    /// Asserts that every write to `container/blob` named the version it replaces, by `If-Match` or
    /// a lease.
    ///
    /// # Panics
    /// With each write that did not.
    #[track_caller]
    pub fn assert_no_blind_write(&self, path: &str) {
        let blind = blind::writes(&self.history(), path);
        if !blind.is_empty() {
            super::fail(format!(
                "{path} was overwritten without a version check:\n{}",
                blind.join("\n")
            ));
        }
    }
}

fn endpoint(port: u16) -> azure_core::Result<Url> {
    Ok(format!("http://127.0.0.1:{port}/{EMULATOR_ACCOUNT_NAME}").parse()?)
}
