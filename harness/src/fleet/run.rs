//! One run: puts messages, lets the fleet work while processes are killed, waits until the queue is
//! empty, and reads the poison queue.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use indicatif::ProgressBar;
use smalt_listener::rules::envelope::Envelope;
use smalt_sleeve::port::{CallContext, ErrorKind, MessageTtl, Storage};
use tokio::time::{Instant, sleep_until};

use super::account::{Evidence, Number};
use super::herd::Herd;
use super::ledger::{Ledger, text};
use crate::servers::ServerError;

/// Number of concurrent puts.
const PUTS_AT_ONCE: usize = 32;
/// Interval at which the queue is checked.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Visibility timeout for copies in the poison queue that were read.
const READ_FOR: Duration = Duration::from_secs(60 * 60);
/// Most messages of one get.
const MOST: u32 = 32;

/// Names of the queues of a run.
#[derive(Clone, Debug)]
pub struct Queues {
    /// The queue that the fleet processes.
    pub work: String,
    /// Its poison queue.
    pub poison: String,
}

/// Durations and kills of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Duration of the puts, in seconds.
    pub put_s: f64,
    /// Seconds from the start of the fleet until the queue was empty.
    pub work_s: f64,
    /// Number of processes that were killed.
    pub killed: u64,
}

/// Creates or clears both queues.
pub async fn prepare(storage: &dyn Storage, queues: &Queues) -> Result<(), ServerError> {
    let cx = CallContext::default();
    for queue in [&queues.work, &queues.poison] {
        storage.create_queue(&cx, queue).await?;
        storage.clear_messages(&cx, queue).await?;
    }
    Ok(())
}

/// Puts this many messages. A put without an answer is recorded as of unknown outcome.
pub async fn put_all(
    storage: &Arc<dyn Storage>,
    queue: &str,
    messages: u64,
    ledger: &Ledger,
    bar: &ProgressBar,
) -> Result<(), ServerError> {
    let cx = &CallContext::default();
    let put = |number: Number| async move {
        let text = text(number);
        let ttl = MessageTtl::Never;
        match storage
            .put_message(cx, queue, &text, ttl, Duration::ZERO)
            .await
        {
            Ok(_) => ledger.note_put(number, true),
            Err(error) if error.kind == ErrorKind::OutcomeUnknown => {
                ledger.note_put(number, false);
            }
            Err(error) => return Err(ServerError::call(error)),
        }
        bar.inc(1);
        Ok(())
    };
    let mut puts = stream::iter(0..messages)
        .map(put)
        .buffer_unordered(PUTS_AT_ONCE);
    while let Some(put) = puts.next().await {
        put?;
    }
    Ok(())
}

/// Waits until the queue is empty or nothing has happened for the patience, and kills processes
/// meanwhile.
pub async fn work_off(
    storage: &dyn Storage,
    queue: &str,
    herd: &mut Herd,
    (ledger, patience): (&Ledger, Duration),
    bar: &ProgressBar,
) -> Result<u64, ServerError> {
    let cx = CallContext::default();
    let mut next_death = Instant::now() + herd.next_death();
    let (mut last, mut since) = (ledger.progress(), Instant::now());
    let mut next_look = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = sleep_until(next_look) => {
                next_look = Instant::now() + LOOK_EVERY;
                look_after(herd, ledger)?;
                let left = storage.queue_properties(&cx, queue).await?.approximate_count;
                let progress = ledger.progress();
                if progress != last {
                    (last, since) = (progress, Instant::now());
                }
                bar.set_position(progress.0);
                bar.set_message(format!("{left} in the queue, {} killed", herd.killed));
                if left == 0 || since.elapsed() > patience {
                    return Ok(left);
                }
            }
            () = sleep_until(next_death) => {
                herd.kill_one().await?;
                next_death = Instant::now() + herd.next_death();
            }
        }
    }
}

/// Records the processes that ended by themselves, and starts others in their place.
pub fn look_after(herd: &mut Herd, ledger: &Ledger) -> Result<(), ServerError> {
    for _ in herd.take_ended() {
        ledger.note_ended();
    }
    herd.fill_up()
}

/// Records the messages of the poison queue and closes the ledger.
pub async fn close(
    storage: &dyn Storage,
    queue: &str,
    (ledger, left): (&Ledger, u64),
) -> Result<Evidence, ServerError> {
    let cx = CallContext::default();
    loop {
        let messages = storage
            .get_messages(&cx, queue, MOST, READ_FOR)
            .await?
            .messages;
        if messages.is_empty() {
            return Ok(ledger.close(left));
        }
        for message in messages {
            let envelope: Result<Envelope, _> = serde_json::from_str(&message.text);
            let text = envelope.map_or(message.text, |envelope| envelope.body);
            ledger.note_quarantined(&text);
        }
    }
}
