//! The lock on one message: its newest receipt, how long it holds, and its renewal.
//!
//! Only the message's owner has it, and every method takes it exclusively: a renewal and a delete
//! can therefore never be under way at the same time, and no older receipt is ever used (LS2).

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{ErrorKind, PortError, QueueMessage};
use tokio::time::Instant;

use crate::calls::Calls;
use crate::rules::renewal::{renew_after, retry_after};
use crate::rules::retry_curve::within_life;

/// How a renewal went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The lock holds for another visibility timeout.
    Renewed,
    /// Storage did not answer well; the next attempt is scheduled.
    Failed,
    /// The lock is lost, for this reason.
    Lost(String),
}

/// The lock on one message.
#[derive(Debug)]
pub(crate) struct Lock {
    id: String,
    receipt: String,
    visibility: Duration,
    /// Until here nobody else is given the message.
    valid_until: Instant,
    /// When the next renewal is due; `None` when the lock outlives the message.
    renew_at: Option<Instant>,
    /// When the service drops the message; `None` for never.
    expires_at: Option<Instant>,
    renewals: u32,
}

impl Lock {
    /// The lock that a get granted at `at`.
    pub(crate) fn granted(
        message: &QueueMessage,
        at: Instant,
        server_time: Timestamp,
        visibility: Duration,
    ) -> Self {
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

    /// The newest receipt.
    pub(crate) fn receipt(&self) -> &str {
        &self.receipt
    }

    pub(crate) fn renewals(&self) -> u32 {
        self.renewals
    }

    /// How long the lock still holds.
    pub(crate) fn remaining(&self) -> Duration {
        self.valid_until.saturating_duration_since(Instant::now())
    }

    pub(crate) fn holds(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long the message still lives; `None` for ever.
    pub(crate) fn life_left(&self) -> Option<Duration> {
        self.expires_at
            .map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Waits until a renewal is due: for ever when none is needed.
    pub(crate) async fn renewal_due(&self) {
        match self.renew_at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Renews once. A 404 or another's receipt means that the lock is lost, and so does a failure
    /// when the visibility has lapsed; any other failure is tried again before that.
    pub(crate) async fn renew(&mut self, calls: &Calls) -> Renewal {
        let Some(wanted) = within_life(self.visibility, self.life_left()) else {
            // No update is accepted so close to the end; nobody else can finish it either.
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

/// Whether an earlier try of a renewal may have happened, and took the receipt with it: the new one
/// never came, so nothing can be done about the message any more, whoever has it.
fn has_lost_receipt(error: &PortError) -> bool {
    error.kind == ErrorKind::OutcomeUnknown && error.code.as_deref() == Some("PopReceiptMismatch")
}

/// Whether the answer to an update or delete says that the message is no longer ours. The service's
/// pages disagree on which of the two a stale receipt gets, so both count.
pub(crate) fn means_lost(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::ReceiptMismatch | ErrorKind::NotFound)
}
