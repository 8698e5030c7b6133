//! A walk over a whole queue: a peek shows 32 messages at most, so what lies behind is taken for a
//! while and given back.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{CallContext, PortError, PortResult, QueueMessage, Storage};
use tokio::time::Instant;

/// Messages of one get or peek: the most that the service gives.
pub(crate) const BATCH: u32 = 32;
/// How long a walk hides what it has taken: long enough for 100,000 messages.
pub(crate) const HOLD: Duration = Duration::from_secs(300);
/// Requests at the same time.
pub(crate) const AT_ONCE: usize = 16;
/// What has to be done with a taken message is begun only while it is surely still ours.
const MARGIN: Duration = Duration::from_secs(30);

/// A message that the walk holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) message: QueueMessage,
    /// The service's time when it was taken.
    pub(crate) server_time: Timestamp,
    taken_at: Instant,
}

impl Held {
    /// Whether nobody else can have it: the moment before the get counts, by the local clock.
    pub(crate) fn is_ours(&self) -> bool {
        self.taken_at.elapsed() + MARGIN < HOLD
    }
}

/// A walk over one queue.
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

    /// The next messages, hidden for [`HOLD`]; none at the end. A message that comes a second time
    /// (the walk took longer than that) is not shown again.
    pub(crate) async fn next(&mut self) -> PortResult<Vec<Held>> {
        let taken_at = Instant::now();
        let cx = CallContext::default();
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

/// Gives messages back, visible at once. One that cannot be given back returns by itself.
pub(crate) async fn release(storage: &dyn Storage, queue: &str, held: &[Held]) {
    let releases = stream::iter(held).map(|held| async move {
        let cx = CallContext::default();
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

/// Looks at up to `most` messages and leaves them: by peek where that shows enough, else by a walk
/// that gives back what it took (which counts as an attempt at each).
pub(crate) async fn look(
    storage: &dyn Storage,
    queue: &str,
    most: u64,
) -> PortResult<(Vec<QueueMessage>, Timestamp)> {
    let cx = CallContext::default();
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
