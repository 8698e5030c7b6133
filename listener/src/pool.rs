//! The dequeue tasks of one listener: started, stopped and counted in one place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use crate::jitter::Jitter;
use crate::poller::{Poller, TaskSignals};
use crate::shared::Shared;

/// The dequeue tasks. Only the controller owns the pool, so that no task is started twice, and two
/// tasks cannot stop at once and leave none (DL11, DL12).
pub(crate) struct Pool {
    shared: Arc<Shared>,
    seed: u64,
    started: u64,
    tasks: JoinSet<()>,
    /// The polling tasks; tasks that only finish their messages are not included.
    active: BTreeMap<u64, Active>,
}

struct Active {
    task: Id,
    stop: watch::Sender<bool>,
    rest: watch::Sender<bool>,
    /// Whether it has no free slot and makes no gets.
    is_full: Arc<AtomicBool>,
    /// Whether it ends at its first empty get.
    probe: Arc<AtomicBool>,
}

impl Pool {
    pub(crate) fn new(shared: Arc<Shared>, seed: u64) -> Self {
        Pool {
            shared,
            seed,
            started: 0,
            tasks: JoinSet::new(),
            active: BTreeMap::new(),
        }
    }

    pub(crate) fn active(&self) -> u32 {
        u32::try_from(self.active.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Starts or stops tasks until `target` of them poll. Turns probes into permanent tasks,
    /// because a probe that ends and is replaced would make its next get without a pause.
    pub(crate) fn resize(&mut self, target: u32) {
        for active in self.active.values() {
            active.probe.store(false, Ordering::Relaxed);
        }
        while self.active() < target {
            self.start(false);
        }
        while self.active() > target {
            self.stop_one();
        }
    }

    /// Starts one task; a probe ends at its first empty get.
    pub(crate) fn start(&mut self, probe: bool) {
        let (stop, stopped) = watch::channel(false);
        let (rest, resting) = watch::channel(false);
        let number = self.started;
        self.started += 1;
        let jitter = Jitter::new(self.seed, number);
        let is_full = Arc::new(AtomicBool::new(false));
        let full = Arc::clone(&is_full);
        let told = TaskSignals {
            stop: stopped,
            rest: resting,
        };
        let probe = Arc::new(AtomicBool::new(probe));
        let leaves = Arc::clone(&probe);
        let poller = Poller::new(Arc::clone(&self.shared), number, told, jitter, leaves, full);
        let task = self.tasks.spawn(poller.run()).id();
        let active = Active {
            task,
            stop,
            rest,
            is_full,
            probe,
        };
        self.active.insert(number, active);
    }

    /// Lets all but `awake` of the tasks with free slots rest: they keep their messages but make no
    /// get after an empty one.
    pub(crate) fn rest(&mut self, awake: u32) {
        let mut left = awake;
        for active in self.active.values() {
            let has_room = !active.is_full.load(Ordering::Relaxed);
            let rests = has_room && left == 0;
            left -= u32::from(has_room && left > 0);
            active.rest.send_if_modified(|was| {
                let changed = *was != rests;
                *was = rests;
                changed
            });
        }
    }

    /// Stops the newest full task, which polls nothing anyway, or else the newest task.
    fn stop_one(&mut self) {
        let mut newest_first = self.active.iter().rev();
        let full = newest_first.find(|(_, active)| active.is_full.load(Ordering::Relaxed));
        if let Some((&number, _)) = full.or(self.active.last_key_value()) {
            self.stop(number);
        }
    }

    pub(crate) fn stop(&mut self, number: u64) {
        if let Some(stopped) = self.active.remove(&number) {
            let _ = stopped.stop.send(true);
        }
    }

    /// Waits for a task to end; pending while there is none. A task that ended by itself is no
    /// longer counted, so that the next resize replaces it.
    pub(crate) async fn ended(&mut self) {
        let ended = match self.tasks.join_next_with_id().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        };
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(op = "pool", reason = %error, "a dequeue task failed");
                error.id()
            }
        };
        self.active.retain(|_, active| active.task != id);
    }

    /// Waits until all tasks have ended and their messages are settled.
    pub(crate) async fn drained(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        self.active.clear();
    }
}
