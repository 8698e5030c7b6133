//! The owner of one message: a single task from its receipt to its end.
//!
//! [`Owner::live`] is that life in order: open the body, decide, run the handler, decide again, and
//! make the requests that end the message (`settle.rs`). The owner makes all requests about the
//! message one after the other, so renewal and delete cannot race.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::QueueMessage;
use tokio::time::Instant;

use crate::config::Encoding;
use crate::handler::{Message, Verdict};
use crate::observers::{Expiring, LostLock, Renewed, Started};
use crate::payload::{Claimed, Opened};
use crate::renew::{Grant, Lock, Renewal};
use crate::report::{Decision, Outcome};
use crate::rules::dispatch::{self, Ran, Received, Step};
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
    grant: Grant,
    handler_time: Option<Duration>,
    /// The last request about the message.
    pub(crate) asked: Asked,
    /// The payload, if it is in a blob.
    pub(crate) claimed: Option<Claimed>,
}

impl Owner {
    /// Creates the owner of a message that a get granted.
    pub(crate) fn new(shared: Arc<Shared>, message: QueueMessage, grant: Grant) -> Self {
        let lock = Lock::granted(&message, grant, shared.config.visibility);
        Owner {
            shared,
            message,
            lock,
            grant,
            handler_time: None,
            asked: Asked::Get,
            claimed: None,
        }
    }

    /// Brings the message to its end and reports the decision.
    pub(crate) async fn settle(mut self) {
        let mut alarm = Alarm::of(&self);
        let settled = self.live(&mut alarm).await;
        let hidden = settled.hidden_for.unwrap_or_default();
        let asleep = self.shared.config.longest_sleep();
        let next_attempt = self.grant.server_now().plus(hidden).plus(asleep);
        let over = matches!(
            settled.outcome,
            Outcome::Done | Outcome::Gone | Outcome::Poisoned | Outcome::DuplicateDeleted
        );
        let (inserted, expires) = (self.message.inserted, self.message.expires);
        let expiring = !over && dispatch::expiry_alarm(inserted, expires, next_attempt);
        if expiring {
            alarm.raise();
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
        self.shared
            .decide(&decision, self.grant.at.elapsed(), self.asked);
    }

    async fn live(&mut self, alarm: &mut Alarm) -> Settled {
        let opened = self.open();
        let received = Received {
            finished_before: self.shared.done().get(&self.message.id).is_some(),
            is_stopping: self.shared.phase() >= Phase::Draining,
            dequeue_count: self.message.dequeue_count,
            max_dequeue: self.shared.config.max_dequeue,
            unreadable: opened.as_ref().err().cloned(),
        };
        let body = opened.unwrap_or_default();
        let mut ran = Ran::NotYet;
        loop {
            return match dispatch::decide(&received, ran) {
                Step::Run => {
                    ran = alarm.during(self.run(body.clone())).await;
                    continue;
                }
                Step::Delete => self.delete_done().await,
                Step::DeleteAgain => self.delete_duplicate().await,
                Step::Retry(after, reason) => self.retry(after, reason).await,
                Step::Poison(reason) => self.poison(&reason).await,
                Step::Release(reason) => self.release(&reason).await,
                Step::Unable(reason) => {
                    // Sent first, so that no task receives another message meanwhile.
                    self.shared.tell(Event::Unable(reason.clone()));
                    self.release(&reason).await
                }
                Step::Leave(outcome, reason) => Settled::new(outcome, reason),
            };
        }
    }

    /// Returns the body, empty if it is in a blob; or the reason why it is unusable.
    fn open(&mut self) -> Result<Bytes, String> {
        let body = decode(self.shared.config.encoding, &self.message.text)
            .ok_or("the text is not valid Base64")?;
        match Opened::of(body, self.shared.payloads.as_ref()) {
            Opened::Body(body) => Ok(body),
            Opened::Refused(why) => Err(why),
            Opened::Claimed(claimed) => {
                self.claimed = Some(claimed);
                Ok(Bytes::new())
            }
        }
    }

    /// Runs the handler if enough of the lock is left (LS4), and attends it until it ends.
    async fn run(&mut self, body: Bytes) -> Ran {
        if self.lock.remaining() < min_start(self.shared.config.visibility) {
            self.asked = Asked::Update;
            match self.lock.renew(&self.shared.calls).await {
                Renewal::Renewed => {}
                Renewal::Failed => return Ran::TooLate("too late to start".to_owned()),
                Renewal::Lost(reason) => return Ran::TooLate(reason),
            }
        }
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
        self.allow_start();
        let run = Run::start(&self.shared, self.claimed.clone(), message);
        self.attend(run).await
    }

    /// Watches a run until it ends: renews its lock and enforces its timeout.
    async fn attend(&mut self, mut run: Run) -> Ran {
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
        let shared = Arc::clone(&self.shared);
        let leaving = shared.reached(Phase::Leaving);
        tokio::pin!(leaving);
        let end = loop {
            tokio::select! {
                biased;
                verdict = run.verdict() => {
                    self.handler_time = Some(run.elapsed());
                    return Ran::Ended(verdict);
                }
                () = &mut leaving => break Ran::Interrupted,
                () = tokio::time::sleep_until(deadline) => {
                    break Ran::Ended(Verdict::retry(format!("timed out after {allowed:?}")));
                }
                () = self.lock.renewal_due(), if renews => {
                    if let Renewal::Lost(reason) = self.renew().await {
                        break Ran::LostLock(reason);
                    }
                }
            }
        };
        self.handler_time = Some(run.elapsed());
        let is_lost = matches!(end, Ran::LostLock(_));
        if is_lost && run.has_ended() {
            // The handler finished at that very moment. If it succeeded, the message is deleted
            // when it returns.
            if run.verdict().await == Verdict::Ok {
                let id = &self.message.id;
                self.shared.done().insert(id, Finished::Handled);
            }
            return end;
        }
        // A handler that outlived the lock would overlap the message's next run.
        let within = match is_lost {
            true => CANCEL_GRACE,
            false => CANCEL_GRACE.min(self.lock.remaining() / 2),
        };
        run.cancel(within).await;
        end
    }

    /// LS4 for fetched payloads: sets the latest start of the handler.
    fn allow_start(&self) {
        if let Some(claimed) = &self.claimed {
            let least = min_start(self.shared.config.visibility);
            claimed.start_by(Instant::now() + self.lock.remaining().saturating_sub(least));
        }
    }

    async fn renew(&mut self) -> Renewal {
        self.asked = Asked::Update;
        let renewal = self.lock.renew(&self.shared.calls).await;
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
}

/// LL2: the report that the service is about to drop a message. The decision alone may come too
/// late, because the handler may run beyond the message's expiry.
struct Alarm {
    shared: Arc<Shared>,
    id: String,
    dequeue_count: u32,
    expires: Timestamp,
    grant: Grant,
    /// When only a tenth of the message's time to live is left, by the service's clock at the get.
    at: Option<Instant>,
    was_raised: bool,
}

impl Alarm {
    fn of(owner: &Owner) -> Self {
        let (message, grant) = (&owner.message, owner.grant);
        let from = dispatch::alarm_from(message.inserted, message.expires);
        Alarm {
            shared: Arc::clone(&owner.shared),
            id: message.id.clone(),
            dequeue_count: message.dequeue_count,
            expires: message.expires,
            grant,
            at: from.and_then(|from| grant.at.checked_add(from.since(grant.server_time))),
            was_raised: false,
        }
    }

    /// Does `work`, and raises the alarm when it is due meanwhile.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = until(self.at) => self.raise(),
        }
        work.await
    }

    /// Reports once that the service is about to drop the message.
    fn raise(&mut self) {
        if std::mem::replace(&mut self.was_raised, true) {
            return;
        }
        let (config, id, expires) = (&self.shared.config, &self.id, self.expires);
        let left = expires.since(self.grant.server_now());
        tracing::warn!(
            worker = %config.worker,
            op = "alarm",
            queue = %config.queue,
            msg_id = %id,
            outcome = "expiring",
            attempt = self.dequeue_count,
            trace = %trace(&config.worker, self.dequeue_count),
            left_ms = left.as_millis() as u64,
            "a message is about to expire"
        );
        self.shared
            .observers
            .tell(|o| o.expiring(&Expiring { id, expires, left }));
    }
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
