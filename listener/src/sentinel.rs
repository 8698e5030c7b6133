//! The lease of the fleet's sentinel, requested in the background, one request at a time.

use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use smalt_sleeve::port::{BlobId, Conditions, ErrorKind, PortError, PortResult, PutBlob};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::jitter::{self, Jitter};
use crate::rules::sentinel::{Ask, LeaseAnswer, Role, Said, Sentinel};
use crate::shared::{Event, Shared};

/// A jitter stream that no dequeue task uses.
const STREAM: u64 = u64::MAX;
/// Longest time to release the lease while stopping; it also expires by itself.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);

/// One listener's part in keeping a single idle poller.
pub(crate) struct Guard {
    shared: Arc<Shared>,
    rule: Sentinel,
    lease: Lease,
    start: Instant,
    jitter: Jitter,
    request: JoinSet<()>,
    said: Role,
}

impl Guard {
    /// Returns `None` if no sentinel is configured.
    pub(crate) fn new(shared: &Arc<Shared>, seed: u64) -> Option<Self> {
        let config = shared.config.sentinel.as_ref()?;
        let blob = BlobId::new(&config.container, &shared.config.queue);
        let id = lease_id(seed ^ jitter::of_name(&shared.config.worker));
        Some(Guard {
            rule: Sentinel::new(config.lease),
            lease: Lease {
                blob,
                id,
                duration: config.lease,
            },
            start: Instant::now(),
            jitter: Jitter::new(seed, STREAM),
            request: JoinSet::new(),
            said: Role::Unsure,
            shared: Arc::clone(shared),
        })
    }

    pub(crate) fn role(&self) -> Role {
        self.rule.role(self.start.elapsed())
    }

    /// Sends the request that is due, unless one is in progress.
    pub(crate) fn step(&mut self, wanted: bool) {
        while self.request.try_join_next().is_some() {}
        let asked = self.start.elapsed();
        let Some(ask) = self.rule.due(asked, wanted) else {
            return;
        };
        if !self.request.is_empty() {
            return;
        }
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        self.request.spawn(async move {
            let said = lease.ask(&shared, ask).await;
            shared.tell(Event::Sentinel(LeaseAnswer { ask, asked, said }));
        });
    }

    /// Records an answer and logs a change of role.
    pub(crate) fn answered(&mut self, answer: LeaseAnswer) {
        let LeaseAnswer { ask, asked, said } = answer;
        let jitter = self.jitter.permille();
        self.rule.answered(ask, asked, said, jitter);
        let role = self.role();
        if role != self.said {
            self.said = role;
            tracing::info!(
                worker = %self.shared.config.worker,
                op = "sentinel",
                queue = %self.shared.config.queue,
                role = ?role,
                "sentinel"
            );
        }
    }

    /// Releases the lease, so that other listeners need not wait for it to expire.
    pub(crate) async fn leave(&mut self) {
        // A request in progress may be the one that acquires the lease.
        let in_doubt = !self.request.is_empty();
        self.request.shutdown().await;
        if in_doubt || self.rule.may_hold() {
            let release = self.lease.ask(&self.shared, Ask::Release);
            let _ = tokio::time::timeout(RELEASE_WITHIN, release).await;
        }
    }
}

#[derive(Clone)]
struct Lease {
    blob: BlobId,
    id: String,
    duration: Duration,
}

impl Lease {
    async fn ask(&self, shared: &Shared, ask: Ask) -> Said {
        let answer = match ask {
            Ask::Acquire => self.acquire(shared).await,
            Ask::Renew => {
                let calls = &shared.calls;
                let renew = calls.blob("Lease Blob", |storage, cx| async move {
                    storage.renew_lease(&cx, &self.blob, &self.id).await
                });
                renew.await.map(|_| ())
            }
            Ask::Release => {
                let calls = &shared.calls;
                let release = calls.blob("Lease Blob", |storage, cx| async move {
                    storage.release_lease(&cx, &self.blob, &self.id).await
                });
                release.await
            }
        };
        match answer {
            Ok(()) => Said::Done,
            Err(error) if is_taken(&error) => Said::Taken,
            Err(error) => {
                tracing::warn!(
                    worker = %shared.config.worker,
                    op = "sentinel",
                    queue = %shared.config.queue,
                    outcome = "sentinel_failed",
                    reason = %error,
                    "the request for the sentinel's lease failed"
                );
                Said::Failed
            }
        }
    }

    /// Acquires the lease; creates the blob first if it is missing.
    async fn acquire(&self, shared: &Shared) -> PortResult<()> {
        let first = self.acquire_once(shared).await;
        if !first.as_ref().is_err_and(|e| e.kind == ErrorKind::NotFound) {
            return first;
        }
        let calls = &shared.calls;
        let container = calls.blob("Create Container", |storage, cx| async move {
            storage.create_container(&cx, &self.blob.container).await
        });
        container.await?;
        let put = PutBlob {
            conditions: Conditions::absent(),
            ..PutBlob::default()
        };
        let made = calls.blob("Put Blob", |storage, cx| async move {
            let content = bytes::Bytes::new();
            storage.put_blob(&cx, &self.blob, content, &put).await
        });
        match made.await {
            Err(error) if !is_there(&error) => Err(error),
            // The blob was created, by this or another listener.
            _ => self.acquire_once(shared).await,
        }
    }

    async fn acquire_once(&self, shared: &Shared) -> PortResult<()> {
        let seconds = u32::try_from(self.duration.as_secs()).unwrap_or(u32::MAX);
        let acquire = shared.calls.blob("Lease Blob", |storage, cx| async move {
            storage
                .acquire_lease(&cx, &self.blob, &self.id, seconds)
                .await
        });
        acquire.await.map(|_| ())
    }
}

fn is_taken(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::LeaseTaken | ErrorKind::LeaseLost)
}

/// Returns whether the blob already exists, possibly with a lease.
fn is_there(error: &PortError) -> bool {
    matches!(
        error.kind,
        ErrorKind::AlreadyExists | ErrorKind::ConditionNotMet | ErrorKind::Leased
    )
}

/// Returns a lease id, which the service requires to be a GUID.
fn lease_id(seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    let (high, low) = (rng.next_u64(), rng.next_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}
