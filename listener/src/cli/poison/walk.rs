//! Walks over a whole queue. A peek shows at most 32 messages, so the walk receives the messages
//! and gives them back.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{CallContext, PortError, PortResult, QueueMessage, Storage};
use tokio::time::Instant;

/// Messages of one get or peek, the service's maximum.
pub(crate) const BATCH: u32 = 32;
/// Visibility timeout of received messages, long enough for 100,000 messages.
pub(crate) const HOLD: Duration = Duration::from_secs(300);
pub(crate) const AT_ONCE: usize = 16;
/// An action on a received message starts only if this much of its visibility timeout is left.
const MARGIN: Duration = Duration::from_secs(30);

/// A message that the walk has received.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) message: QueueMessage,
    /// The service's time of the get.
    pub(crate) server_time: Timestamp,
    taken_at: Instant,
}

impl Held {
    /// Returns whether the message is certainly still hidden from others, measured by the local
    /// clock from before the get.
    pub(crate) fn is_ours(&self) -> bool {
        self.taken_at.elapsed() + MARGIN < HOLD
    }
}

pub(crate) struct Walk<'a> {
    storage: &'a dyn Storage,
    queue: &'a str,
    seen: HashSet<String>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(storage: &'a dyn Storage, queue: &'a str) -> Self {
        Walk {
            storage,
            queue,
            seen: HashSet::new(),
        }
    }

    /// Returns the next messages, hidden for [`HOLD`], or none at the end. Skips a message that
    /// returns because the walk took longer than that.
    pub(crate) async fn next(&mut self) -> PortResult<Vec<Held>> {
        let taken_at = Instant::now();
        let cx = CallContext::housekeeping();
        let get = self.storage.get_messages(&cx, self.queue, BATCH, HOLD);
        let got = get.await?;
        let server_time = got.server_time;
        let fresh = got.messages.into_iter();
        let fresh = fresh.filter(|message| self.seen.insert(message.id.clone()));
        Ok(fresh
            .map(|message| Held {
                message,
                server_time,
                taken_at,
            })
            .collect())
    }
}

/// Makes messages visible again at once. A message for which this fails returns after its
/// visibility timeout.
pub(crate) async fn release(storage: &dyn Storage, queue: &str, held: &[Held]) {
    let releases = stream::iter(held).map(|held| async move {
        let cx = CallContext::housekeeping();
        let message = &held.message;
        let (id, receipt) = (&message.id, &message.pop_receipt);
        let release = storage.update_message(&cx, queue, id, receipt, Duration::ZERO, None);
        release.await
    });
    let mut releases = releases.buffer_unordered(AT_ONCE);
    let mut last: Option<PortError> = None;
    while let Some(released) = releases.next().await {
        last = released.err().or(last);
    }
    if let Some(error) = last {
        tracing::warn!(
            op = "release", queue, reason = %error,
            "some messages stay hidden for {} s", HOLD.as_secs()
        );
    }
}

/// Returns up to `most` messages without keeping them: by peek if that shows enough, otherwise by a
/// walk that gives them back, which counts as an attempt at each.
pub(crate) async fn look(
    storage: &dyn Storage,
    queue: &str,
    most: u64,
) -> PortResult<(Vec<QueueMessage>, Timestamp)> {
    let cx = CallContext::housekeeping();
    let count = storage
        .queue_properties(&cx, queue)
        .await?
        .approximate_count;
    if count.min(most) <= u64::from(BATCH) {
        let peek = u32::try_from(most.clamp(1, u64::from(BATCH))).unwrap_or(BATCH);
        let seen = storage.peek_messages(&cx, queue, peek).await?;
        return Ok((seen.messages, seen.server_time));
    }
    let mut walk = Walk::new(storage, queue);
    let mut held: Vec<Held> = Vec::new();
    let mut failure = None;
    while (held.len() as u64) < most {
        match walk.next().await {
            Ok(batch) if batch.is_empty() => break,
            Ok(batch) => held.extend(batch),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    release(storage, queue, &held).await;
    if let Some(error) = failure {
        return Err(error);
    }
    let server_time = held.first().map_or(Timestamp::MIN, |held| held.server_time);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let messages = held.into_iter().take(most).map(|held| held.message);
    Ok((messages.collect(), server_time))
}
