//! A dequeue task: gets messages for its free slots and passes each to an owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use smalt_sleeve::port::{ErrorKind, PortError, QueueMessages};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;

use crate::calls::Answered;
use crate::jitter::Jitter;
use crate::message::Owner;
use crate::observers::{Fetched, Idle, OnEmpty};
use crate::renew::Grant;
use crate::rules::backoff::{Backoff, DENIED_DELAY, IDLE_STEP};
use crate::rules::budget::Afforded;
use crate::rules::dispatch::batch_size;
use crate::shared::{Event, Phase, Shared};

/// How long a task with few free slots (half of them or fewer) waits for more, because one get for
/// several messages costs as much as one for a single message.
const GATHER: Duration = Duration::from_millis(50);

/// The controller's signals to one task.
pub(crate) struct TaskSignals {
    pub(crate) stop: watch::Receiver<bool>,
    /// Rest after an empty get: other tasks suffice.
    pub(crate) rest: watch::Receiver<bool>,
}

pub(crate) struct Poller {
    shared: Arc<Shared>,
    /// Number of the task in its pool.
    number: u64,
    told: TaskSignals,
    /// Counts of triggers and of found work that were seen before the last get.
    seen: (u64, u64),
    jitter: Jitter,
    /// Whether the task ends at its first empty get, as a watchdog's look does.
    probe: Arc<AtomicBool>,
    /// Tells the pool that no slot is free.
    is_full: Arc<AtomicBool>,
    idle: u64,
    errors: u64,
    messages: JoinSet<()>,
}

impl Poller {
    pub(crate) fn new(
        shared: Arc<Shared>,
        number: u64,
        told: TaskSignals,
        jitter: Jitter,
        probe: Arc<AtomicBool>,
        is_full: Arc<AtomicBool>,
    ) -> Self {
        Poller {
            seen: (0, 0),
            shared,
            number,
            told,
            jitter,
            probe,
            is_full,
            idle: 0,
            errors: 0,
            messages: JoinSet::new(),
        }
    }

    /// Polls until told to stop, then waits until its messages are settled.
    pub(crate) async fn run(mut self) {
        while let Some(free) = self.free_slots().await {
            let Some(mut room) = self.room(free).await else {
                break;
            };
            if !self.may_get().await {
                break;
            }
            // Waiting may have taken time; slots that became free meanwhile are requested as well.
            self.more_room(&mut room);
            let free = u32::try_from(room.num_permits()).unwrap_or(free);
            // Read before the get: a wake-up during the get shortens the sleep after it (DL18). An
            // earlier wake-up, while this task waited, is answered by this get.
            self.seen = self.latest();
            let (count, visibility) = (batch_size(free), self.shared.config.visibility);
            let pause = match self.shared.calls.get(count, visibility).await {
                Ok(batch) => self.received(room, batch),
                Err(error) => {
                    drop(room);
                    Some(self.failed(error).await)
                }
            };
            match pause {
                Some(_) if self.is_look() && self.errors == 0 => break,
                Some(pause) => self.sleep(pause).await,
                None => {}
            }
        }
        while self.messages.join_next().await.is_some() {}
    }

    /// Waits until a get is allowed by the daily budget and then by the token buckets. Returns
    /// `false` when the task should stop.
    async fn may_get(&mut self) -> bool {
        loop {
            let refused = match self.shared.calls.afford_get(self.shared.in_hand()) {
                Ok(Afforded::AsBefore) => break,
                Ok(Afforded::Again) => {
                    self.shared.say_budget_is_new();
                    break;
                }
                Err(refused) => refused,
            };
            let is_first = refused.is_first;
            self.shared.tell(Event::BudgetSpent { is_first });
            tokio::select! {
                biased;
                () = stopping(&mut self.told.stop, &self.shared) => return false,
                () = tokio::time::sleep(refused.wait) => {}
            }
        }
        let leaving = stopping(&mut self.told.stop, &self.shared);
        self.shared.calls.may_get(leaving).await
    }

    fn is_look(&self) -> bool {
        self.probe.load(Ordering::Relaxed)
    }

    fn free_now(&mut self) -> u32 {
        while self.messages.try_join_next().is_some() {}
        let busy = u32::try_from(self.messages.len()).unwrap_or(u32::MAX);
        self.shared.config.slots.saturating_sub(busy)
    }

    /// Returns the counts of triggers and of found work.
    fn latest(&self) -> (u64, u64) {
        (self.shared.wake.get(), self.shared.work.get())
    }

    /// Waits for free slots and returns their number; `None` when the task should stop.
    async fn free_slots(&mut self) -> Option<u32> {
        let slots = self.shared.config.slots;
        let gather_until = tokio::time::sleep(GATHER);
        tokio::pin!(gather_until);
        loop {
            let free = self.free_now();
            if self.is_stopping() {
                return None;
            }
            self.is_full.store(free == 0, Ordering::Relaxed);
            if free > slots / 2 || (free > 0 && gather_until.is_elapsed()) {
                return Some(free);
            }
            tokio::select! {
                biased;
                () = stopping(&mut self.told.stop, &self.shared) => return None,
                _ = self.messages.join_next() => {}
                () = &mut gather_until, if free > 0 => {}
            }
        }
    }

    /// Reserves up to `free` of the listener's places for messages, at least one; returns `None`
    /// when the task should stop.
    async fn room(&mut self, free: u32) -> Option<OwnedSemaphorePermit> {
        let all = Arc::clone(&self.shared.room);
        let mut room = tokio::select! {
            biased;
            () = stopping(&mut self.told.stop, &self.shared) => return None,
            // The semaphore is never closed.
            first = all.acquire_owned() => first.ok()?,
        };
        self.fill(&mut room, free);
        Some(room)
    }

    /// Reserves further places, up to the slots that are free now.
    fn more_room(&mut self, room: &mut OwnedSemaphorePermit) {
        let free = self.free_now();
        self.fill(room, free);
    }

    fn fill(&self, room: &mut OwnedSemaphorePermit, up_to: u32) {
        while room.num_permits() < up_to as usize
            && let Ok(more) = Arc::clone(&self.shared.room).try_acquire_owned()
        {
            room.merge(more);
        }
    }

    /// Starts an owner for each message; returns the pause if there was none.
    fn received(
        &mut self,
        mut room: OwnedSemaphorePermit,
        batch: Answered<QueueMessages>,
    ) -> Option<Duration> {
        self.errors = 0;
        let free = u32::try_from(room.num_permits()).unwrap_or(u32::MAX);
        let server_time = batch.value.server_time;
        let messages = batch.value.messages;
        let asked = batch_size(free);
        let got = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        let oldest = messages.iter().map(|message| message.inserted).min();
        let fetched = Fetched {
            asked,
            got,
            oldest_age: oldest.map(|inserted| server_time.since(inserted)),
        };
        self.shared.observers.tell(|o| o.received(&fetched));
        self.shared.tell(Event::Received { asked, got });
        if messages.is_empty() {
            let idle = &self.shared.config.idle;
            let backoff = Backoff::new(idle.min, idle.max, IDLE_STEP);
            let pause = backoff.delay(self.idle, self.jitter.permille());
            self.idle = self.idle.saturating_add(1);
            let mut idle = Idle {
                empty_gets: self.idle,
                pause,
            };
            match self.shared.observers.on_empty(&idle) {
                OnEmpty::Pause => {}
                OnEmpty::PauseFor(pause) => idle.pause = pause,
                OnEmpty::Stop => self.shared.tell(Event::Leave(self.number)),
            }
            self.shared.observers.tell(|o| o.idle(&idle));
            return Some(idle.pause);
        }
        self.idle = 0;
        let at = batch.at;
        let grant = Grant { at, server_time };
        for message in messages {
            let owner = Owner::new(Arc::clone(&self.shared), message, grant);
            let place = room.split(1);
            self.messages.spawn(async move {
                owner.settle().await;
                drop(place);
            });
        }
        None
    }

    /// Logs a failed get and returns the pause of the error curve, never the idle one (DL24).
    async fn failed(&mut self, error: PortError) -> Duration {
        let pause = match error.kind {
            ErrorKind::Denied => DENIED_DELAY,
            _ => {
                let curve = Backoff::for_errors().delay(self.errors, self.jitter.permille());
                error.retry_after.map_or(curve, |asked| asked.max(curve))
            }
        };
        self.errors = self.errors.saturating_add(1);
        tracing::warn!(
            worker = %self.shared.config.worker,
            op = "get",
            queue = %self.shared.config.queue,
            outcome = "get_failed",
            reason = %error,
            attempt = self.errors,
            req_id = %self.shared.calls.request_id("get", ""),
            pause_ms = pause.as_millis() as u64,
            "get failed"
        );
        self.shared.observers.tell(|o| o.failed(&error));
        let missing = error.kind == ErrorKind::NotFound;
        if missing
            && self.shared.config.create_queue
            && self.shared.calls.create_queue().await.is_ok()
        {
            return Duration::ZERO;
        }
        self.shared.tell(Event::Failed(error));
        pause
    }

    async fn sleep(&mut self, pause: Duration) {
        let seen = self.seen;
        let TaskSignals { stop, rest } = &mut self.told;
        let mut needed = rest.clone();
        let over = async {
            tokio::time::sleep(pause).await;
            // A closed channel does not delay the task.
            let _ = rest.wait_for(|rests| !*rests).await;
        };
        let found = async {
            let _ = needed.wait_for(|rests| !*rests).await;
            self.shared.work.beyond(seen.1).await;
        };
        tokio::select! {
            biased;
            () = stopping(stop, &self.shared) => {}
            // A wake-up after an error would only cause a tight loop.
            () = self.shared.wake.beyond(seen.0), if self.errors == 0 => self.idle = 0,
            () = found, if self.errors == 0 => self.idle = 0,
            () = over => {}
        }
    }

    fn is_stopping(&self) -> bool {
        *self.told.stop.borrow() || self.shared.phase() != Phase::Running
    }
}

/// Waits until this task or the whole listener should stop.
async fn stopping(stop: &mut watch::Receiver<bool>, shared: &Shared) {
    tokio::select! {
        biased;
        // A closed channel means that the pool was dropped.
        _ = stop.wait_for(|stop| *stop) => {}
        () = shared.reached(Phase::Finishing) => {}
    }
}
