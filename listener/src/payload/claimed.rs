//! A message in hand whose payload lies in a blob: fetched for its handler, dropped after its ack,
//! kept on its way into the poison queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{ErrorKind, PortError, PortResult};
use tokio::time::Instant;

use super::envelope::{self, Claim, Reading};
use super::store::{FetchError, PayloadStore, Seen};
use crate::handler::{Context, Handler, Message, Verdict};

/// A payload that is missing or damaged is looked for again so often.
const SEARCHES_AGAIN: u32 = 3;

/// What a body is in a queue, with or without payloads.
pub(crate) enum Opened {
    /// The body itself.
    Body(Bytes),
    /// A payload.
    Claimed(Claimed),
    /// An envelope that must not be followed, and why.
    Refused(String),
}

/// A message in hand whose payload lies in a blob. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Claimed {
    store: Arc<PayloadStore>,
    claim: Arc<Claim>,
    /// The version that was read, or described since.
    read: Arc<Mutex<Option<Seen>>>,
    /// Until when its handler may start: its lock must hold for a while then.
    start_by: Arc<Mutex<Option<Instant>>>,
}

impl Opened {
    /// Reads a body as its queue's configuration says.
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
    /// A handler that fetches the payload first, under the lock and the time-out of the run.
    pub(crate) fn fetching(&self, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        Arc::new(Fetching {
            claimed: self.clone(),
            handler,
        })
    }

    fn read(&self) -> MutexGuard<'_, Option<Seen>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock was granted or renewed: the handler may start until then.
    pub(crate) fn start_by(&self, at: Instant) {
        *self.start_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    fn is_too_late(&self) -> bool {
        let start_by = *self.start_by.lock().unwrap_or_else(PoisonError::into_inner);
        start_by.is_some_and(|at| Instant::now() > at)
    }

    /// A message that never expires is about to be deleted: its payload must not be left for good,
    /// though this process may end between the two deletes.
    pub(crate) async fn about_to_delete(&self, within: Duration) -> PortResult<()> {
        let seen = self.read().clone();
        let scheduling = self.store.schedule(&self.claim, seen.clone());
        match tokio::time::timeout(within, scheduling).await {
            Ok(Ok(seen)) => {
                *self.read() = seen;
                Ok(())
            }
            Ok(Err(error)) => {
                // Perhaps it was done: the version that was read stands there no more.
                *self.read() = None;
                Err(error)
            }
            Err(_) => {
                *self.read() = None;
                Err(self.unanswered())
            }
        }
    }

    /// Whether it is kept for a copy of its message in a poison queue.
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
        PortError {
            kind: ErrorKind::OutcomeUnknown,
            status: None,
            code: None,
            retry_after: None,
            operation: "Set Blob Metadata",
            resource: self.claim.reference.blob.clone(),
            message: "no answer in time".to_owned(),
        }
    }

    /// The message was deleted: its payload goes, too. What fails is left to the sweeper.
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
            "the payload is left to the sweeper"
        );
    }

    /// A copy of the message is about to be put into the poison queue.
    pub(crate) async fn keep(&self, until: Instant) -> PortResult<()> {
        let kept = tokio::time::timeout_at(until, self.store.keep(&self.claim));
        kept.await.unwrap_or_else(|_| Err(self.unanswered()))
    }
}

/// Fetches, then handles.
struct Fetching {
    claimed: Claimed,
    handler: Arc<dyn Handler>,
}

#[async_trait]
impl Handler for Fetching {
    async fn handle(&self, message: &Message, ctx: &Context) -> Verdict {
        let Claimed { store, claim, .. } = &self.claimed;
        let lives_on = message.expires == Timestamp::MAX;
        let (body, seen) = match store.fetch(claim, lives_on).await {
            Ok(fetched) => fetched,
            Err(error) => return after_failed_search(&error, message.dequeue_count),
        };
        *self.claimed.read() = Some(seen);
        if self.claimed.is_too_late() {
            return Verdict::retry("its payload came too late to start");
        }
        let mut message = message.clone();
        message.body = body;
        self.handler.handle(&message, ctx).await
    }
}

/// What a failed search for a payload means. One that is missing or damaged is looked for again: a
/// damaged one may have been damaged on its way. Storage that does not answer is a retry like any.
fn after_failed_search(error: &FetchError, dequeue_count: u32) -> Verdict {
    let final_one = dequeue_count > SEARCHES_AGAIN;
    match error {
        // It will be no other message's later.
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
