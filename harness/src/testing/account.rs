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

/// When the service's time begins: 2026-11-21 10:00:00.
const START_UNIX_S: u64 = 1_795_255_200;
/// Seed of an account that none is given for.
const SEED: u64 = 1;

/// The account `devstoreaccount1` of an emulator of its own, in this process and in memory. Clones
/// are the same account.
#[derive(Clone, Debug)]
pub struct TestAccount {
    emulator: Emulator,
    seen: Arc<Mutex<Vec<Exchange>>>,
}

impl TestAccount {
    /// A fresh account. Needs a tokio runtime: its time is the service's.
    ///
    /// # Errors
    /// When the emulator does not open; in memory there is no reason to.
    pub fn open() -> Result<Self, OpenError> {
        Self::seeded(SEED)
    }

    /// A fresh account with ids from this seed: request ids, ETags, lease ids, receipts.
    ///
    /// # Errors
    /// As [`TestAccount::open`].
    pub fn seeded(seed: u64) -> Result<Self, OpenError> {
        let start = Timestamp::from_unix_s(START_UNIX_S);
        Self::on_clock(Clock::tokio(start), seed)
    }

    /// A fresh account on a clock of your own: [`Clock::system`] for clients behind sockets, which
    /// sign with the machine's time; [`Clock::manual`] where nothing may move by itself.
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

    /// The emulator: raw requests, settings of the account, the clock.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// The service's time.
    pub fn now(&self) -> Timestamp {
        self.emulator.now()
    }

    /// Moves the service's clock forward, and not the time of your code.
    pub fn advance(&self, by: Duration) {
        self.emulator.clock().advance(by);
    }

    /// Options for any of Microsoft's clients. They need no credential.
    pub fn client_options(&self) -> ClientOptions {
        ClientOptions {
            transport: Some(self.emulator.sdk_transport()),
            ..ClientOptions::default()
        }
    }

    /// Microsoft's client of the Blob service.
    ///
    /// # Errors
    /// The SDK's.
    pub fn blobs(&self) -> azure_core::Result<BlobServiceClient> {
        let options = BlobServiceClientOptions {
            client_options: self.client_options(),
            ..Default::default()
        };
        BlobServiceClient::new(endpoint(10000)?, None, Some(options))
    }

    /// Microsoft's client of the Queue service.
    ///
    /// # Errors
    /// The SDK's.
    pub fn queues(&self) -> azure_core::Result<QueueServiceClient> {
        let options = QueueServiceClientOptions {
            client_options: self.client_options(),
            ..Default::default()
        };
        QueueServiceClient::new(endpoint(10001)?, None, Some(options))
    }

    /// A new container.
    ///
    /// # Errors
    /// The service's, for instance that there is one of that name.
    pub async fn container(&self, name: &str) -> azure_core::Result<BlobContainerClient> {
        let container = self.blobs()?.blob_container_client(name);
        container.create(None).await?;
        Ok(container)
    }

    /// A new queue.
    ///
    /// # Errors
    /// The service's.
    pub async fn queue(&self, name: &str) -> azure_core::Result<QueueClient> {
        let queue = self.queues()?.queue_client(name)?;
        queue.create(None).await?;
        Ok(queue)
    }

    /// The transport for clients made with `smalt-sleeve`, the sweeper and the listener.
    pub fn transport(&self) -> Arc<dyn Transport> {
        let emulator = self.emulator.clone();
        Arc::new(FnTransport::new(move |request: http::Request<_>| {
            let emulator = emulator.clone();
            async move { in_process::call(&emulator, request).await }
        }))
    }

    /// Plans that calls of an operation go wrong; the next one, unless the plan says otherwise.
    /// Operations are named by their ids in `docs/operations.md`; `*` is any.
    #[must_use = "a plan does nothing before it says what goes wrong"]
    pub fn fault(&self, operation: &str) -> FaultPlan<'_> {
        FaultPlan::new(self.emulator.faults(), operation)
    }

    /// A record of who works on what, for the assertions.
    pub fn work(&self) -> Work {
        Work::new(self.emulator.clone())
    }

    /// Watches those who do something under the lease of `path`: a container, or
    /// `container/blob`.
    pub fn leased_section(&self, path: &str) -> LeasedSection {
        LeasedSection::new(self.clone(), path)
    }

    /// What became of each message of a queue.
    pub fn messages(&self, queue: &str) -> Messages {
        Messages::of(&self.history(), queue, self.now())
    }

    /// Every exchange so far, as the service saw it.
    pub fn history(&self) -> Vec<Exchange> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    /// Every planned fault happened as often as planned. One that did not is a test that tests
    /// less than it says.
    ///
    /// # Panics
    /// Otherwise.
    #[track_caller]
    pub fn assert_faults_fired(&self) {
        let accounts = self.emulator.faults().account();
        let quiet: Vec<String> = accounts
            .iter()
            .filter(|account| account.fired < account.rule.times)
            .map(|a| {
                let (rule, seen, fired) = (&a.rule, a.seen, a.fired);
                format!(
                    "  {fired} of {} times in {seen} calls that match: {rule:?}",
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

    /// No message of `queue` was lost, and none was deleted before its work was done. A message
    /// that stands in `<queue>-poison` is kept.
    ///
    /// # Panics
    /// With the story of each message that was.
    #[track_caller]
    pub fn assert_no_message_lost(&self, queue: &str, work: &Work) {
        let poison = self.messages(&format!("{queue}-poison"));
        self.messages(queue)
            .or_kept_in(&poison)
            .assert_none_lost(work);
    }

    /// Nobody wrote over `container/blob` without saying which version he had seen, by `If-Match`
    /// or by its lease.
    ///
    /// # Panics
    /// With each write that did.
    #[track_caller]
    pub fn assert_no_blind_write(&self, path: &str) {
        let blind = blind::writes(&self.history(), path);
        if !blind.is_empty() {
            super::fail(format!(
                "{path} was written over blindly:\n{}",
                blind.join("\n")
            ));
        }
    }
}

fn endpoint(port: u16) -> azure_core::Result<Url> {
    Ok(format!("http://127.0.0.1:{port}/{EMULATOR_ACCOUNT_NAME}").parse()?)
}

/// The path of an exchange below its account: `container/blob`, decoded.
pub(super) fn path_of(exchange: &Exchange) -> String {
    let path = exchange.request.uri().path();
    let decoded = smalt_protocol::uri::percent_decode(path).unwrap_or_else(|_| path.to_owned());
    let below = decoded.trim_start_matches('/').split_once('/');
    below.map_or_else(String::new, |(_, below)| {
        below.trim_start_matches('/').to_owned()
    })
}
