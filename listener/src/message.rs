//! The owner of one message: a single task from its receipt to its end.
//!
//! The owner runs the handler, renews the lock meanwhile, and settles the message afterwards. It
//! makes all requests about the message one after the other, so renewal and delete cannot race.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::QueueMessage;
use tokio::time::Instant;

use crate::config::Encoding;
use crate::handler::{Context, Message, Verdict};
use crate::observers::{Expiring, LostLock, Renewed, Started};
use crate::payload::{Claimed, Opened};
use crate::renew::{Lock, Renewal};
use crate::report::{Decision, Outcome};
use crate::rules::dispatch::{self, Receipt, Settlement};
use crate::rules::done::Finished;
use crate::rules::envelope::trace;
use crate::rules::renewal::min_start;
use crate::run::{CANCEL_GRACE, Run};
use crate::settle::Settled;
use crate::shared::{Asked, Event, Phase, Shared};

pub(crate) struct Owner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) message: QueueMessage,
    pub(crate) lock: Lock,
    granted_at: Instant,
    server_time: Timestamp,
    handler_time: Option<Duration>,
    /// Whether the expiry alarm was already raised.
    alarmed: bool,
    /// The last request about the message.
    pub(crate) asked: Asked,
    /// The payload, if it is in a blob.
    pub(crate) claimed: Option<Claimed>,
}

/// How a run of the handler ended.
enum RunEnd {
    Verdict(Verdict),
    Lost(String),
    Leaving,
}

impl Owner {
    /// Creates the owner of a message that a get granted at `at`, with the service's time of the
    /// answer.
    pub(crate) fn new(
        shared: Arc<Shared>,
        message: QueueMessage,
        at: Instant,
        server_time: Timestamp,
    ) -> Self {
        let lock = Lock::granted(&message, at, server_time, shared.config.visibility);
        Owner {
            shared,
            message,
            lock,
            granted_at: at,
            server_time,
            handler_time: None,
            alarmed: false,
            asked: Asked::Get,
            claimed: None,
        }
    }

    /// Settles the message and reports the decision.
    pub(crate) async fn settle(mut self) {
        let settled = self.bring_to_end().await;
        let hidden = settled.hidden_for.unwrap_or_default();
        let asleep = self.shared.config.longest_sleep();
        let next_attempt = self.server_now().plus(hidden).plus(asleep);
        let over = matches!(
            settled.outcome,
            Outcome::Done | Outcome::Gone | Outcome::Poisoned | Outcome::DuplicateDeleted
        );
        let (inserted, expires) = (self.message.inserted, self.message.expires);
        let expiring = !over && dispatch::expiry_alarm(inserted, expires, next_attempt);
        if expiring {
            self.raise_alarm();
        }
        let decision = Decision {
            id: self.message.id.clone(),
            dequeue_count: self.message.dequeue_count,
            outcome: settled.outcome,
            reason: settled.reason,
            handler_time: self.handler_time,
            renewals: self.lock.renewals(),
            expiring,
        };
        let in_hand = self.granted_at.elapsed();
        self.shared.decide(&decision, in_hand, self.asked);
    }

    async fn bring_to_end(&mut self) -> Settled {
        let (body, unusable) = self.open();
        let finished_before = self.shared.done().get(&self.message.id).is_some();
        let count = self.message.dequeue_count;
        let most = self.shared.config.max_dequeue;
        match dispatch::at_receipt(finished_before, count, most, body.is_some()) {
            Receipt::DeleteOnly => self.delete_duplicate().await,
            _ if self.shared.phase() >= Phase::Draining => self.release("stopping").await,
            Receipt::TooManyAttempts => {
                let reason = format!("received {count} times; {most} attempts are allowed");
                self.poison(&reason).await
            }
            Receipt::Undecodable => self.poison(&unusable).await,
            Receipt::Run => self.handle(body.unwrap_or_default()).await,
        }
    }

    /// Returns the body, empty if it is in a blob; or `None` and the reason why it is unusable.
    fn open(&mut self) -> (Option<Bytes>, String) {
        let Some(body) = decode(self.shared.config.encoding, &self.message.text) else {
            return (None, "the text is not valid Base64".to_owned());
        };
        match Opened::of(body, self.shared.payloads.as_ref()) {
            Opened::Body(body) => (Some(body), String::new()),
            Opened::Refused(why) => (None, why),
            Opened::Claimed(claimed) => {
                self.claimed = Some(claimed);
                (Some(Bytes::new()), String::new())
            }
        }
    }

    async fn handle(&mut self, body: Bytes) -> Settled {
        if let Err(not_started) = self.ensure_visibility().await {
            return not_started;
        }
        let (ctx, switch) = Context::new(
            &self.shared.config.worker,
            self.shared.config.handler_timeout,
            self.shared.config.max_dequeue,
        );
        let message = Message {
            id: self.message.id.clone(),
            queue: self.shared.config.queue.clone(),
            body,
            dequeue_count: self.message.dequeue_count,
            inserted: self.message.inserted,
            expires: self.message.expires,
        };
        let started = Started {
            id: &message.id,
            dequeue_count: message.dequeue_count,
        };
        self.shared.observers.tell(|o| o.started(&started));
        let mut handler = Arc::clone(&self.shared.handler);
        if let Some(claimed) = &self.claimed {
            handler = claimed.fetching(handler);
        }
        self.allow_start();
        let run = Run::start(handler, message, ctx, switch);
        match self.attend(run).await {
            RunEnd::Verdict(verdict) => self.apply(verdict).await,
            RunEnd::Lost(reason) => Settled::new(Outcome::LostLock, reason),
            RunEnd::Leaving => self.release("grace time over").await,
        }
    }

    /// LS4: a handler starts only with enough visibility left.
    async fn ensure_visibility(&mut self) -> Result<(), Settled> {
        let enough = min_start(self.shared.config.visibility);
        if self.lock.remaining() >= enough {
            return Ok(());
        }
        self.asked = Asked::Update;
        match self.lock.renew(&self.shared.calls).await {
            Renewal::Renewed => Ok(()),
            Renewal::Failed => Err(Settled::new(Outcome::NotStarted, "too late to start")),
            Renewal::Lost(reason) => Err(Settled::new(Outcome::NotStarted, reason)),
        }
    }

    /// Watches a run until it ends: renews its lock and enforces its timeout.
    async fn attend(&mut self, mut run: Run) -> RunEnd {
        let config = &self.shared.config;
        let (renews, patience) = (config.renew, config.handler_timeout);
        let allowed = if renews {
            patience
        } else {
            // The handler must end, and the retry be sent, before the lock expires.
            let remaining = self.lock.remaining();
            patience.min(remaining.saturating_sub(CANCEL_GRACE).max(remaining / 2))
        };
        let deadline = Instant::now() + allowed;
        let alarm_at = self.alarm_at();
        let shared = Arc::clone(&self.shared);
        let leaving = shared.reached(Phase::Leaving);
        tokio::pin!(leaving);
        let end = loop {
            tokio::select! {
                biased;
                verdict = run.verdict() => {
                    self.handler_time = Some(run.elapsed());
                    return RunEnd::Verdict(verdict);
                }
                () = &mut leaving => break RunEnd::Leaving,
                () = tokio::time::sleep_until(deadline) => {
                    break RunEnd::Verdict(Verdict::retry(format!("timed out after {allowed:?}")));
                }
                () = self.lock.renewal_due(), if renews => {
                    if let Renewal::Lost(reason) = self.renew(alarm_at).await {
                        break RunEnd::Lost(reason);
                    }
                }
                () = until(alarm_at), if !self.alarmed => self.raise_alarm(),
            }
        };
        self.handler_time = Some(run.elapsed());
        if matches!(end, RunEnd::Lost(_)) && run.has_ended() {
            // The handler finished at that very moment. If it succeeded, the message is deleted
            // when it returns.
            if run.verdict().await == Verdict::Ok {
                let id = &self.message.id;
                self.shared.done().insert(id, Finished::Handled);
            }
            return end;
        }
        // A handler that outlived the lock would overlap the message's next run.
        let within = match end {
            RunEnd::Lost(_) => CANCEL_GRACE,
            _ => CANCEL_GRACE.min(self.lock.remaining() / 2),
        };
        let cancelled = run.cancel(within);
        tokio::pin!(cancelled);
        tokio::select! {
            biased;
            _ = &mut cancelled => {}
            () = until(alarm_at), if !self.alarmed => {
                self.raise_alarm();
                cancelled.await;
            }
        }
        end
    }

    /// LS4 for fetched payloads: sets the latest start of the handler.
    fn allow_start(&self) {
        if let Some(claimed) = &self.claimed {
            let least = min_start(self.shared.config.visibility);
            claimed.start_by(Instant::now() + self.lock.remaining().saturating_sub(least));
        }
    }

    /// Renews the lock once. The expiry alarm does not wait for the result.
    async fn renew(&mut self, alarm_at: Option<Instant>) -> Renewal {
        self.asked = Asked::Update;
        let renewal = {
            let shared = Arc::clone(&self.shared);
            let renewal = self.lock.renew(&shared.calls);
            tokio::pin!(renewal);
            tokio::select! {
                biased;
                renewal = &mut renewal => renewal,
                () = until(alarm_at), if !self.alarmed => {
                    self.alarmed = true;
                    let now = self.server_time.plus(self.granted_at.elapsed());
                    alarm(&shared, &self.message, now);
                    renewal.await
                }
            }
        };
        self.allow_start();
        let id = &self.message.id;
        let renewed = Renewed {
            id,
            succeeded: renewal == Renewal::Renewed,
        };
        self.shared.observers.tell(|o| o.renewed(&renewed));
        if let Renewal::Lost(reason) = &renewal {
            self.shared
                .observers
                .tell(|o| o.lost_lock(&LostLock { id, reason }));
        }
        renewal
    }

    /// Returns when only a tenth of the message's time to live is left, by the service's clock at
    /// the get.
    fn alarm_at(&self) -> Option<Instant> {
        let from = dispatch::alarm_from(self.message.inserted, self.message.expires)?;
        self.granted_at.checked_add(from.since(self.server_time))
    }

    /// LL2: reports once that the service is about to drop this message. The decision alone may
    /// come too late, because the handler may run beyond the message's expiry.
    fn raise_alarm(&mut self) {
        if !std::mem::replace(&mut self.alarmed, true) {
            alarm(&self.shared, &self.message, self.server_now());
        }
    }

    async fn apply(&mut self, verdict: Verdict) -> Settled {
        let (count, most) = (self.message.dequeue_count, self.shared.config.max_dequeue);
        match dispatch::after_run(verdict, count, most) {
            Settlement::Delete => self.delete_done().await,
            Settlement::Retry(after, reason) => self.retry(after, reason).await,
            Settlement::Poison(reason) => self.poison(&reason).await,
            Settlement::Release(reason) => {
                // Sent first, so that no task receives another message meanwhile.
                self.shared.tell(Event::Unable(reason.clone()));
                self.release(&reason).await
            }
        }
    }

    fn server_now(&self) -> Timestamp {
        self.server_time.plus(self.granted_at.elapsed())
    }
}

/// Reports that the service is about to drop a message.
fn alarm(shared: &Shared, message: &QueueMessage, now: Timestamp) {
    let (id, expires) = (&message.id, message.expires);
    let left = expires.since(now);
    tracing::warn!(
        worker = %shared.config.worker,
        op = "alarm",
        queue = %shared.config.queue,
        msg_id = %id,
        outcome = "expiring",
        attempt = message.dequeue_count,
        trace = %trace(&shared.config.worker, message.dequeue_count),
        left_ms = left.as_millis() as u64,
        "a message is about to expire"
    );
    shared
        .observers
        .tell(|o| o.expiring(&Expiring { id, expires, left }));
}

/// Waits until `at`; forever if it is `None`.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Decodes a stored text; returns `None` if it does not have this encoding.
fn decode(encoding: Encoding, text: &str) -> Option<Bytes> {
    match encoding {
        Encoding::Text => Some(Bytes::copy_from_slice(text.as_bytes())),
        Encoding::Base64 => STANDARD.decode(text.trim()).ok().map(Bytes::from),
    }
}
