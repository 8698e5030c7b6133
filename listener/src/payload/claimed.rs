//! A received message whose payload is in a blob: fetches the payload for the handler, deletes it
//! after the message, or keeps it for the copy in the poison queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{ErrorKind, PortError, PortResult};
use tokio::time::Instant;

use super::envelope::{self, Claim, Reading};
use super::store::{BlobVersion, FetchError, PayloadStore};
use crate::handler::{Message, Verdict};

/// How often a missing or damaged payload is searched for again.
const SEARCHES_AGAIN: u32 = 3;

/// A message's body as its queue's configuration reads it.
pub(crate) enum Opened {
    Body(Bytes),
    Claimed(Claimed),
    /// An envelope that must not be followed, with the reason.
    Refused(String),
}

/// A received message whose payload is in a blob. Clones share their state.
#[derive(Clone)]
pub(crate) struct Claimed {
    store: Arc<PayloadStore>,
    claim: Arc<Claim>,
    /// The version of the blob that was read, or whose metadata was changed since.
    read: Arc<Mutex<Option<BlobVersion>>>,
    /// Latest time at which the handler may start, so that enough of the lock is left.
    start_by: Arc<Mutex<Option<Instant>>>,
}

impl Opened {
    /// Reads a body by the queue's configuration; without a store every body is plain.
    pub(crate) fn of(body: Bytes, store: Option<&Arc<PayloadStore>>) -> Self {
        let Some(store) = store else {
            return Opened::Body(body);
        };
        match envelope::read(&body, &store.offload().bounds()) {
            Reading::Plain => Opened::Body(body),
            Reading::Refused(why) => Opened::Refused(why),
            Reading::Claim(claim) => Opened::Claimed(Claimed {
                store: Arc::clone(store),
                claim: Arc::new(claim),
                read: Arc::default(),
                start_by: Arc::default(),
            }),
        }
    }
}

impl Claimed {
    /// Puts the payload into the message, or returns the verdict on a message without one. Runs in
    /// the handler's task, under the lock and timeout of the run.
    pub(crate) async fn fetch(&self, message: &mut Message) -> Result<(), Verdict> {
        let lives_on = message.expires == Timestamp::MAX;
        let (body, seen) = match self.store.fetch(&self.claim, lives_on).await {
            Ok(fetched) => fetched,
            Err(error) => return Err(after_failed_search(&error, message.dequeue_count)),
        };
        *self.read() = Some(seen);
        if self.is_too_late() {
            return Err(Verdict::retry(
                "fetching its payload took too long to start the handler",
            ));
        }
        message.body = body;
        Ok(())
    }

    fn read(&self) -> MutexGuard<'_, Option<BlobVersion>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the latest start of the handler after the lock was granted or renewed.
    pub(crate) fn start_by(&self, at: Instant) {
        *self.start_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    fn is_too_late(&self) -> bool {
        let start_by = *self.start_by.lock().unwrap_or_else(PoisonError::into_inner);
        start_by.is_some_and(|at| Instant::now() > at)
    }

    /// Prepares the payload of a message that never expires for the delete: gives it an expiry, so
    /// that it does not remain if this process ends between the two deletes.
    pub(crate) async fn about_to_delete(&self, within: Duration) -> PortResult<()> {
        let seen = self.read().clone();
        let scheduling = self.store.schedule(&self.claim, seen.clone());
        match smalt_sleeve::within(within, scheduling).await {
            Ok(Ok(seen)) => {
                *self.read() = seen;
                Ok(())
            }
            Ok(Err(error)) => {
                // The change may have been made, so the version that was read may no longer exist.
                *self.read() = None;
                Err(error)
            }
            Err(_) => {
                *self.read() = None;
                Err(self.unanswered())
            }
        }
    }

    /// Returns whether the payload is kept for a copy of its message in a poison queue.
    pub(crate) async fn is_kept(&self, within: Duration) -> PortResult<bool> {
        if let Some(seen) = &*self.read() {
            return Ok(seen.is_kept);
        }
        let look = tokio::time::timeout(within, self.store.look(&self.claim)).await;
        let seen = look.unwrap_or_else(|_| Err(self.unanswered()))?;
        *self.read() = seen;
        Ok(self.read().as_ref().is_some_and(|seen| seen.is_kept))
    }

    fn unanswered(&self) -> PortError {
        let (kind, why) = (ErrorKind::OutcomeUnknown, "no answer in time");
        PortError::new(kind, "Set Blob Metadata", &self.claim.reference.blob, why)
    }

    /// Deletes the payload after its message. On a failure the sweeper deletes it later.
    pub(crate) async fn message_deleted(&self, within: Duration) {
        let dropping = async {
            let read = self.read().clone();
            match read {
                Some(seen) if seen.is_kept => Ok(()),
                Some(seen) => self.store.drop_read(&self.claim, &seen.tag).await,
                None => self.store.drop_unread(&self.claim).await,
            }
        };
        let problem = match tokio::time::timeout(within, dropping).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(
            op = "payload",
            blob = %self.claim.reference.blob,
            outcome = "payload_left",
            reason = %problem,
            "cannot delete the payload; the sweeper will delete it"
        );
    }

    /// Keeps the payload for a copy of the message that is about to be put into the poison queue.
    pub(crate) async fn keep(&self, until: Instant) -> PortResult<()> {
        let kept = tokio::time::timeout_at(until, self.store.keep(&self.claim));
        kept.await.unwrap_or_else(|_| Err(self.unanswered()))
    }
}

/// Returns the verdict after a failed search for a payload. A missing or damaged payload is
/// searched for again, because it may have been damaged in transit. A storage failure is an
/// ordinary retry.
fn after_failed_search(error: &FetchError, dequeue_count: u32) -> Verdict {
    let final_one = dequeue_count > SEARCHES_AGAIN;
    match error {
        // The binding will not change, so a retry would not help.
        FetchError::Foreign => Verdict::reject(error.to_string()),
        FetchError::Missing | FetchError::Damaged(_) if final_one => {
            Verdict::reject(error.to_string())
        }
        _ => Verdict::retry(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_payload_is_searched_once() {
        let verdict = after_failed_search(&FetchError::Foreign, 1);
        assert!(matches!(verdict, Verdict::Reject { .. }));
    }

    #[test]
    fn a_payload_is_searched_four_times() {
        let damaged = FetchError::Damaged("other hash".to_owned());
        for count in 1..=3 {
            for error in [&FetchError::Missing, &damaged] {
                let verdict = after_failed_search(error, count);
                assert!(matches!(verdict, Verdict::Retry { .. }), "{count}");
            }
        }
        for count in [4, 5, u32::MAX] {
            for error in [&FetchError::Missing, &damaged] {
                let verdict = after_failed_search(error, count);
                assert!(matches!(verdict, Verdict::Reject { .. }), "{count}");
            }
        }
    }
}
