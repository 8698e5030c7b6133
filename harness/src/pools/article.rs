//! The listener of the source article, as it is written (L20 to L30): what ours is measured beside.
//!
//! Kept is what costs: the depth is asked for at each empty get (DL2) and at each work after idling
//! (L29), the rule starts ten tasks for one message (DL13) and knows nothing of what is in flight
//! (DL22), the pool grows only after it was idle (DL10), collapses 1.1 s after the last message
//! (DL20), and nothing holds its requests back (DL14). Mended is what would end it: the overflow of
//! its back-off (DL4), and races between its tasks (DL11, DL12).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use smalt_sleeve::port::{CallContext, QueueMessage, Storage};

/// Messages of one get (L23).
const BATCH: u32 = 32;
/// Visibility timeout of its gets.
const VISIBILITY: Duration = Duration::from_secs(60);
/// The longest idle interval (L27).
pub const IDLE_MAX: Duration = Duration::from_secs(1);
/// Growth of the idle interval (L27).
const IDLE_STEP_MS: u64 = 100;

/// The static rule of the article (L30). Its last line, one task, is never reached.
pub fn optimal(depth: u64) -> u32 {
    match depth {
        0..100 => 10,
        100..1000 => 50,
        1000.. => 100,
    }
}

/// The listener. Clones share it.
#[derive(Clone)]
pub struct Article {
    storage: Arc<dyn Storage>,
    queue: String,
    work: Duration,
    active: Arc<AtomicU32>,
    started: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Article {
    /// One whose handler takes `work`.
    pub fn new(storage: Arc<dyn Storage>, queue: &str, work: Duration) -> Self {
        Article {
            storage,
            queue: queue.to_owned(),
            work,
            active: Arc::default(),
            started: Arc::default(),
            over: Arc::default(),
        }
    }

    /// `StartListener` (L20): so many tasks more.
    pub fn start(&self, tasks: u32) {
        for _ in 0..tasks {
            self.active.fetch_add(1, Ordering::SeqCst);
            let number = self.started.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(self.clone().task(number));
        }
    }

    /// Tasks ever started.
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::SeqCst)
    }

    /// Ends all tasks at their next look.
    pub fn stop(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// One dequeue task (L23 to L28).
    async fn task(self, number: u64) {
        let cx = CallContext::default();
        let mut idle = 0_u32;
        while !self.over.load(Ordering::SeqCst) {
            let got = self
                .storage
                .get_messages(&cx, &self.queue, BATCH, VISIBILITY)
                .await;
            let messages = got.map(|batch| batch.messages).unwrap_or_default();
            if messages.is_empty() {
                idle += 1;
                // QueueEmpty, with its GetCount.
                let _ = self.storage.queue_properties(&cx, &self.queue).await;
                let interval = interval(idle, number);
                if interval >= IDLE_MAX && self.leave() {
                    return;
                }
                tokio::time::sleep(interval).await;
                continue;
            }
            if idle > 0 {
                self.work_detected(&cx).await;
            }
            idle = 0;
            join_all(messages.iter().map(|message| self.handle(&cx, message))).await;
        }
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// `QueueWorkDetected` (L29): up to what the rule says.
    async fn work_detected(&self, cx: &CallContext) {
        let Ok(depth) = self.storage.queue_properties(cx, &self.queue).await else {
            return;
        };
        let wanted = optimal(depth.approximate_count);
        self.start(wanted.saturating_sub(self.active.load(Ordering::SeqCst)));
    }

    /// L28: a task at the cap leaves unless it is the last.
    fn leave(&self) -> bool {
        let more = |active: u32| (active > 1).then(|| active - 1);
        let left = self
            .active
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        left.is_ok()
    }

    async fn handle(&self, cx: &CallContext, message: &QueueMessage) {
        tokio::time::sleep(self.work).await;
        let deleted =
            self.storage
                .delete_message(cx, &self.queue, &message.id, &message.pop_receipt);
        let _ = deleted.await;
    }
}

/// L27: `(2^idle - 1) * rand[80, 120) ms`, at most a second.
fn interval(idle: u32, task: u64) -> Duration {
    let units = (1_u64 << idle.min(32)) - 1;
    // Some spread between the tasks, the same in every run.
    let permille = 800 + (task.wrapping_mul(2_654_435_761) ^ (u64::from(idle) * 97)) % 400;
    let ms = (units * IDLE_STEP_MS).saturating_mul(permille) / 1000;
    Duration::from_millis(ms).min(IDLE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L30 with DL13, L27: as the article has them.
    #[test]
    fn the_rules_are_the_articles() {
        let tasks = [0, 1, 99, 100, 999, 1000, u64::MAX].map(optimal);
        assert_eq!(tasks, [10, 10, 10, 50, 50, 100, 100]);
        for task in 0..50 {
            let ms = |idle| interval(idle, task).as_millis();
            assert!((80..120).contains(&ms(1)) && (240..360).contains(&ms(2)));
            assert!((560..840).contains(&ms(3)) && ms(4) == 1000 && ms(u32::MAX) == 1000);
        }
    }
}
