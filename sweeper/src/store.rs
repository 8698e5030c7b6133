//! The state document in storage: reads it, writes it conditionally, and checks whether an unclear
//! write arrived.
//!
//! The lease saves work; safety does not depend on it. Every write carries `If-Match` with the ETag
//! that was read, so a worker that resumes an hour later in the middle of a write changes nothing
//! (DS11).

use std::time::Duration;

use bytes::Bytes;
use smalt_sleeve::port::{Conditions, ErrorKind, ListBlobs, PortError, PutBlob, Storage, Tag};
use tokio::time::Instant;

use crate::calls::lock;
use crate::config::StateBackend;
use crate::error::SweepError;
use crate::monitor::Phase;
use crate::shared::Core;
use crate::state::{self, Container, DOCUMENT_BYTES_MAX, Document, Status, ledger};

/// Initial and maximum delay between attempts to acquire the lease.
const LEASE_WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Number of attempts with the initial delay, which is about the length of a claim. Backing off
/// earlier would give all the work to the workers that just had the lease, because they ask again
/// at once.
const EVEN_WAITS: u32 = 5;
/// Interval for checking, during a wait for the lease, whether its holder writes the document.
const LEASE_LOOK: Duration = Duration::from_secs(5);
/// Interval between warnings about a lease that does not become free.
const LEASE_WARN_EVERY: Duration = Duration::from_secs(60);
/// Part of the lease that is reserved for writing the document (D1).
const LEASE_RESERVE: Duration = Duration::from_secs(10);
/// Maximum time between reading and writing the document (D1).
const HOLD_MAX: Duration = Duration::from_secs(20);
/// `Content-Type` of the document (S15).
const CONTENT_TYPE: &str = "text/xml";

/// The document from read to write or release.
pub(crate) struct Session<'a> {
    core: &'a Core,
    storage: &'a dyn Storage,
    pub(crate) document: Document,
    etag: Tag,
    leased: bool,
    opened: Instant,
}

/// When to give up waiting for the lease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// After `state_patience`, because a user waits for the command; or when the worker stops.
    Limited,
    /// When the worker stops.
    UntilStop,
    /// Never, because finished work must be recorded.
    Unlimited,
}

/// A wait for the lease. Workers hold it briefly and their writes are visible, so a holder that
/// never writes is dead or not a worker; the service does not say whether its lease is infinite.
struct LeaseWait {
    since: Instant,
    fence: Option<u64>,
    look_at: Instant,
}

impl LeaseWait {
    fn new() -> Self {
        let now = Instant::now();
        LeaseWait {
            since: now,
            fence: None,
            look_at: now + LEASE_LOOK,
        }
    }

    /// Warns at intervals that the lease does not become free, and gives up if `patience` allows
    /// it.
    async fn go_on(
        &mut self,
        core: &Core,
        storage: &dyn Storage,
        patience: Patience,
    ) -> Result<(), SweepError> {
        let lasting = Duration::from_secs(u64::from(core.config.lease_s)) + LEASE_LOOK;
        let limit = core.config.state_patience.max(lasting);
        let over = patience == Patience::Limited && self.since.elapsed() >= limit;
        if Instant::now() < self.look_at && !over {
            return Ok(());
        }
        let read = read(core, storage).await;
        let fence = read.ok().map(|(document, _)| document.fence);
        if fence.is_none() || fence != self.fence {
            // The fence changed, so other workers are writing: this is contention, not a stuck
            // lease.
            if self.fence.is_some() {
                self.since = Instant::now();
            }
            self.fence = fence;
            self.look_at = Instant::now() + LEASE_LOOK;
            return Ok(());
        }
        self.look_at = Instant::now() + LEASE_WARN_EVERY;
        let blob = &core.config.state_blob;
        let held = SweepError::LeaseHeld {
            place: format!("{}/{}", blob.container, blob.name),
            waited_s: self.since.elapsed().as_secs(),
        };
        if over {
            return Err(held);
        }
        tracing::warn!("{held}");
        let error = held.to_string();
        lock(&core.gauges).enter(Phase::OutOfReach { error });
        Ok(())
    }
}

/// Acquires the lease (unless the backend uses only ETags) and reads the document; creates it if it
/// is missing.
pub(crate) async fn open(core: &Core, patience: Patience) -> Result<Session<'_>, SweepError> {
    let name = &core.config.state_account;
    let storage = core
        .accounts
        .get(name)
        .ok_or_else(|| SweepError::Config(format!("no account `{name}` is configured")))?
        .as_ref();
    let leased = core.config.backend == StateBackend::Lease;
    if leased {
        acquire(core, storage, patience).await?;
    }
    let read = read_or_create(core, storage).await;
    let (document, etag) = match read {
        Ok(read) => read,
        Err(error) => {
            release(core, storage, leased).await;
            return Err(error);
        }
    };
    note(core, &document);
    lock(&core.spending).read(document.spent);
    Ok(Session {
        core,
        storage,
        document,
        etag,
        leased,
        opened: Instant::now(),
    })
}

/// Logs a read, a write or the creation of the state document (S31).
fn log_state(action: &'static str, began: Instant) {
    let ms = began.elapsed().as_millis() as u64;
    tracing::info!(op = "state", action, ms, "state document");
}

/// Updates the gauges from the document.
fn note(core: &Core, document: &Document) {
    let now = core.now();
    let containers = &document.containers;
    let mut gauges = lock(&core.gauges);
    gauges.cycle = document.cycle;
    gauges.in_flight = containers.iter().map(|c| c.pages.len()).sum();
    let count = |is_it: &dyn Fn(&Container) -> bool| containers.iter().filter(|c| is_it(c)).count();
    gauges.parked = count(&|c| ledger::is_parked(c, now));
    gauges.containers = count(&|c| c.status != Status::Off);
    gauges.containers_done = count(&|c| ledger::is_done(c, now));
}

async fn acquire(core: &Core, storage: &dyn Storage, patience: Patience) -> Result<(), SweepError> {
    let (mut wait, wait_max) = LEASE_WAIT;
    let mut attempts = 0u32;
    let mut waiting = LeaseWait::new();
    let began = Instant::now();
    loop {
        let cx = core.context("");
        let (blob, id) = (&core.config.state_blob, &core.lease_id);
        let call = storage.acquire_lease(&cx, blob, id, core.config.lease_s);
        let error = match core.calls.once("acquire_lease", call).await {
            Ok(lease) => {
                lock(&core.gauges).lease_wait.add(began.elapsed());
                if attempts > 0 {
                    let ms = began.elapsed().as_millis() as u64;
                    tracing::info!(op = "lease", retries = attempts, ms, "leased after retries");
                }
                let observed = core.observe(lease.server_time);
                release(core, storage, observed.is_err()).await;
                return observed;
            }
            Err(error) => error,
        };
        match error.kind {
            ErrorKind::LeaseTaken | ErrorKind::LeaseLost => {
                if patience != Patience::Unlimited && core.stop.is_set() {
                    return Err(SweepError::Stopped);
                }
                waiting.go_on(core, storage, patience).await?;
                attempts += 1;
                tracing::debug!(attempts, "the state document is leased; waiting");
                tokio::time::sleep(wait.mul_f64(0.5 + core.entropy.fraction())).await;
                if attempts >= EVEN_WAITS {
                    wait = (wait * 2).min(wait_max);
                }
            }
            ErrorKind::NotFound => create(core, storage).await?,
            _ => return Err(error.into()),
        }
    }
}

async fn read_or_create(core: &Core, storage: &dyn Storage) -> Result<(Document, Tag), SweepError> {
    match read(core, storage).await {
        Err(SweepError::Storage(error)) if error.kind == ErrorKind::NotFound => {
            create(core, storage).await?;
            read(core, storage).await
        }
        other => other,
    }
}

/// Reads the document without a lease.
pub(crate) async fn read(
    core: &Core,
    storage: &dyn Storage,
) -> Result<(Document, Tag), SweepError> {
    let (account, began) = (core.paced(storage, ""), Instant::now());
    let bytes_max = DOCUMENT_BYTES_MAX as u64;
    let got = account.get_blob(&core.config.state_blob, bytes_max).await?;
    log_state("get", began);
    core.observe(got.server_time)?;
    let text = std::str::from_utf8(&got.content)
        .map_err(|_| state::StateError::Broken("it is not UTF-8".to_owned()))?;
    Ok((state::read(text)?, got.properties.etag))
}

/// Returns the document that a worker creates from its configuration.
pub(crate) fn initial(core: &Core) -> Document {
    let containers = core.config.containers.iter().map(|swept| Container {
        name: swept.container.clone(),
        credential: Some(swept.account.clone()),
        prefix: swept.prefix.clone(),
        ..Container::default()
    });
    Document {
        version: state::VERSION_NEWEST,
        containers: containers.collect(),
        ..Document::default()
    }
}

async fn create(core: &Core, storage: &dyn Storage) -> Result<(), SweepError> {
    let blob = &core.config.state_blob;
    if !core.config.create_state {
        return Err(SweepError::StateMissing(storage.blob_url(blob)));
    }
    write_new(core, storage, false).await.map(|_| ())
}

/// Rejects a configuration that names a missing container.
pub(crate) async fn swept_exist(core: &Core) -> Result<(), SweepError> {
    let first = ListBlobs {
        page_size: 1,
        ..ListBlobs::default()
    };
    for swept in &core.config.containers {
        let Some(storage) = core.accounts.get(&swept.account) else {
            continue;
        };
        let account = core.paced(storage.as_ref(), "");
        let listed = account.list_blobs(&swept.container, &first).await;
        if listed.is_err_and(|error| error.kind == ErrorKind::NotFound) {
            return Err(SweepError::ContainerMissing(swept.container.clone()));
        }
    }
    Ok(())
}

/// Writes a new document. Returns `false` if one exists and `replace` is not set.
pub(crate) async fn write_new(
    core: &Core,
    storage: &dyn Storage,
    replace: bool,
) -> Result<bool, SweepError> {
    let (account, blob) = (core.paced(storage, ""), &core.config.state_blob);
    match account.create_container(&blob.container).await {
        // A SAS of the blob alone does not reach its container, which then exists or not.
        Err(error) if error.kind == ErrorKind::Denied => {}
        created => drop(created?),
    }
    let content = Bytes::from(state::write(&initial(core))?);
    let put = PutBlob {
        content_type: Some(CONTENT_TYPE.to_owned()),
        conditions: Conditions {
            if_absent: !replace,
            ..Conditions::default()
        },
        ..PutBlob::default()
    };
    let began = Instant::now();
    match account.put_blob(blob, content, &put).await {
        Ok(_) => {
            log_state("create", began);
            Ok(true)
        }
        Err(e)
            if matches!(
                e.kind,
                ErrorKind::AlreadyExists | ErrorKind::ConditionNotMet
            ) =>
        {
            Ok(false)
        }
        // A leased document exists.
        Err(e) if e.kind == ErrorKind::Leased && !replace => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn release(core: &Core, storage: &dyn Storage, leased: bool) {
    if !leased {
        return;
    }
    let cx = core.context("");
    let call = storage.release_lease(&cx, &core.config.state_blob, &core.lease_id);
    if let Err(error) = core.calls.once("release_lease", call).await {
        // The lease expires by itself.
        tracing::debug!(%error, "the lease on the state document was not released");
    }
}

impl Session<'_> {
    /// Returns how long a listing may take so that the lease still covers the write after it.
    pub(crate) fn time_left(&self) -> Duration {
        let lease = Duration::from_secs(u64::from(self.core.config.lease_s));
        let left = lease.saturating_sub(LEASE_RESERVE.min(lease / 3));
        left.saturating_sub(self.opened.elapsed()).min(HOLD_MAX)
    }

    /// Writes the stamped document if nobody has written it since the read. Returns `false` if the
    /// write did not arrive; then nothing changed, and the caller must not act on the document.
    pub(crate) async fn commit(&mut self, mut document: Document) -> Result<bool, SweepError> {
        let own = self.core.calls.charged();
        if self.core.config.budget.is_some() || document.spent.is_some() {
            let now = self.core.now();
            document.spent = Some(lock(&self.core.spending).today(now, own));
        }
        let written = self.write(&document).await?;
        if written {
            note(self.core, &document);
        }
        if let Some(spent) = document.spent.filter(|_| written) {
            lock(&self.core.spending).written(spent, own);
        }
        Ok(written)
    }

    async fn write(&self, document: &Document) -> Result<bool, SweepError> {
        let content = Bytes::from(state::write(document)?);
        let put = PutBlob {
            content_type: Some(CONTENT_TYPE.to_owned()),
            conditions: Conditions {
                if_match: Some(self.etag.clone()),
                lease_id: self.leased.then(|| self.core.lease_id.clone()),
                ..Conditions::default()
            },
            ..PutBlob::default()
        };
        let cx = self.core.context("");
        let (blob, began) = (&self.core.config.state_blob, Instant::now());
        let call = self.storage.put_blob(&cx, blob, content, &put);
        match self.core.calls.once("put_blob", call).await {
            Ok(written) => {
                log_state("put", began);
                self.core.observe(written.server_time)?;
                Ok(true)
            }
            Err(error) => self.after_failed_write(document, error).await,
        }
    }

    /// D4: after an unclear write, looks for the worker's own fence in the document.
    async fn after_failed_write(
        &self,
        document: &Document,
        error: PortError,
    ) -> Result<bool, SweepError> {
        match error.kind {
            ErrorKind::ConditionNotMet
            | ErrorKind::Leased
            | ErrorKind::LeaseLost
            | ErrorKind::LeaseTaken
            | ErrorKind::NotFound => Ok(false),
            _ if error.is_transient() => {
                let (found, _) = read(self.core, self.storage).await?;
                Ok(arrived(document, &found, &self.core.worker))
            }
            _ => Err(error.into()),
        }
    }

    /// Releases the lease.
    pub(crate) async fn close(self) {
        release(self.core, self.storage, self.leased).await;
    }
}

/// Returns whether the written document is the found one or an earlier version of it.
fn arrived(written: &Document, found: &Document, worker: &str) -> bool {
    let same = found.fence == written.fence && found.writer == worker;
    let claimed = |page: &state::Page| page.fence == written.fence && page.owner == worker;
    let built_upon = found.containers.iter().flat_map(|c| &c.pages).any(claimed);
    same || (found.fence > written.fence && built_upon)
}
