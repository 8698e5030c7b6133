//! The listeners of a run: each lives, dies or is told to stop, and lives again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt_listener::observers::Expiring;
use smalt_listener::{AccountLimit, Decision, Listener, Observer, PoolStatus, Waker};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::handler::Scripted;
use super::plan::ListenPlan;
use super::{Names, Seen};
use crate::scenario::actor::Actor;
use crate::scenario::bent::Bend;
use crate::scenario::history::Happening;
use crate::scenario::wire::Wire;
use crate::scenario::world::{self, Which, World};

/// A worker that died or was replaced is started again after this long.
const RESTART_S: u64 = 5;
/// Beyond this the service refuses what was dated by a clock (15 minutes).
const SKEW_MAX_S: u32 = 900;

/// What one listener is told.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    /// How often it was told to make room for a successor.
    replaced: u64,
    /// Whether its clock has been set right.
    repaired: bool,
    /// No successor any more.
    over: bool,
}

/// All listeners of a run.
pub(super) struct Crew {
    wire: Arc<Wire>,
    queue: String,
    orders: Vec<watch::Sender<Orders>>,
    skew_s: Vec<i32>,
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
            skew_s: Vec::new(),
            wakers: Arc::default(),
            lives: JoinSet::new(),
        };
        let account = plan.shape.account_per_s.map(AccountLimit::new);
        for worker in 0..plan.shape.workers {
            // One channel each: several waiters of one channel are woken in no certain order.
            let (orders, told) = watch::channel(Orders::default());
            let skew_s = plan.shape.skew_s.get(usize::from(worker)).copied();
            let skew_s = skew_s.unwrap_or(0);
            crew.orders.push(orders);
            crew.skew_s.push(skew_s);
            let lives = Lives {
                worker,
                world: world.clone(),
                plan: Arc::clone(plan),
                names: names.clone(),
                bend,
                told,
                skew_s,
                wakers: Arc::clone(&crew.wakers),
                account: account.clone(),
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

    /// Sets the clocks right that the service does not bear, and starts their listeners anew.
    pub(super) fn repair_clocks(&self) {
        for (orders, skew_s) in self.orders.iter().zip(&self.skew_s) {
            if skew_s.unsigned_abs() > SKEW_MAX_S {
                orders.send_modify(|orders| {
                    orders.repaired = true;
                    orders.replaced += 1;
                });
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
            wrong.extend(
                ended
                    .map_err(|e| e.to_string())
                    .and_then(|ended| ended)
                    .err(),
            );
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
    skew_s: i32,
    wakers: Arc<Mutex<BTreeMap<String, Waker>>>,
    account: Option<AccountLimit>,
}

impl Lives {
    async fn live(self) -> Result<(), String> {
        for number in 0u64.. {
            let skew_s = if self.told.borrow().repaired {
                0
            } else {
                self.skew_s
            };
            let actor = Actor::skewed(format!("listener-{}.{number}", self.worker), skew_s);
            let listener = self.listener(&actor, number)?;
            locked(&self.wakers).insert(actor.name.clone(), listener.waker());
            let ended = self.one_life(&actor, &listener).await;
            actor.ended();
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
            tokio::select! {
                biased;
                // A channel that is closed cannot tell any more.
                _ = told.wait_for(due) => wire.note(&actor.name, Happening::ToldToStop),
                () = actor.told_to_stop() => {}
            }
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
        let lag = Duration::from_millis(self.plan.shape.lag_ms);
        let storage = self
            .world
            .storage_afar(Which::Main, actor, seed, self.bend, lag)?;
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
            .map(|listener| match &self.account {
                Some(account) => listener.within(account.clone()),
                None => listener,
            })
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

    fn expiring(&self, alarm: &Expiring<'_>) {
        let id = alarm.id.to_owned();
        let seen = Seen::Expiring { id };
        self.wire.note(&self.actor, Happening::Listener(seen));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
