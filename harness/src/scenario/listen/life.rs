//! The listeners of a run: each lives, dies or is told to stop, and lives again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smalt_listener::{Decision, Listener, Observer, PoolStatus, Waker};
use smalt_protocol::Timestamp;
use smalt_sleeve::Clock;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::handler::Scripted;
use super::plan::ListenPlan;
use super::{Names, Seen};
use crate::scenario::bent::Bend;
use crate::scenario::history::Happening;
use crate::scenario::wire::{Actor, Wire};
use crate::scenario::world::{self, Place, Which, World};

/// A worker that died or was replaced is started again after this long.
const RESTART_S: u64 = 5;
/// Beyond this the service refuses what was dated by a clock (15 minutes).
const SKEW_MAX_S: i64 = 900;

/// A clock that is off.
#[derive(Debug)]
struct Skewed {
    right: Arc<dyn Clock>,
    off_s: AtomicI64,
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let off_s = self.off_s.load(Ordering::Relaxed);
        let off = std::time::Duration::from_secs(off_s.unsigned_abs());
        if off_s < 0 {
            self.right.now().minus(off)
        } else {
            self.right.now().plus(off)
        }
    }
}

/// What one listener is told.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    /// How often it was told to make room for a successor.
    replaced: u64,
    /// No successor any more.
    over: bool,
}

/// All listeners of a run.
pub(super) struct Crew {
    wire: Arc<Wire>,
    queue: String,
    orders: Vec<watch::Sender<Orders>>,
    clocks: Vec<Arc<Skewed>>,
    wakers: Arc<Mutex<BTreeMap<String, Waker>>>,
    lives: JoinSet<Result<(), String>>,
}

impl Crew {
    /// Starts the first life of each.
    pub(super) fn start(
        world: &World,
        plan: &Arc<ListenPlan>,
        names: &Names,
        bend: Option<Bend>,
    ) -> Self {
        let mut crew = Crew {
            wire: Arc::clone(&world.wire),
            queue: names.queue.clone(),
            orders: Vec::new(),
            clocks: Vec::new(),
            wakers: Arc::default(),
            lives: JoinSet::new(),
        };
        for worker in 0..plan.shape.workers {
            // One channel each: several waiters of one channel are woken in no certain order.
            let (orders, told) = watch::channel(Orders::default());
            let off_s = plan.shape.skew_s.get(usize::from(worker)).copied();
            let clock = Arc::new(Skewed {
                right: world.clock(),
                off_s: AtomicI64::new(off_s.unwrap_or(0).into()),
            });
            crew.orders.push(orders);
            crew.clocks.push(Arc::clone(&clock));
            let lives = Lives {
                worker,
                world: world.clone(),
                plan: Arc::clone(plan),
                names: names.clone(),
                bend,
                told,
                clock,
                wakers: Arc::clone(&crew.wakers),
            };
            crew.lives.spawn(lives.live());
        }
        crew
    }

    /// Tells one of them to stop; its successor follows.
    pub(super) fn replace(&self, worker: u8) {
        let worker = usize::from(worker) % self.orders.len().max(1);
        if let Some(orders) = self.orders.get(worker) {
            orders.send_modify(|orders| orders.replaced += 1);
        }
    }

    /// Sends a trigger to all of them, with the queue's name as somebody else may write it.
    pub(super) fn announce(&self, in_capitals: bool) {
        let name = if in_capitals {
            self.queue.to_ascii_uppercase()
        } else {
            self.queue.clone()
        };
        for (actor, waker) in locked(&self.wakers).iter() {
            self.wire.note(actor, Happening::Listener(Seen::Woken));
            waker.wake_for(&name);
        }
    }

    /// Sets the clocks right that the service does not bear.
    pub(super) fn repair_clocks(&self) {
        for clock in &self.clocks {
            if clock.off_s.load(Ordering::Relaxed).abs() > SKEW_MAX_S {
                clock.off_s.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Ends all of them; what went wrong, in words.
    pub(super) async fn end(mut self) -> Vec<String> {
        for orders in &self.orders {
            orders.send_modify(|orders| orders.over = true);
        }
        let mut wrong = Vec::new();
        while let Some(ended) = self.lives.join_next().await {
            wrong.extend(ended.map_err(|e| e.to_string()).and_then(|ended| ended).err());
        }
        wrong
    }
}

/// The lives of one listener, one after the other.
struct Lives {
    worker: u8,
    world: World,
    plan: Arc<ListenPlan>,
    names: Names,
    bend: Option<Bend>,
    told: watch::Receiver<Orders>,
    clock: Arc<Skewed>,
    wakers: Arc<Mutex<BTreeMap<String, Waker>>>,
}

impl Lives {
    async fn live(self) -> Result<(), String> {
        for number in 0u64.. {
            let actor = Actor::worker(format!("listener-{}.{number}", self.worker));
            let listener = self.listener(&actor, number)?;
            locked(&self.wakers).insert(actor.name.clone(), listener.waker());
            let ended = self.one_life(&actor, &listener).await;
            locked(&self.wakers).remove(&actor.name);
            drop(listener);
            if ended? && self.told.borrow().over {
                return Ok(());
            }
            world::sleep_s(RESTART_S).await;
        }
        Ok(())
    }

    /// One life to its end: whether it was an orderly one.
    async fn one_life(&self, actor: &Arc<Actor>, listener: &Listener) -> Result<bool, String> {
        let wire = &self.world.wire;
        let note = |seen| wire.note(&actor.name, Happening::Listener(seen));
        let mut told = self.told.clone();
        let replaced = told.borrow().replaced;
        let stop = async move {
            let due = |orders: &Orders| orders.over || orders.replaced > replaced;
            // A channel that is closed cannot tell any more.
            let _ = told.wait_for(due).await;
            wire.note(&actor.name, Happening::Listener(Seen::ToldToStop));
        };
        tokio::select! {
            biased;
            () = actor.crashed() => Ok(false),
            ended = listener.run_until(stop) => {
                let report = ended.map_err(|error| error.to_string())?;
                note(Seen::Left(report.ended));
                Ok(true)
            }
            () = watch_pool(listener.status(), note) => Ok(true),
        }
    }

    fn listener(&self, actor: &Arc<Actor>, number: u64) -> Result<Listener, String> {
        let seed = self.plan.seed ^ (u64::from(self.worker) << 32) ^ (number << 16);
        let place = Place {
            clock: Some(Arc::clone(&self.clock) as Arc<dyn Clock>),
            lag: std::time::Duration::from_millis(self.plan.shape.lag_ms),
        };
        let storage = self
            .world
            .storage_at(Which::Main, actor, seed, self.bend, &place)?;
        let wire = Arc::clone(&self.world.wire);
        let handler = Arc::new(Scripted {
            wire: Arc::clone(&wire),
            actor: actor.name.clone(),
            plan: Arc::clone(&self.plan),
        });
        let config = self.plan.shape.config(&self.names, &actor.name);
        let observer = Arc::new(Witness {
            wire,
            actor: actor.name.clone(),
        });
        Listener::new(config, storage, handler, seed ^ u64::from(self.worker))
            .map(|listener| listener.observed_by(observer))
            .map_err(|error| error.to_string())
    }
}

/// Notes each change of state and number of tasks; never ends.
async fn watch_pool(mut status: watch::Receiver<PoolStatus>, note: impl Fn(Seen)) {
    let mut last = None;
    while status.changed().await.is_ok() {
        let now = *status.borrow_and_update();
        if last != Some((now.state, now.tasks)) {
            last = Some((now.state, now.tasks));
            let (state, tasks) = (now.state, now.tasks);
            note(Seen::Pool { state, tasks });
        }
    }
    std::future::pending::<()>().await;
}

/// Writes down the decisions of one life.
struct Witness {
    wire: Arc<Wire>,
    actor: String,
}

impl Observer for Witness {
    fn decided(&self, decision: &Decision) {
        let seen = Seen::Decided {
            id: decision.id.clone(),
            count: decision.dequeue_count,
            outcome: decision.outcome,
            expiring: decision.expiring,
        };
        self.wire.note(&self.actor, Happening::Listener(seen));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
