//! The requests of a listener: limited in time and rate, and identified by a client request id.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::{
    CallContext, ErrorKind, MessageTtl, PortError, PortResult, QueueMessages, Receipt, Storage,
};
use smalt_sleeve::within;
use tokio::time::Instant;

use crate::observers::{Called, Observers};
use crate::rules::budget::{Afforded, Refused, Today};
use crate::throttle::{AccountLimit, Priority, Throttle};

/// Length of the longest client request id (Azure: 1 KiB).
const REQUEST_ID_MAX_BYTES: usize = 1024;

/// An answer, and the moment before its request was sent: a grant of `v` seconds is valid at least
/// until `at + v` by the local clock, whatever the service's clock says (LL5).
#[derive(Debug)]
pub(crate) struct Answered<T> {
    pub(crate) at: Instant,
    pub(crate) value: T,
}

/// The requests to one queue, its poison queue, and the sentinel's blob.
pub(crate) struct Calls {
    storage: Arc<dyn Storage>,
    queue: String,
    poison_queue: String,
    worker: String,
    timeout: Duration,
    throttle: Throttle,
    poison_throttle: Throttle,
    blob_throttle: Throttle,
    account: AccountLimit,
    observers: Observers,
}

impl Calls {
    pub(crate) fn new(
        config: &crate::ListenerConfig,
        storage: Arc<dyn Storage>,
        account: AccountLimit,
        observers: Observers,
    ) -> Self {
        Calls {
            storage,
            queue: config.queue.clone(),
            poison_queue: config.poison_queue(),
            worker: config.worker.clone(),
            timeout: config.call_timeout,
            throttle: Throttle::new(config.rate_per_s),
            poison_throttle: Throttle::new(config.rate_per_s),
            blob_throttle: Throttle::new(config.rate_per_s),
            account,
            observers,
        }
    }

    /// Counts a get if the daily budget covers it and `in_hand` deletes.
    pub(crate) fn afford_get(&self, in_hand: u64) -> Result<Afforded, Refused> {
        self.account.afford_get(in_hand)
    }

    /// Returns the state of the daily budget; `None` without a budget.
    pub(crate) fn today(&self) -> Option<Today> {
        self.account.today()
    }

    /// Waits until a get may be sent, after [`Calls::afford_get`]; returns `false` if `leaving`
    /// resolves first.
    pub(crate) async fn may_get(&self, leaving: impl Future<Output = ()>) -> bool {
        let turn = async {
            self.throttle.take(Priority::Fetch).await;
            self.account.token(Priority::Fetch).await;
        };
        tokio::select! {
            biased;
            () = leaving => false,
            () = turn => true,
        }
    }

    /// Sends Get Messages; call [`Calls::may_get`] before.
    pub(crate) async fn get(
        &self,
        count: u32,
        visibility: Duration,
    ) -> PortResult<Answered<QueueMessages>> {
        let cx = self.context("get", "");
        let call = self
            .storage
            .get_messages(&cx, &self.queue, count, visibility);
        let answer = self.send(&self.throttle, "Get Messages", self.timeout, call);
        let answer = answer.await?;
        self.account.told(answer.value.server_time);
        Ok(answer)
    }

    /// Sends Update Message with a new visibility timeout only.
    pub(crate) async fn update(
        &self,
        id: &str,
        receipt: &str,
        visibility: Duration,
        timeout: Duration,
    ) -> PortResult<Answered<Receipt>> {
        let cx = self.context("update", id);
        let call = self
            .storage
            .update_message(&cx, &self.queue, id, receipt, visibility, None);
        let timeout = timeout.min(self.timeout);
        self.ask(Priority::Settle, "Update Message", timeout, call)
            .await
    }

    pub(crate) async fn delete(&self, id: &str, receipt: &str) -> PortResult<()> {
        let cx = self.context("delete", id);
        let call = self.storage.delete_message(&cx, &self.queue, id, receipt);
        let answer = self.ask(Priority::Settle, "Delete Message", self.timeout, call);
        answer.await.map(|_| ())
    }

    /// Returns the approximate number of messages, visible or not.
    pub(crate) async fn depth(&self) -> PortResult<u64> {
        let cx = self.context("depth", "");
        let call = self.storage.queue_properties(&cx, &self.queue);
        let answer = self.ask(Priority::Fetch, "Get Queue Metadata", self.timeout, call);
        Ok(answer.await?.value.approximate_count)
    }

    pub(crate) async fn create_queue(&self) -> PortResult<()> {
        let cx = self.context("create", "");
        let call = self.storage.create_queue(&cx, &self.queue);
        let answer = self.ask(Priority::Fetch, "Create Queue", self.timeout, call);
        answer.await.map(|_| ())
    }

    /// Puts a message that never expires into the poison queue; creates the queue if it is missing.
    /// Stops at `until`, including repetitions by the client, so that no copy is put of a message
    /// that another listener may have received by then (LS4).
    pub(crate) async fn put_poison(&self, id: &str, text: &str, until: Instant) -> PortResult<()> {
        let put = tokio::time::timeout_at(until, self.put_or_create(id, text));
        put.await
            .unwrap_or_else(|_| Err(self.unanswered("Put Message")))
    }

    async fn put_or_create(&self, id: &str, text: &str) -> PortResult<()> {
        let cx = self.context("poison", id);
        let (queue, now) = (self.poison_queue.as_str(), Duration::ZERO);
        let put = || {
            let call = self
                .storage
                .put_message(&cx, queue, text, MessageTtl::Never, now);
            self.bounded(
                &self.poison_throttle,
                Priority::Settle,
                "Put Message",
                self.timeout,
                call,
            )
        };
        match put().await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                self.bounded(
                    &self.poison_throttle,
                    Priority::Settle,
                    "Create Queue",
                    self.timeout,
                    self.storage.create_queue(&cx, queue),
                )
                .await?;
                put().await.map(|_| ())
            }
            answer => answer.map(|_| ()),
        }
    }

    pub(crate) async fn blob<T, F>(
        &self,
        operation: &'static str,
        call: impl FnOnce(Arc<dyn Storage>, CallContext) -> F,
    ) -> PortResult<T>
    where
        F: Future<Output = PortResult<T>>,
    {
        let call = call(Arc::clone(&self.storage), self.context("sentinel", ""));
        let (throttle, timeout) = (&self.blob_throttle, self.timeout);
        let answer = self.bounded(throttle, Priority::Fetch, operation, timeout, call);
        answer.await.map(|answer| answer.value)
    }

    /// Returns the number of requests so far, to both queues and the sentinel's blob.
    pub(crate) fn requests(&self) -> u64 {
        self.throttle.taken() + self.poison_throttle.taken() + self.blob_throttle.taken()
    }

    /// Returns the requests per second that queue and account currently allow.
    pub(crate) fn rate_per_s(&self) -> f64 {
        self.throttle.rate_per_s().min(self.account.rate_per_s())
    }

    async fn ask<T>(
        &self,
        priority: Priority,
        operation: &'static str,
        timeout: Duration,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<Answered<T>> {
        self.bounded(&self.throttle, priority, operation, timeout, call)
            .await
    }

    async fn bounded<T>(
        &self,
        throttle: &Throttle,
        priority: Priority,
        operation: &'static str,
        timeout: Duration,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<Answered<T>> {
        self.turn(throttle, priority).await;
        self.send(throttle, operation, timeout, call).await
    }

    /// Waits until a request may be sent.
    async fn turn(&self, throttle: &Throttle, priority: Priority) {
        throttle.take(priority).await;
        self.account.take(priority).await;
    }

    async fn send<T>(
        &self,
        throttle: &Throttle,
        operation: &'static str,
        timeout: Duration,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<Answered<T>> {
        let at = Instant::now();
        let answer = match within(timeout, call).await {
            Ok(answer) => answer,
            Err(_) => Err(self.unanswered(operation)),
        };
        let called = Called::of(operation, &answer);
        if called.throttled {
            throttle.throttled();
            self.account.throttled(&self.queue);
        }
        self.observers.tell(|observer| observer.called(&called));
        answer.map(|value| Answered { at, value })
    }

    fn unanswered(&self, operation: &'static str) -> PortError {
        let (kind, why) = (ErrorKind::OutcomeUnknown, "no answer in time");
        PortError::new(kind, operation, &self.queue, why)
    }

    /// Returns the context of an operation. It is muted, because the listener logs the results
    /// itself.
    fn context(&self, op: &str, message: &str) -> CallContext {
        CallContext {
            client_request_id: self.request_id(op, message),
            muted: true,
        }
    }

    /// Returns the client request id: worker, operation and message, or an empty string if it would
    /// be too long.
    pub(crate) fn request_id(&self, op: &str, message: &str) -> String {
        let id = serde_json::json!({ "worker": self.worker, "op": op, "msg": message }).to_string();
        match id.len() > REQUEST_ID_MAX_BYTES {
            true => String::new(),
            false => id,
        }
    }
}
