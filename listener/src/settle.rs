//! The requests that end a message's life: it is deleted, hidden until its retry, given back, or
//! moved to the poison queue (first a durable copy, then the delete). Each request is repeated
//! until its result is known, the lock has expired, or the listener stops.

use std::time::Duration;

use smalt_sleeve::port::{ErrorKind, PortError};
use tokio::time::Instant;

use crate::jitter::of_message;
use crate::message::Owner;
use crate::renew::{Renewal, means_lost};
use crate::report::Outcome;
use crate::rules::backoff::Backoff;
use crate::rules::done::Finished;
use crate::rules::envelope::{Poisoned, poison_text, trace};
use crate::rules::renewal::min_start;
use crate::rules::retry_curve::{retry_delay, within_life};
use crate::shared::{Asked, Phase, Shared};

/// Attempts to give a message back while stopping; more would delay the exit.
const RELEASE_ATTEMPTS: u32 = 2;

#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
    /// How long the message stays hidden; `None` if it is gone or its visibility is unknown.
    pub(crate) hidden_for: Option<Duration>,
}

impl Settled {
    pub(crate) fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Settled {
            outcome,
            reason: reason.into(),
            hidden_for: None,
        }
    }

    pub(crate) fn hidden_for(mut self, hidden: Duration) -> Self {
        self.hidden_for = Some(hidden);
        self
    }
}

enum Deleted {
    Yes,
    /// The message was gone before the first attempt.
    Gone,
    Lost(String),
    /// The delete failed until the lock expired.
    Failed(String),
}

/// The attempts at one request about one message.
struct Attempts {
    number: u64,
    /// Whether an earlier attempt may have succeeded without an answer.
    unknown: bool,
    valid_until: Instant,
}

impl Attempts {
    fn new(lock_remaining: Duration) -> Self {
        Attempts {
            number: 0,
            unknown: false,
            valid_until: Instant::now() + lock_remaining,
        }
    }

    /// Returns whether an earlier attempt may have succeeded.
    fn may_have_happened(&self) -> bool {
        self.unknown
    }

    fn valid_until(&self) -> Instant {
        self.valid_until
    }

    /// Waits before the next attempt; returns `false` if there is no time for one.
    async fn again(&mut self, shared: &Shared, id: &str, error: &PortError) -> bool {
        self.unknown |= error.kind == ErrorKind::OutcomeUnknown || error.kind == ErrorKind::Busy;
        let pause = error.retry_after.unwrap_or_else(|| {
            Backoff::for_errors().delay(self.number, of_message(id, self.number))
        });
        self.number += 1;
        let next = Instant::now() + pause;
        if next >= self.valid_until || shared.phase() >= Phase::Leaving {
            return false;
        }
        tokio::time::sleep_until(next).await;
        true
    }
}

impl Owner {
    /// Deletes a handled message, or remembers it if the delete fails.
    pub(crate) async fn delete_done(&mut self) -> Settled {
        // Inserted before the delete: the lock may expire during its attempts, and the message
        // return to this very process.
        let id = self.lock.id();
        self.shared.done().insert(id, Finished::Handled);
        if let Err(reason) = self.prepare_payload().await {
            return Settled::new(Outcome::Unacked, reason);
        }
        let (outcome, reason) = match self.delete().await {
            Deleted::Yes => {
                self.shared.done().remove(self.lock.id());
                self.drop_payload().await;
                return Settled::new(Outcome::Done, "");
            }
            // It may have expired, or another listener may have deleted it. It stays remembered,
            // because if it returns, it needs no second run.
            Deleted::Gone => (Outcome::Gone, "not found at the delete".to_owned()),
            Deleted::Lost(reason) => (Outcome::LostLock, reason),
            Deleted::Failed(reason) => (Outcome::Unacked, reason),
        };
        Settled::new(outcome, reason)
    }

    pub(crate) async fn delete_duplicate(&mut self) -> Settled {
        if let Err(reason) = self.prepare_payload().await {
            return Settled::new(Outcome::DuplicateKept, reason);
        }
        match self.delete().await {
            deleted @ (Deleted::Yes | Deleted::Gone) => {
                self.shared.done().remove(self.lock.id());
                if matches!(deleted, Deleted::Yes) {
                    self.drop_payload().await;
                }
                Settled::new(Outcome::DuplicateDeleted, "finished before")
            }
            Deleted::Lost(reason) | Deleted::Failed(reason) => {
                Settled::new(Outcome::DuplicateKept, reason)
            }
        }
    }

    /// Makes sure before the delete that no payload of a finished message remains forever.
    async fn prepare_payload(&mut self) -> Result<(), String> {
        self.schedule_payload().await?;
        self.complete_quarantine().await
    }

    /// Gives the payload of a message that never expires an expiry, before the message is deleted.
    /// If storage fails temporarily, the message is not deleted; if storage refuses, it is deleted
    /// all the same, because it is handled.
    async fn schedule_payload(&self) -> Result<(), String> {
        let Some(claimed) = self.claimed.as_ref() else {
            return Ok(());
        };
        if self.lock.life_left().is_some() {
            return Ok(());
        }
        // The rest of the lock's time is reserved for the delete.
        let mut attempts = Attempts::new(self.lock.remaining() / 2);
        let within = self.shared.config.call_timeout;
        loop {
            let until = attempts.valid_until();
            let left = until.saturating_duration_since(Instant::now());
            let Err(error) = claimed.about_to_delete(within.min(left)).await else {
                return Ok(());
            };
            if !error.is_transient() {
                let what = "cannot give the payload an expiry, so a crash could leave it";
                self.warn(("payload", "payload_unscheduled"), &error, what);
                return Ok(());
            }
            if !attempts.again(&self.shared, self.lock.id(), &error).await {
                return Err(format!("cannot give its payload an expiry: {error}"));
            }
        }
    }

    /// Deletes the payload after its message, so that no visible message lacks its payload (LS6).
    async fn drop_payload(&self) {
        if let Some(claimed) = &self.claimed {
            let within = self.shared.config.call_timeout;
            claimed.message_deleted(within).await;
        }
    }

    /// Deletes by the newest receipt until the result is known.
    async fn delete(&mut self) -> Deleted {
        self.asked = Asked::Delete;
        let mut attempts = Attempts::new(self.lock.remaining());
        loop {
            let (id, receipt) = (self.lock.id(), self.lock.receipt());
            let error = match self.shared.calls.delete(id, receipt).await {
                Ok(()) => return Deleted::Yes,
                Err(error) => error,
            };
            match error.kind {
                // An earlier attempt whose answer was lost has deleted it.
                ErrorKind::NotFound if attempts.may_have_happened() => {
                    return Deleted::Yes;
                }
                ErrorKind::NotFound => return Deleted::Gone,
                ErrorKind::ReceiptMismatch => return Deleted::Lost(error.to_string()),
                _ => {}
            }
            if !attempts.again(&self.shared, self.lock.id(), &error).await {
                return Deleted::Failed(error.to_string());
            }
        }
    }

    /// Hides the message until its next attempt, by the curve or as its handler requested.
    pub(crate) async fn retry(&mut self, asked: Option<Duration>, reason: String) -> Settled {
        let config = &self.shared.config;
        let wanted = retry_delay(&config.retry, self.message.dequeue_count, asked);
        match self.hide(wanted).await {
            Ok(hidden) => Settled::new(Outcome::Retried, reason).hidden_for(hidden),
            Err(error) if means_lost(&error) => {
                Settled::new(Outcome::LostLock, format!("{reason}; {error}"))
            }
            Err(error) => Settled::new(Outcome::RetryUnset, format!("{reason}; {error}"))
                .hidden_for(self.lock.remaining()),
        }
    }

    async fn hide(&mut self, wanted: Duration) -> Result<Duration, PortError> {
        let mut attempts = Attempts::new(self.lock.remaining());
        loop {
            // This close to the message's expiry, the service accepts no other delay than zero.
            let hidden = within_life(wanted, self.lock.life_left()).unwrap_or(Duration::ZERO);
            let error = match self.update(hidden).await {
                Ok(()) => return Ok(hidden),
                Err(error) => error,
            };
            if error.kind == ErrorKind::ReceiptMismatch && attempts.may_have_happened() {
                return Ok(hidden);
            }
            if means_lost(&error) || !attempts.again(&self.shared, self.lock.id(), &error).await {
                return Err(error);
            }
        }
    }

    pub(crate) async fn release(&mut self, reason: &str) -> Settled {
        for _ in 0..RELEASE_ATTEMPTS {
            match self.update(Duration::ZERO).await {
                Ok(()) => return Settled::new(Outcome::Released, reason),
                Err(error) if means_lost(&error) => {
                    return Settled::new(Outcome::LostLock, error.to_string());
                }
                Err(_) => {}
            }
        }
        Settled::new(Outcome::ReleaseFailed, reason).hidden_for(self.lock.remaining())
    }

    async fn update(&mut self, visibility: Duration) -> Result<(), PortError> {
        self.asked = Asked::Update;
        let (id, receipt) = (self.lock.id(), self.lock.receipt());
        let timeout = self.shared.config.call_timeout;
        let answer = self.shared.calls.update(id, receipt, visibility, timeout);
        answer.await.map(|_| ())
    }

    /// Puts a copy that never expires into the poison queue, and deletes the message once the copy
    /// is durable (LS1). A put whose answer was lost is repeated; the envelope's `id` identifies
    /// such copies. If the put fails until the lock expires, nothing is lost: the message returns
    /// and is tried again.
    pub(crate) async fn poison(&mut self, reason: &str) -> Settled {
        if let Err(lost) = self.still_ours().await {
            return lost;
        }
        let text = self.copy_text(reason);
        if let Err(error) = self.put_copy(&text).await {
            let reason = format!("{reason}; {error}");
            return Settled::new(Outcome::PoisonFailed, reason).hidden_for(self.lock.remaining());
        }
        // Inserted before the delete, as in `delete_done`: when the message returns, it needs
        // neither a run nor a second copy.
        let id = self.lock.id();
        self.shared.done().insert(id, Finished::Copied);
        match self.delete().await {
            Deleted::Yes => {
                self.shared.done().remove(self.lock.id());
                Settled::new(Outcome::Poisoned, reason)
            }
            Deleted::Gone => Settled::new(Outcome::Poisoned, reason),
            Deleted::Lost(error) | Deleted::Failed(error) => {
                Settled::new(Outcome::PoisonedUnacked, format!("{reason}; {error}"))
            }
        }
    }

    /// Puts a copy of a finished message whose payload is marked as kept. Another listener began to
    /// poison the message and stopped; it is unknown whether it put the copy, and without a copy
    /// the payload would remain forever. A second copy does little harm, because both have the same
    /// `id`.
    async fn complete_quarantine(&mut self) -> Result<(), String> {
        let id = self.lock.id();
        if self.shared.done().get(id) == Some(Finished::Copied) {
            return Ok(());
        }
        let Some(claimed) = &self.claimed else {
            return Ok(());
        };
        let within = (self.shared.config.call_timeout).min(self.lock.remaining() / 2);
        match claimed.is_kept(within).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) if error.is_transient() => {
                return Err(format!("its payload cannot be read: {error}"));
            }
            // The message is handled, whatever happens to its payload.
            Err(error) => {
                let what = "cannot tell whether a copy in the poison queue needs the payload";
                self.warn(("poison", "payload_unknown"), &error, what);
                return Ok(());
            }
        }
        let text = self.copy_text("another listener began to poison it; it was handled since");
        (self.put_copy(&text).await).map_err(|error| format!("its copy was not put: {error}"))?;
        self.shared.done().insert(self.lock.id(), Finished::Copied);
        Ok(())
    }

    fn copy_text(&self, reason: &str) -> String {
        poison_text(&Poisoned {
            id: &self.message.id,
            queue: &self.shared.config.queue,
            inserted: self.message.inserted,
            expires: self.message.expires,
            dequeue_count: self.message.dequeue_count,
            error: reason,
            worker: &self.shared.config.worker,
            body: &self.message.text,
        })
    }

    /// LS4: nothing is acknowledged for a message that another listener may have received.
    async fn still_ours(&mut self) -> Result<(), Settled> {
        if self.lock.remaining() >= min_start(self.shared.config.visibility) {
            return Ok(());
        }
        self.asked = Asked::Update;
        match self.lock.renew(&self.shared.calls).await {
            Renewal::Renewed => Ok(()),
            Renewal::Failed if self.lock.holds() => Ok(()),
            Renewal::Failed => Err(Settled::new(Outcome::LostLock, "lapsed")),
            Renewal::Lost(reason) => Err(Settled::new(Outcome::LostLock, reason)),
        }
    }

    /// Keeps the payload, then puts the copy, so that no copy refers to a payload that the sweeper
    /// is about to delete.
    async fn keep_and_put(&self, id: &str, text: &str, until: Instant) -> Result<(), PortError> {
        if let Some(claimed) = &self.claimed {
            claimed.keep(until).await?;
        }
        self.shared.calls.put_poison(id, text, until).await
    }

    async fn put_copy(&mut self, text: &str) -> Result<(), PortError> {
        self.asked = Asked::Poison;
        let mut attempts = Attempts::new(self.lock.remaining());
        loop {
            let until = attempts.valid_until();
            let id = &self.message.id;
            match self.keep_and_put(id, text, until).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let id = self.lock.id();
                    if !attempts.again(&self.shared, id, &error).await {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Logs what storage refused about a message that is settled all the same.
    fn warn(&self, (op, outcome): (&str, &str), reason: &PortError, what: &str) {
        let (worker, count) = (&self.shared.config.worker, self.message.dequeue_count);
        tracing::warn!(
            worker = %worker,
            op,
            queue = %self.shared.config.queue,
            msg_id = %self.lock.id(),
            outcome,
            reason = %reason,
            attempt = count,
            trace = %trace(worker, count),
            "{what}"
        );
    }
}
