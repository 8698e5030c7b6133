//! The dequeue tasks of one listener: started, stopped and counted in one place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use crate::jitter::Jitter;
use crate::poller::{Poller, Told};
use crate::shared::Shared;

/// The dequeue tasks. Only the controller has it, so a task can neither be started twice nor can
/// two of them leave at once and none remain (DL11, DL12).
pub(crate) struct Pool {
    shared: Arc<Shared>,
    seed: u64,
    started: u64,
    tasks: JoinSet<()>,
    /// Tasks that poll, and the switch of each; those that only finish their messages are not here.
    active: BTreeMap<u64, Active>,
}

struct Active {
    task: Id,
    stop: watch::Sender<bool>,
    rest: watch::Sender<bool>,
    /// It has no free slot, and asks for nothing.
    is_full: Arc<AtomicBool>,
    /// It leaves by itself when it finds nothing.
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

    /// Tasks that poll.
    pub(crate) fn active(&self) -> u32 {
        u32::try_from(self.active.len()).unwrap_or(u32::MAX)
    }

    /// Tasks ever started.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Starts or stops tasks until `target` of them poll. They stay: a probe among them that left
    /// and was replaced would make the next get without any pause.
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

    /// Starts one task; a probe leaves by itself when it finds nothing.
    pub(crate) fn start(&mut self, probe: bool) {
        let (stop, stopped) = watch::channel(false);
        let (rest, resting) = watch::channel(false);
        let number = self.started;
        self.started += 1;
        let jitter = Jitter::new(self.seed, number);
        let is_full = Arc::new(AtomicBool::new(false));
        let full = Arc::clone(&is_full);
        let told = Told {
            stop: stopped,
            rest: resting,
        };
        let probe = Arc::new(AtomicBool::new(probe));
        let leaves = Arc::clone(&probe);
        let poller = Poller::new(Arc::clone(&self.shared), told, jitter, leaves, full);
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

    /// Lets all but `awake` of the tasks that have room rest: they keep what they have, and ask for
    /// nothing after an empty get.
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

    /// Stops the newest task; before that, the newest of those that are full, since they poll
    /// nothing as it is.
    fn stop_one(&mut self) {
        let mut newest_first = self.active.iter().rev();
        let full = newest_first.find(|(_, active)| active.is_full.load(Ordering::Relaxed));
        let number = full.or(self.active.last_key_value()).map(|(n, _)| *n);
        if let Some(stopped) = number.and_then(|number| self.active.remove(&number)) {
            let _ = stopped.stop.send(true);
        }
    }

    /// Waits for a task to end; pending while there is none. One that ended without being told to
    /// is no longer counted, so that the next resize replaces it.
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

    /// Waits until all tasks have ended, their messages settled.
    pub(crate) async fn drained(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        self.active.clear();
    }
}
