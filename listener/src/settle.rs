//! Settles a message: deletes it, hides it until its retry, or gives it back. Each request is
//! repeated until its result is known, the lock has expired, or the listener stops.

use std::time::Duration;

use smalt_sleeve::port::{ErrorKind, PortError};
use tokio::time::Instant;

use crate::jitter::of_message;
use crate::message::Owner;
use crate::renew::means_lost;
use crate::report::Outcome;
use crate::rules::backoff::Backoff;
use crate::rules::done::Finished;
use crate::rules::envelope::trace;
use crate::rules::retry_curve::{retry_delay, within_life};
use crate::shared::{Asked, Phase, Shared};

/// Attempts to give a message back while stopping; more would delay the exit.
const RELEASE_ATTEMPTS: u32 = 2;

/// The result for a message.
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

/// The result of a delete after all attempts.
pub(crate) enum Deleted {
    Yes,
    /// The message was gone before the first attempt.
    Gone,
    /// Another listener has the message.
    Lost(String),
    /// The delete failed until the lock expired.
    Failed(String),
}

/// The attempts at one request about one message.
pub(crate) struct Attempts {
    number: u64,
    /// Whether an earlier attempt may have succeeded without an answer.
    unknown: bool,
    valid_until: Instant,
}

impl Attempts {
    pub(crate) fn new(lock_remaining: Duration) -> Self {
        Attempts {
            number: 0,
            unknown: false,
            valid_until: Instant::now() + lock_remaining,
        }
    }

    /// Returns whether an earlier attempt may have succeeded.
    pub(crate) fn may_have_happened(&self) -> bool {
        self.unknown
    }

    /// Returns when the attempts end.
    pub(crate) fn valid_until(&self) -> Instant {
        self.valid_until
    }

    /// Waits before the next attempt; returns `false` if there is no time for one.
    pub(crate) async fn again(&mut self, shared: &Shared, id: &str, error: &PortError) -> bool {
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

    /// Deletes a message that was finished before.
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
                tracing::warn!(
                    worker = %self.shared.config.worker,
                    op = "payload",
                    queue = %self.shared.config.queue,
                    msg_id = %self.lock.id(),
                    outcome = "payload_unscheduled",
                    reason = %error,
                    attempt = self.message.dequeue_count,
                    trace = %trace(&self.shared.config.worker, self.message.dequeue_count),
                    "cannot give the payload an expiry; it is deleted after its message, or remains"
                );
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
    pub(crate) async fn delete(&mut self) -> Deleted {
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

    /// Makes the message visible at once.
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
}
