//! An in-memory account on tokio's clock, with faults and rates; [`super::port`] has its calls.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{CallContext, ErrorKind, MessageTtl, PortResult, QueueMessage};
use tokio::time::Instant;

use super::faults::{Fault, Faults, Op, error};
use super::model::{Blob, Queue, Rates, Stored};

/// An account with queues, and blobs that can only be leased.
pub struct FakeStorage {
    start: Instant,
    skew: Duration,
    /// Time of each request, half before its effect and half after it.
    takes: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) queues: BTreeMap<String, Queue>,
    pub(super) containers: BTreeMap<String, BTreeMap<String, Blob>>,
    /// When each worker sent its last get.
    getters: BTreeMap<String, Instant>,
    faults: Faults,
    rates: Option<Rates>,
    /// Number of requests that failed without a fault.
    refused: HashMap<(Op, ErrorKind), u64>,
    requests: Vec<(Instant, Op)>,
    /// Ids of deleted messages, with the time of the delete.
    pub(super) deleted: Vec<(String, Instant)>,
    /// Number of updates and deletes with a receipt that was not the newest.
    pub(super) stale_receipts: u64,
    pub(super) batch_sizes: Vec<u32>,
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
            takes: Duration::ZERO,
            state: Mutex::new(state),
        }
    }

    /// Creates an account whose requests take `takes`, and which answers 503 beyond the service's
    /// rates.
    pub fn rated(queues: &[&str], takes: Duration) -> Self {
        let mut fake = FakeStorage::new(queues);
        fake.takes = takes;
        fake.state.get_mut().unwrap().rates = Some(Rates::default());
        fake
    }

    pub fn now(&self) -> Timestamp {
        let base = Timestamp::from_unix_s(1_790_000_000);
        base.plus(self.skew).plus(self.start.elapsed())
    }

    pub fn fault(&self, op: Op, calls: Range<u64>, fault: Fault) {
        self.state.lock().unwrap().faults.add(op, calls, fault);
    }

    pub fn heal(&self) {
        self.state.lock().unwrap().faults.clear();
    }

    pub fn calls(&self, op: Op) -> u64 {
        self.state.lock().unwrap().faults.calls(op)
    }

    /// Returns the number of requests of each operation.
    pub fn counts(&self) -> BTreeMap<Op, u64> {
        self.state.lock().unwrap().faults.counts().clone()
    }

    /// Returns how many requests of each operation failed with this kind without a fault.
    pub fn refused(&self, kind: ErrorKind) -> BTreeMap<Op, u64> {
        let state = self.state.lock().unwrap();
        let of_kind = state.refused.iter().filter(|((_, had), _)| *had == kind);
        of_kind.map(|((op, _), count)| (*op, *count)).collect()
    }

    pub fn requests(&self) -> Vec<(Instant, Op)> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Returns the workers that sent a get since `at`, each once.
    pub fn getters_since(&self, at: Instant) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let late = state.getters.iter().filter(|(_, sent)| **sent >= at);
        late.map(|(name, _)| name.clone()).collect()
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

    pub(super) async fn call<T>(
        &self,
        cx: &CallContext,
        (op, on): (Op, &str),
        act: impl FnOnce(&mut State, Timestamp) -> Result<T, ErrorKind>,
    ) -> PortResult<T> {
        let fault = {
            let mut state = self.state.lock().unwrap();
            state.requests.push((Instant::now(), op));
            // Commands other than the listener send no context.
            if op == Op::Get && !cx.client_request_id.is_empty() {
                let context: serde_json::Value =
                    serde_json::from_str(&cx.client_request_id).unwrap();
                let worker = context["worker"].as_str().unwrap().to_owned();
                state.getters.insert(worker, Instant::now());
            }
            state.faults.next(op)
        };
        match fault {
            Some(Fault::Before(kind)) => return Err(error(kind)),
            Some(Fault::Late(pause)) => tokio::time::sleep(pause).await,
            _ => self.half().await,
        }
        let now = self.now();
        let answer = self.state.lock().unwrap().perform(op, on, now, act);
        match fault {
            Some(Fault::LostAnswer) => return Err(error(ErrorKind::OutcomeUnknown)),
            Some(Fault::Slow(pause)) => tokio::time::sleep(pause).await,
            _ => self.half().await,
        }
        answer.map_err(error)
    }

    /// Waits for half of a request.
    async fn half(&self) {
        match self.takes.is_zero() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(self.takes / 2).await,
        }
    }
}

impl State {
    fn perform<T>(
        &mut self,
        op: Op,
        on: &str,
        now: Timestamp,
        act: impl FnOnce(&mut State, Timestamp) -> Result<T, ErrorKind>,
    ) -> Result<T, ErrorKind> {
        let is_admitted = self.rates.as_mut().is_none_or(|rates| rates.admit(on, now));
        let answer = match is_admitted {
            true => act(self, now),
            false => Err(ErrorKind::Busy),
        };
        if let Err(kind) = &answer {
            *self.refused.entry((op, *kind)).or_insert(0) += 1;
        }
        answer
    }
}
