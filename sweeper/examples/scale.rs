//! Estimates the cycle of a large fleet: the sweeper's own code on a virtual clock, with a service
//! that knows nothing but the state document and the names of its blobs.
//!
//! `cargo run --release -p smalt-sweeper --example scale -- --workers 1000 --blobs 1000000000`
//!
//! Nothing is due, as in most cycles. The latencies of the calls are assumptions, not measurements.
//! A listing returns one blob in a hundred; the others only count in the time that it takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use async_trait::async_trait;
use bytes::Bytes;
use clap::Parser;
use futures_util::future::join_all;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::*;
use smalt_sweeper::{Accounts, Prices, StateBackend, Sweeper, SweeperConfig, SweptContainer};
use smalt_worker::{signals, span};
use tokio::sync::watch;
use tokio::time::Instant;

/// Estimates one cycle of many workers over many blobs.
#[derive(Parser)]
struct Flags {
    /// Workers that begin a cycle at the same time.
    #[arg(long, default_value_t = 1_000)]
    workers: u64,
    /// Blobs of all containers together.
    #[arg(long, default_value_t = 10_000_000)]
    blobs: u64,
    /// Containers of one state document.
    #[arg(long, default_value_t = 100)]
    containers: u64,
    /// State documents, each with an equal part of workers and containers.
    #[arg(long, default_value_t = 1)]
    documents: u64,
    /// Coordinate by ETags in place of the lease.
    #[arg(long)]
    etag: bool,
    /// Time of a call that is not a listing.
    #[arg(long, default_value = "10ms", value_parser = span::parse)]
    call: Duration,
    /// Time of a listing of 5,000 blobs.
    #[arg(long, default_value = "300ms", value_parser = span::parse)]
    list: Duration,
}

const PAGE: u64 = 5_000;
/// In the state document once the first cycle is closed.
const CLOSED: &[u8] = b" cycle=\"1\"";
/// A listing returns one blob of so many.
const THINNING: usize = 100;

#[derive(Default)]
struct State {
    lease: Option<(String, Instant)>,
    document: Option<(u64, Bytes)>,
    largest: usize,
    /// How long the first cycle took.
    closed: Option<Duration>,
}

/// The account: one state document, and containers that hold equally many blobs.
struct Service {
    began: Instant,
    blobs_each: u64,
    call: Duration,
    list: Duration,
    state: Mutex<State>,
    charged: AtomicU64,
    refused: AtomicU64,
    over: watch::Sender<bool>,
}

impl Service {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_s(1_795_255_200).plus(self.began.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for half of a call before its effect, and for the other half after it.
    async fn call<T>(
        &self,
        operation: &'static str,
        takes: Duration,
        effect: impl FnOnce(&mut State) -> Result<T, ErrorKind>,
    ) -> PortResult<T> {
        tokio::time::sleep(takes / 2).await;
        let result = effect(&mut self.state());
        self.charged.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(takes / 2).await;
        result.map_err(|kind| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            refusal(operation, kind)
        })
    }

    fn properties(&self, version: u64, length: u64) -> BlobProperties {
        BlobProperties {
            etag: Tag(format!("\"{version}\"")),
            last_modified: self.now(),
            length,
            content_md5: None,
            content_type: None,
            metadata: Metadata::new(),
            lease: LeaseState::Unlocked,
            kind: BlobKind::Block,
            copy: None,
            access_tier: None,
            tag_count: 0,
            tags: None,
        }
    }
}

fn refusal(operation: &'static str, kind: ErrorKind) -> PortError {
    PortError::new(kind, operation, "", "refused by the simulation")
}

fn holds(state: &State, id: &str) -> bool {
    matches!(&state.lease, Some((held, until)) if held == id && *until > Instant::now())
}

#[async_trait]
impl Storage for Service {
    fn account(&self) -> &str {
        "scale"
    }

    fn blob_url(&self, blob: &BlobId) -> String {
        format!("https://scale/{}/{}", blob.container, blob.name)
    }

    async fn list_blobs(&self, _: &CallContext, _: &str, l: &ListBlobs) -> PortResult<BlobPage> {
        let from: u64 = l
            .marker
            .as_deref()
            .and_then(|m| m.parse().ok())
            .unwrap_or(0);
        let end = (from + u64::from(l.page_size)).min(self.blobs_each);
        let share = u32::try_from(end.saturating_sub(from)).unwrap_or(u32::MAX);
        let takes = self.call.max(self.list * share / PAGE as u32);
        self.call("list_blobs", takes, |_| {
            let properties = self.properties(1, 1_000);
            let blobs = (from..end).step_by(THINNING).map(|at| BlobItem {
                name: format!("{at:012}"),
                properties: properties.clone(),
            });
            Ok(BlobPage {
                blobs: blobs.collect(),
                next_marker: (end < self.blobs_each).then(|| end.to_string()),
                server_time: self.now(),
            })
        })
        .await
    }

    async fn get_blob(&self, _: &CallContext, _: &BlobId, _: u64) -> PortResult<Downloaded> {
        self.call("get_blob", self.call, |state| {
            let (version, content) = state.document.clone().ok_or(ErrorKind::NotFound)?;
            Ok(Downloaded {
                properties: self.properties(version, content.len() as u64),
                content,
                server_time: self.now(),
            })
        })
        .await
    }

    async fn put_blob(
        &self,
        _: &CallContext,
        _: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written> {
        self.call("put_blob", self.call, |state| {
            let there = state.document.as_ref().map(|(version, _)| *version);
            let asked = &put.conditions;
            let matches = match (&asked.if_match, there) {
                (Some(tag), Some(version)) => tag.0 == format!("\"{version}\""),
                (Some(_), None) => false,
                (None, there) => there.is_none(),
            };
            let lease = asked.lease_id.as_deref();
            if !matches || lease.is_some_and(|id| !holds(state, id)) {
                return Err(ErrorKind::ConditionNotMet);
            }
            let version = there.unwrap_or(0) + 1;
            state.largest = state.largest.max(content.len());
            // The cycles are counted from zero.
            if content
                .windows(CLOSED.len())
                .take(500)
                .any(|part| part == CLOSED)
            {
                state.closed.get_or_insert(self.began.elapsed());
                self.over.send_replace(true);
            }
            state.document = Some((version, content));
            Ok(Written {
                etag: Tag(format!("\"{version}\"")),
                server_time: self.now(),
            })
        })
        .await
    }

    async fn acquire_lease(
        &self,
        _: &CallContext,
        _: &BlobId,
        id: &str,
        duration_s: u32,
    ) -> PortResult<Lease> {
        self.call("acquire_lease", self.call, |state| {
            if state.document.is_none() {
                return Err(ErrorKind::NotFound);
            }
            let now = Instant::now();
            let held = state.lease.as_ref();
            if held.is_some_and(|(held, until)| held != id && *until > now) {
                return Err(ErrorKind::LeaseTaken);
            }
            let until = now + Duration::from_secs(u64::from(duration_s));
            state.lease = Some((id.to_owned(), until));
            Ok(Lease {
                id: id.to_owned(),
                server_time: self.now(),
            })
        })
        .await
    }

    async fn release_lease(&self, _: &CallContext, _: &BlobId, id: &str) -> PortResult<()> {
        self.call("release_lease", self.call, |state| {
            if holds(state, id) {
                state.lease = None;
            }
            Ok(())
        })
        .await
    }

    async fn create_container(&self, _: &CallContext, _: &str) -> PortResult<bool> {
        self.call("create_container", self.call, |_| Ok(false))
            .await
    }
}

/// Sweeps the part of one document. Returns its service.
async fn cycle(flags: &Flags) -> anyhow::Result<Arc<Service>> {
    let containers = (flags.containers / flags.documents).max(1);
    let service = Arc::new(Service {
        began: Instant::now(),
        blobs_each: flags.blobs / flags.documents / containers,
        call: flags.call,
        list: flags.list,
        state: Mutex::default(),
        charged: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        over: watch::Sender::new(false),
    });
    let swept = (0..containers).map(|at| SweptContainer {
        account: "default".to_owned(),
        container: format!("container-{at}"),
        prefix: String::new(),
    });
    let config = SweeperConfig {
        containers: swept.collect(),
        page_size: PAGE as u32,
        backend: match flags.etag {
            true => StateBackend::Etag,
            false => StateBackend::Lease,
        },
        ..SweeperConfig::default()
    };
    let worker = |seed| {
        let storage = Arc::clone(&service) as Arc<dyn Storage>;
        Sweeper::new(
            config.clone(),
            Accounts::new().with("default", storage),
            seed,
        )
    };
    let workers = (0..(flags.workers / flags.documents).max(1)).map(worker);
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    let works = workers.iter().map(|worker| {
        let over = service.over.subscribe();
        worker.run_until(signals::stopped(over))
    });
    let finished = join_all(works).await;
    let mut pages = 0;
    for finished in finished {
        ensure!(finished.error.is_none(), "{:?}", finished.error);
        pages += finished
            .report
            .containers
            .values()
            .map(|c| c.pages)
            .sum::<u64>();
    }
    let expected = containers * service.blobs_each.div_ceil(PAGE).max(1);
    ensure!(
        pages == expected,
        "{pages} pages were swept, expected {expected}"
    );
    Ok(service)
}

/// Simulates one document, because the others take as long.
fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    ensure!(flags.documents > 0, "--documents must be at least 1");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let service = runtime.block_on(cycle(&flags))?;
    let took_s = service.state().closed.unwrap_or_default().as_secs_f64();
    let all = |one: &AtomicU64| one.load(Ordering::Relaxed) * flags.documents;
    let (calls, refused) = (all(&service.charged), all(&service.refused));
    let cost = calls as f64 * Prices::default().per_10k_transactions / 10_000.0;
    println!(
        "{} workers, {} blobs, {} documents: cycle {took_s:.0} s, {:.0} blobs/s, {calls} calls, \
         {refused} refused, cost {cost:.2}, largest document {} bytes",
        flags.workers,
        flags.blobs,
        flags.documents,
        flags.blobs as f64 / took_s,
        service.state().largest,
    );
    Ok(())
}
