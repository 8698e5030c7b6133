//! The lock on one message: its newest receipt, its expiry and its renewal.
//!
//! Only the message's owner has it, and every method that changes it takes it exclusively.
//! Therefore a renewal and a delete never run at the same time, and no older receipt is ever used
//! (LS2).

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{ErrorKind, PortError, QueueMessage};
use tokio::time::Instant;

use crate::calls::Calls;
use crate::rules::renewal::{renew_after, retry_after};
use crate::rules::retry_curve::within_life;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The lock is valid for another visibility timeout.
    Renewed,
    /// The renewal failed; the next attempt is scheduled.
    Failed,
    /// The lock is lost, with the reason.
    Lost(String),
}

/// When a get granted messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    /// The moment before the get was sent.
    pub(crate) at: Instant,
    /// The service's time of its answer.
    pub(crate) server_time: Timestamp,
}

impl Grant {
    pub(crate) fn server_now(&self) -> Timestamp {
        self.server_time.plus(self.at.elapsed())
    }
}

#[derive(Debug)]
pub(crate) struct Lock {
    id: String,
    receipt: String,
    visibility: Duration,
    /// Until then no other listener receives the message.
    valid_until: Instant,
    /// When the next renewal is due; `None` if the lock outlives the message.
    renew_at: Option<Instant>,
    /// When the service drops the message; `None` for never.
    expires_at: Option<Instant>,
    renewals: u32,
}

impl Lock {
    /// Creates the lock that a get granted.
    pub(crate) fn granted(message: &QueueMessage, grant: Grant, visibility: Duration) -> Self {
        let Grant { at, server_time } = grant;
        let life = message.expires.since(server_time);
        let expires_at = match message.expires {
            Timestamp::MAX => None,
            _ => at.checked_add(life),
        };
        let mut lock = Lock {
            id: message.id.clone(),
            receipt: message.pop_receipt.clone(),
            visibility,
            valid_until: at,
            renew_at: None,
            expires_at,
            renewals: 0,
        };
        lock.extend(at, visibility);
        lock
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn receipt(&self) -> &str {
        &self.receipt
    }

    pub(crate) fn renewals(&self) -> u32 {
        self.renewals
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.valid_until.saturating_duration_since(Instant::now())
    }

    pub(crate) fn holds(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns the message's remaining time to live; `None` if it never expires.
    pub(crate) fn life_left(&self) -> Option<Duration> {
        self.expires_at
            .map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Waits until a renewal is due, or forever if none is needed.
    pub(crate) async fn renewal_due(&self) {
        match self.renew_at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Renews once. The lock is lost after a 404, a receipt mismatch, or any failure once the
    /// visibility timeout has ended; other failures are retried before that.
    pub(crate) async fn renew(&mut self, calls: &Calls) -> Renewal {
        let Some(wanted) = within_life(self.visibility, self.life_left()) else {
            // No update is accepted this close to the message's expiry, and no other listener can
            // handle it either.
            self.renew_at = None;
            return Renewal::Failed;
        };
        let patience = (self.remaining() / 2).max(Duration::from_secs(1));
        match calls
            .update(&self.id, &self.receipt, wanted, patience)
            .await
        {
            Ok(answer) => {
                self.receipt = answer.value.pop_receipt;
                self.renewals += 1;
                self.extend(answer.at, wanted);
                Renewal::Renewed
            }
            Err(error) if means_lost(&error) || has_lost_receipt(&error) => {
                Renewal::Lost(error.to_string())
            }
            Err(error) if !self.holds() => Renewal::Lost(format!("lapsed: {error}")),
            Err(error) => {
                let pause = retry_after(self.remaining(), error.retry_after);
                self.renew_at = Some(Instant::now() + pause);
                Renewal::Failed
            }
        }
    }

    fn extend(&mut self, at: Instant, granted: Duration) {
        self.valid_until = at + granted;
        let outlived = self
            .expires_at
            .is_some_and(|expires| self.valid_until + Duration::from_secs(3) >= expires);
        self.renew_at = (!outlived).then(|| at + renew_after(granted));
    }
}

/// Returns whether an earlier try of a renewal may have succeeded without an answer. The receipt it
/// issued is unknown, so nothing more can be done about the message.
fn has_lost_receipt(error: &PortError) -> bool {
    error.kind == ErrorKind::OutcomeUnknown && error.code.as_deref() == Some("PopReceiptMismatch")
}

/// Returns whether the answer to an update or delete means that the lock is lost. The service's
/// documentation disagrees on which of the two a stale receipt gets, so both count.
pub(crate) fn means_lost(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::ReceiptMismatch | ErrorKind::NotFound)
}
