//! Handling several messages in one call, with a verdict for each.
//!
//! The messages of a batch keep their owners: each is renewed and settled by itself, and given up
//! if its lock is lost. A batch is filled by the runs that begin within a short time, so it is
//! never larger than the slots of all tasks together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use super::{Context, Handler, Message, Verdict};
use crate::run::{CANCEL_GRACE, what};

/// How long a batch waits for more messages; the messages of one get start together.
pub const BATCH_LINGER: Duration = Duration::from_millis(20);

/// Handles several messages in one call.
///
/// ```
/// use async_trait::async_trait;
/// use smalt_listener::handler::{BatchHandler, Context, Message, Verdict, batched, json};
///
/// struct Ledger;
///
/// #[async_trait]
/// impl BatchHandler<u64> for Ledger {
///     async fn handle_batch(&self, amounts: &[Message<u64>], _ctx: &Context) -> Vec<Verdict> {
///         let sum: u64 = amounts.iter().map(|amount| amount.body).sum();
///         println!("{sum} in one write");
///         vec![Verdict::Ok; amounts.len()]
///     }
/// }
///
/// let handler = json(batched(Ledger, 32));
/// # let _ = handler;
/// ```
#[async_trait]
pub trait BatchHandler<T: Send + Sync + 'static = Bytes>: Send + Sync + 'static {
    /// Handles messages and returns one verdict for each, in order. A message without a verdict is
    /// retried, surplus verdicts are ignored, and both are logged.
    ///
    /// A panic or a timeout fails all messages of the batch. A message that was received before is
    /// handled alone, so that one bad message does not fail its companions repeatedly.
    async fn handle_batch(&self, messages: &[Message<T>], ctx: &Context) -> Vec<Verdict>;
}

/// A handler that collects messages for a [`BatchHandler`]; see [`batched`].
pub struct Batched<T, H> {
    handler: Arc<H>,
    most: usize,
    linger: Duration,
    open: Arc<Mutex<Open<T>>>,
}

/// Passes messages to `handler`, up to `most` at a time. A batch starts when it is full, or
/// [`BATCH_LINGER`] after its first message.
pub fn batched<T, H>(handler: H, most: usize) -> Batched<T, H>
where
    T: Clone + Send + Sync + 'static,
    H: BatchHandler<T>,
{
    Batched {
        handler: Arc::new(handler),
        most: most.max(1),
        linger: BATCH_LINGER,
        open: Arc::new(Mutex::new(Open {
            number: 0,
            members: Vec::new(),
        })),
    }
}

impl<T, H> Batched<T, H> {
    /// Sets how long a batch waits for more messages. The wait counts as handler time.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }
}

struct Open<T> {
    /// Number of the batch, by which a timer knows whether its batch is still open.
    number: u64,
    members: Vec<Member<T>>,
}

/// One message and the channel for its verdict.
struct Member<T> {
    message: Message<T>,
    ctx: Context,
    answer: oneshot::Sender<Verdict>,
}

impl<T> Open<T> {
    fn close(&mut self) -> Vec<Member<T>> {
        self.number += 1;
        std::mem::take(&mut self.members)
    }
}

#[async_trait]
impl<T, H> Handler<T> for Batched<T, H>
where
    T: Clone + Send + Sync + 'static,
    H: BatchHandler<T>,
{
    async fn handle(&self, message: &Message<T>, ctx: &Context) -> Verdict {
        let (answer, verdict) = oneshot::channel();
        let member = Member {
            message: message.clone(),
            ctx: ctx.clone(),
            answer,
        };
        self.join(member);
        verdict
            .await
            .unwrap_or_else(|_| Verdict::retry("the batch was cancelled"))
    }
}

impl<T, H> Batched<T, H>
where
    T: Clone + Send + Sync + 'static,
    H: BatchHandler<T>,
{
    fn join(&self, member: Member<T>) {
        let handler = Arc::clone(&self.handler);
        if is_alone(&member) {
            tokio::spawn(run(handler, vec![member]));
            return;
        }
        let mut open = locked(&self.open);
        open.members.push(member);
        if open.members.len() >= self.most {
            tokio::spawn(run(handler, open.close()));
        } else if open.members.len() == 1 {
            let (number, linger, batch) = (open.number, self.linger, Arc::clone(&self.open));
            tokio::spawn(async move {
                tokio::time::sleep(linger).await;
                let members = {
                    let mut open = locked(&batch);
                    if open.number != number {
                        return;
                    }
                    open.close()
                };
                run(handler, members).await;
            });
        }
    }
}

/// Returns whether a message is handled alone: after a failure, or if it has only one attempt.
fn is_alone<T>(member: &Member<T>) -> bool {
    member.message.dequeue_count > 1 || member.ctx.max_dequeue <= 1
}

fn locked<T>(open: &Mutex<Open<T>>) -> MutexGuard<'_, Open<T>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a batch and sends each member its verdict.
async fn run<T, H>(handler: Arc<H>, mut members: Vec<Member<T>>)
where
    T: Clone + Send + Sync + 'static,
    H: BatchHandler<T>,
{
    // Drops members whose lock was lost while the batch was filled.
    members.retain(|member| !member.answer.is_closed() && !member.ctx.is_cancelled());
    let Some(first) = members.first() else {
        return;
    };
    let times = members.iter().map(|member| member.ctx.timeout);
    let timeout = times.min().unwrap_or(first.ctx.timeout);
    let (ctx, switch) = Context::new(&first.ctx.worker, timeout, first.ctx.max_dequeue);
    let (messages, waiting): (Vec<_>, Vec<_>) = members
        .into_iter()
        .map(|member| (member.message, (member.ctx, member.answer)))
        .unzip();
    let (ctxs, mut answers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
    let count = messages.len();
    let mut work = AbortOnDrop(tokio::spawn(async move {
        handler.handle_batch(&messages, &ctx).await
    }));
    let verdicts = tokio::select! {
        biased;
        verdicts = &mut work.0 => verdicts,
        () = abandoned(&ctxs, &mut answers, &switch) => return,
    };
    let verdicts = match verdicts {
        Ok(verdicts) => counted(verdicts, count),
        Err(error) => {
            let reason = match error.try_into_panic() {
                Ok(panic) => format!("batch handler panicked: {}", what(&*panic)),
                Err(_) => "batch handler was dropped".to_owned(),
            };
            vec![Verdict::retry(reason); count]
        }
    };
    for (answer, verdict) in answers.into_iter().zip(verdicts) {
        // The receiver is gone if the member was cancelled meanwhile.
        let _ = answer.send(verdict);
    }
}

/// Adjusts the verdicts to one per message; missing ones become a retry.
fn counted(mut verdicts: Vec<Verdict>, count: usize) -> Vec<Verdict> {
    let said = verdicts.len();
    if said != count {
        tracing::error!(
            op = "batch",
            messages = count,
            verdicts = said,
            "a batch handler gave the wrong number of verdicts"
        );
        let missing = Verdict::retry(format!("{said} verdicts for a batch of {count}"));
        verdicts.resize(count, missing);
    }
    verdicts
}

/// Resolves when no member waits for its verdict, or a few seconds after every member was
/// cancelled. The handler is cancelled as well and has these seconds to end.
async fn abandoned(
    ctxs: &[Context],
    answers: &mut [oneshot::Sender<Verdict>],
    switch: &watch::Sender<bool>,
) {
    let told = async {
        for ctx in ctxs {
            ctx.cancelled().await;
        }
        let _ = switch.send(true);
        tokio::time::sleep(CANCEL_GRACE).await;
    };
    let gone = async {
        for answer in answers {
            answer.closed().await;
        }
    };
    tokio::select! {
        biased;
        () = gone => {}
        () = told => {}
    }
}

/// A task that is aborted when this is dropped.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
