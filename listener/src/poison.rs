//! Moves a message to the poison queue: first a durable copy, then the delete.

use tokio::time::Instant;

use crate::message::Owner;
use crate::renew::Renewal;
use crate::report::Outcome;
use crate::rules::done::Finished;
use crate::rules::envelope::{Poisoned, poison_text, trace};
use crate::rules::renewal::min_start;
use crate::settle::{Attempts, Deleted, Settled};
use crate::shared::Asked;

impl Owner {
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
        match self.delete().await {
            Deleted::Yes | Deleted::Gone => Settled::new(Outcome::Poisoned, reason),
            Deleted::Lost(error) | Deleted::Failed(error) => {
                // The copy exists: when the message returns, it needs neither a run nor a second
                // copy.
                let id = self.lock.id();
                self.shared.done().insert(id, Finished::Copied);
                Settled::new(Outcome::PoisonedUnacked, format!("{reason}; {error}"))
            }
        }
    }

    /// Puts a copy of a finished message whose payload is marked as kept. Another listener began to
    /// poison the message and stopped; it is unknown whether it put the copy, and without a copy
    /// the payload would remain forever. A second copy does little harm, because both have the same
    /// `id`.
    pub(crate) async fn complete_quarantine(&mut self) -> Result<(), String> {
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
                tracing::warn!(
                    worker = %self.shared.config.worker,
                    op = "poison",
                    queue = %self.shared.config.queue,
                    msg_id = %id,
                    outcome = "payload_unknown",
                    reason = %error,
                    attempt = self.message.dequeue_count,
                    trace = %trace(&self.shared.config.worker, self.message.dequeue_count),
                    "cannot tell whether a copy in the poison queue needs the payload"
                );
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
    async fn keep_and_put(
        &self,
        id: &str,
        text: &str,
        until: Instant,
    ) -> Result<(), smalt_sleeve::PortError> {
        if let Some(claimed) = &self.claimed {
            claimed.keep(until).await?;
        }
        self.shared.calls.put_poison(id, text, until).await
    }

    async fn put_copy(&mut self, text: &str) -> Result<(), smalt_sleeve::PortError> {
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
}
