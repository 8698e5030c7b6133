//! Several messages in one call, each with a verdict of its own.
//!
//! The messages of a batch keep their owners: each is renewed, settled and, when its lock is lost,
//! given up by itself. A batch is filled by the runs that begin within a short time, so it is never
//! larger than the slots of all tasks together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use super::{Context, Handler, Message, Verdict};
use crate::run::{CANCEL_GRACE, what};

/// How long a batch waits for more messages: those of one get begin together.
pub const BATCH_LINGER: Duration = Duration::from_millis(20);

/// Something that handles several messages in one call.
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
    /// Handles messages; one verdict for each, in their order. A message without a verdict is
    /// tried again, one too many is ignored, and both are reported.
    ///
    /// A panic or a time-out fails all of them. To keep one bad message from taking its
    /// companions along again and again, a message that was taken before comes alone.
    async fn handle_batch(&self, messages: &[Message<T>], ctx: &Context) -> Vec<Verdict>;
}

/// A handler that gathers messages for a [`BatchHandler`]; see [`batched`].
pub struct Batched<T, H> {
    handler: Arc<H>,
    most: usize,
    linger: Duration,
    open: Arc<Mutex<Open<T>>>,
}

/// Gives messages to `handler` up to `most` at a time. A batch begins when it is full, or
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
    /// Another time to wait for more messages. It counts as handler time.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }
}

/// The batch that is being filled.
struct Open<T> {
    /// Counts the batches, so that a timer knows whether its own is still open.
    number: u64,
    members: Vec<Member<T>>,
}

/// One message, and who waits for its verdict.
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
            .unwrap_or_else(|_| Verdict::retry("the batch was given up"))
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

/// Whether a message is handled by itself: after a failure, and where there is no second attempt.
fn is_alone<T>(member: &Member<T>) -> bool {
    member.message.dequeue_count > 1 || member.ctx.max_dequeue <= 1
}

fn locked<T>(open: &Mutex<Open<T>>) -> MutexGuard<'_, Open<T>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a batch, and gives each member its verdict.
async fn run<T, H>(handler: Arc<H>, mut members: Vec<Member<T>>)
where
    T: Clone + Send + Sync + 'static,
    H: BatchHandler<T>,
{
    // Those whose lock was lost while the batch was filled need no handling any more.
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
        // One that was cancelled meanwhile does not listen any more.
        let _ = answer.send(verdict);
    }
}

/// Exactly one verdict for each message: for those that have none, another attempt.
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

/// Resolves when nobody waits for the batch any more. Before that, when every member has been
/// told that its run has lost its purpose, the handler is told, and has a few seconds to end.
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

/// A task that ends with whoever waits for it.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
