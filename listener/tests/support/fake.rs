//! The storage port over in-memory queues, on tokio's clock, with faults.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::*;
use tokio::time::Instant;

use super::faults::{Crash, Fault, Faults, Op, error};
use super::model::{Blob, Queue, Stored};

/// An account with queues, and blobs that can only be leased.
pub struct FakeStorage {
    start: Instant,
    skew: Duration,
    state: Mutex<State>,
    crashed: tokio::sync::Notify,
}

#[derive(Default)]
struct State {
    queues: BTreeMap<String, Queue>,
    containers: BTreeMap<String, BTreeMap<String, Blob>>,
    /// The worker of each get, with its time.
    getters: Vec<(Instant, String)>,
    faults: Faults,
    requests: Vec<(Instant, Op)>,
    /// Ids of deleted messages, with the time of the delete.
    deleted: Vec<(String, Instant)>,
    /// Number of updates and deletes with a receipt that was not the newest.
    stale_receipts: u64,
    batch_sizes: Vec<u32>,
    visibilities: Vec<Duration>,
    crash: Option<Crash>,
}

impl FakeStorage {
    /// Creates an account with the given queues.
    pub fn new(queues: &[&str]) -> Self {
        FakeStorage::skewed(queues, Duration::ZERO)
    }

    /// Creates an account whose clock is ahead by `skew`.
    pub fn skewed(queues: &[&str], skew: Duration) -> Self {
        let mut state = State::default();
        for queue in queues {
            state.queues.insert((*queue).to_owned(), Queue::default());
        }
        FakeStorage {
            start: Instant::now(),
            skew,
            state: Mutex::new(state),
            crashed: tokio::sync::Notify::new(),
        }
    }

    pub fn now(&self) -> Timestamp {
        let base = Timestamp::from_unix_s(1_790_000_000);
        base.plus(self.skew).plus(self.start.elapsed())
    }

    pub fn fault(&self, op: Op, calls: Range<u64>, fault: Fault) {
        self.state.lock().unwrap().faults.add(op, calls, fault);
    }

    /// Makes `worker` crash in its request of this number, before or after the request reached the
    /// service.
    pub fn crash(&self, worker: &'static str, requests: u64, after: bool) {
        self.state.lock().unwrap().crash = Some(Crash {
            worker,
            requests,
            after,
        });
    }

    /// Waits for the crash.
    pub async fn crashed(&self) {
        self.crashed.notified().await;
    }

    pub fn heal(&self) {
        self.state.lock().unwrap().faults.clear();
    }

    pub fn calls(&self, op: Op) -> u64 {
        self.state.lock().unwrap().faults.calls(op)
    }

    pub fn requests(&self) -> Vec<(Instant, Op)> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Returns the workers that sent a get since `at`, each once.
    pub fn getters_since(&self, at: Instant) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let late = state.getters.iter().filter(|(sent, _)| *sent >= at);
        let names: std::collections::BTreeSet<_> = late.map(|(_, name)| name.clone()).collect();
        names.into_iter().collect()
    }

    pub fn deleted(&self) -> Vec<(String, Instant)> {
        self.state.lock().unwrap().deleted.clone()
    }

    pub fn stale_receipts(&self) -> u64 {
        self.state.lock().unwrap().stale_receipts
    }

    pub fn batch_sizes(&self) -> Vec<u32> {
        self.state.lock().unwrap().batch_sizes.clone()
    }

    pub fn visibilities(&self) -> Vec<Duration> {
        self.state.lock().unwrap().visibilities.clone()
    }

    pub fn put(&self, queue: &str, text: &str) -> String {
        self.put_for(queue, text, MessageTtl::Never)
    }

    pub fn put_for(&self, queue: &str, text: &str, ttl: MessageTtl) -> String {
        let now = self.now();
        let mut state = self.state.lock().unwrap();
        let queue = state.queues.get_mut(queue).unwrap();
        queue.put(now, text, ttl, Duration::ZERO).id
    }

    pub fn stored(&self, queue: &str) -> Vec<Stored> {
        let now = self.now();
        let mut state = self.state.lock().unwrap();
        let Some(queue) = state.queues.get_mut(queue) else {
            return Vec::new();
        };
        queue.expire(now);
        queue.messages.clone()
    }

    /// Receives all visible messages as another consumer.
    pub fn steal(&self, queue: &str, hidden: Duration) -> Vec<QueueMessage> {
        let now = self.now();
        let mut state = self.state.lock().unwrap();
        state.queues.get_mut(queue).unwrap().get(now, 1000, hidden)
    }

    /// Makes another consumer receive these messages, as if their visibility timeout had ended
    /// meanwhile.
    pub fn snatch(&self, queue: &str) {
        let mut state = self.state.lock().unwrap();
        for message in &mut state.queues.get_mut(queue).unwrap().messages {
            message.receipt = "another's".to_owned();
        }
    }

    /// Like [`FakeStorage::snatch`], for the messages with one text.
    pub fn snatch_one(&self, queue: &str, text: &str) {
        let mut state = self.state.lock().unwrap();
        let messages = &mut state.queues.get_mut(queue).unwrap().messages;
        for message in messages.iter_mut().filter(|m| m.text == text) {
            message.receipt = "another's".to_owned();
        }
    }

    async fn call<T>(
        &self,
        cx: &CallContext,
        op: Op,
        act: impl FnOnce(&mut State, Timestamp) -> Result<T, ErrorKind>,
    ) -> PortResult<T> {
        let (fault, crash) = {
            let mut state = self.state.lock().unwrap();
            state.requests.push((Instant::now(), op));
            // Commands other than the listener send no context.
            if op == Op::Get && !cx.client_request_id.is_empty() {
                let context: serde_json::Value =
                    serde_json::from_str(&cx.client_request_id).unwrap();
                let worker = context["worker"].as_str().unwrap().to_owned();
                state.getters.push((Instant::now(), worker));
            }
            (
                state.faults.next(op),
                state.crash.as_mut().and_then(|crash| crash.is_now(cx)),
            )
        };
        if let Some(after) = crash {
            if after {
                let now = self.now();
                let _ = act(&mut self.state.lock().unwrap(), now);
            }
            self.crashed.notify_one();
            return std::future::pending().await;
        }
        match fault {
            Some(Fault::Before(kind)) => return Err(error(kind)),
            Some(Fault::Late(pause)) => tokio::time::sleep(pause).await,
            _ => tokio::task::yield_now().await,
        }
        let now = self.now();
        let answer = act(&mut self.state.lock().unwrap(), now);
        match fault {
            Some(Fault::LostAnswer) => return Err(error(ErrorKind::OutcomeUnknown)),
            Some(Fault::Slow(pause)) => tokio::time::sleep(pause).await,
            _ => tokio::task::yield_now().await,
        }
        answer.map_err(error)
    }
}

fn queue<'a>(state: &'a mut State, name: &str) -> Result<&'a mut Queue, ErrorKind> {
    state.queues.get_mut(name).ok_or(ErrorKind::NotFound)
}

fn blob<'a>(state: &'a mut State, id: &BlobId) -> Result<&'a mut Blob, ErrorKind> {
    let container = state.containers.get_mut(&id.container);
    let blob = container.and_then(|container| container.get_mut(&id.name));
    blob.ok_or(ErrorKind::NotFound)
}

fn unsupported<T>() -> PortResult<T> {
    Err(error(ErrorKind::Refused))
}

#[async_trait]
impl Storage for FakeStorage {
    fn account(&self) -> &str {
        "fake"
    }

    fn blob_url(&self, blob: &BlobId) -> String {
        format!("https://fake/{}/{}", blob.container, blob.name)
    }

    fn readable_url(&self, _blob: &BlobId, _lifetime: Duration) -> PortResult<String> {
        unsupported()
    }

    async fn create_queue(&self, cx: &CallContext, name: &str) -> PortResult<bool> {
        self.call(cx, Op::Create, |state, _| {
            let fresh = !state.queues.contains_key(name);
            state.queues.entry(name.to_owned()).or_default();
            Ok(fresh)
        })
        .await
    }

    async fn list_queues(&self, cx: &CallContext, prefix: &str) -> PortResult<Vec<String>> {
        self.call(cx, Op::List, |state, _| {
            let names = state.queues.keys();
            Ok(names.filter(|n| n.starts_with(prefix)).cloned().collect())
        })
        .await
    }

    async fn delete_queue(&self, cx: &CallContext, name: &str) -> PortResult<()> {
        self.call(cx, Op::DeleteQueue, |state, _| {
            let removed = state.queues.remove(name);
            removed.map(drop).ok_or(ErrorKind::NotFound)
        })
        .await
    }

    async fn queue_properties(&self, cx: &CallContext, name: &str) -> PortResult<QueueProperties> {
        self.call(cx, Op::Depth, |state, now| {
            let queue = queue(state, name)?;
            queue.expire(now);
            Ok(QueueProperties {
                approximate_count: queue.messages.len() as u64,
                metadata: Metadata::new(),
            })
        })
        .await
    }

    async fn put_message(
        &self,
        cx: &CallContext,
        name: &str,
        text: &str,
        ttl: MessageTtl,
        visibility_timeout: Duration,
    ) -> PortResult<Receipt> {
        self.call(cx, Op::Put, |state, now| {
            Ok(queue(state, name)?.put(now, text, ttl, visibility_timeout))
        })
        .await
    }

    async fn get_messages(
        &self,
        cx: &CallContext,
        name: &str,
        count: u32,
        visibility_timeout: Duration,
    ) -> PortResult<QueueMessages> {
        let messages = self
            .call(cx, Op::Get, |state, now| {
                state.batch_sizes.push(count);
                state.visibilities.push(visibility_timeout);
                Ok(queue(state, name)?.get(now, count, visibility_timeout))
            })
            .await?;
        Ok(QueueMessages {
            messages,
            server_time: self.now().floor_s(),
        })
    }

    async fn peek_messages(
        &self,
        _cx: &CallContext,
        name: &str,
        count: u32,
    ) -> PortResult<QueueMessages> {
        let now = self.now();
        let mut state = self.state.lock().unwrap();
        let messages = queue(&mut state, name).map_err(error)?.peek(now, count);
        Ok(QueueMessages {
            messages,
            server_time: now,
        })
    }

    async fn update_message(
        &self,
        cx: &CallContext,
        name: &str,
        id: &str,
        pop_receipt: &str,
        visibility_timeout: Duration,
        text: Option<&str>,
    ) -> PortResult<Receipt> {
        self.call(cx, Op::Update, |state, now| {
            state.visibilities.push(visibility_timeout);
            let answer = queue(state, name)?.update(now, id, pop_receipt, visibility_timeout, text);
            state.stale_receipts += u64::from(answer == Err(ErrorKind::ReceiptMismatch));
            answer
        })
        .await
    }

    async fn delete_message(
        &self,
        cx: &CallContext,
        name: &str,
        id: &str,
        pop_receipt: &str,
    ) -> PortResult<()> {
        self.call(cx, Op::Delete, |state, now| {
            let answer = queue(state, name)?.delete(now, id, pop_receipt);
            state.stale_receipts += u64::from(answer == Err(ErrorKind::ReceiptMismatch));
            if answer.is_ok() {
                state.deleted.push((id.to_owned(), Instant::now()));
            }
            answer
        })
        .await
    }

    async fn clear_messages(&self, _cx: &CallContext, _queue: &str) -> PortResult<()> {
        unsupported()
    }

    async fn list_blobs(
        &self,
        _cx: &CallContext,
        _container: &str,
        _list: &ListBlobs,
    ) -> PortResult<BlobPage> {
        unsupported()
    }

    async fn blob_properties(
        &self,
        _cx: &CallContext,
        _blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)> {
        unsupported()
    }

    async fn get_blob(
        &self,
        _cx: &CallContext,
        _blob: &BlobId,
        _most_bytes: u64,
    ) -> PortResult<Downloaded> {
        unsupported()
    }

    async fn put_blob(
        &self,
        cx: &CallContext,
        id: &BlobId,
        _content: Bytes,
        _put: &PutBlob,
    ) -> PortResult<Written> {
        self.call(cx, Op::Lease, |state, now| {
            let container = state.containers.get_mut(&id.container);
            let container = container.ok_or(ErrorKind::NotFound)?;
            match container.insert(id.name.clone(), Blob::default()) {
                Some(_) => Err(ErrorKind::AlreadyExists),
                None => Ok(Written {
                    etag: Tag("1".to_owned()),
                    server_time: now,
                }),
            }
        })
        .await
    }

    async fn set_blob_metadata(
        &self,
        _cx: &CallContext,
        _blob: &BlobId,
        _metadata: &Metadata,
        _conditions: &Conditions,
    ) -> PortResult<Written> {
        unsupported()
    }

    async fn delete_blob(
        &self,
        _cx: &CallContext,
        _blob: &BlobId,
        _conditions: &Conditions,
        _snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        unsupported()
    }

    async fn start_copy(
        &self,
        _cx: &CallContext,
        _blob: &BlobId,
        _copy: &StartCopy,
    ) -> PortResult<CopyStarted> {
        unsupported()
    }

    async fn abort_copy(
        &self,
        _cx: &CallContext,
        _blob: &BlobId,
        _copy_id: &str,
    ) -> PortResult<()> {
        unsupported()
    }

    async fn acquire_lease(
        &self,
        cx: &CallContext,
        id: &BlobId,
        proposed_id: &str,
        duration_s: u32,
    ) -> PortResult<Lease> {
        self.call(cx, Op::Lease, |state, now| {
            blob(state, id)?.acquire(now, proposed_id, duration_s)
        })
        .await
    }

    async fn renew_lease(
        &self,
        cx: &CallContext,
        id: &BlobId,
        lease_id: &str,
    ) -> PortResult<Lease> {
        self.call(cx, Op::Lease, |state, now| {
            blob(state, id)?.renew(now, lease_id)
        })
        .await
    }

    async fn release_lease(&self, cx: &CallContext, id: &BlobId, lease_id: &str) -> PortResult<()> {
        self.call(cx, Op::Lease, |state, _| blob(state, id)?.release(lease_id))
            .await
    }

    async fn create_container(&self, cx: &CallContext, container: &str) -> PortResult<bool> {
        self.call(cx, Op::Lease, |state, _| {
            let fresh = !state.containers.contains_key(container);
            state.containers.entry(container.to_owned()).or_default();
            Ok(fresh)
        })
        .await
    }
}
