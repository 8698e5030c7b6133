//! The listeners of a run: each starts, dies or stops, and starts again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use smalt_listener::observers::Expiring;
use smalt_listener::partition::{PartitionSettings, PartitionedListener, Partitions};
use smalt_listener::{AccountLimit, Decision, Ended, Observer, PoolStatus, QueueListener, Waker};
use smalt_protocol::Timestamp;
use smalt_sleeve::port::Storage;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::handler::Scripted;
use super::plan::ListenPlan;
use super::{Names, Seen};
use crate::scenario::actor::Actor;
use crate::scenario::history::Happening;
use crate::scenario::wire::Wire;
use crate::scenario::world::{self, Which, World};

/// Time in seconds after which a worker that died or was replaced starts again.
const RESTART_S: u64 = 5;
/// Milliseconds within which triggers reach listeners that wake apart.
const APART_MS: u64 = 2_500;
/// Clock skew in seconds beyond which the service rejects signed requests (15 minutes).
const SKEW_MAX_S: u32 = 900;

/// Orders for one listener.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    /// Number of times that it was told to make room for a successor.
    replaced: u64,
    /// Whether its clock has been corrected.
    repaired: bool,
    /// Whether no successor may start.
    over: bool,
}

/// The wakers of each life, one for each of its queues.
type Wakers = Arc<Mutex<BTreeMap<String, Vec<Waker>>>>;

pub(super) struct Crew {
    wire: Arc<Wire>,
    queue: String,
    orders: Vec<watch::Sender<Orders>>,
    skew_s: Vec<i32>,
    /// Whether partitions replace the queue.
    is_set: bool,
    /// Whether a trigger reaches each listener at its own time.
    wakes_apart: bool,
    wakers: Wakers,
    /// Decides what becomes of each trigger.
    triggers: Mutex<ChaCha8Rng>,
    lives: JoinSet<Result<(), String>>,
}

impl Crew {
    /// Starts the first life of each listener.
    pub(super) fn start(world: &World, plan: &Arc<ListenPlan>, names: &Names) -> Self {
        let mut crew = Crew {
            wire: Arc::clone(&world.wire),
            queue: names.queue.clone(),
            orders: Vec::new(),
            skew_s: Vec::new(),
            is_set: plan.shape.partitions.is_some(),
            wakes_apart: plan.shape.wakes_apart,
            wakers: Arc::default(),
            triggers: Mutex::new(ChaCha8Rng::seed_from_u64(plan.seed)),
            lives: JoinSet::new(),
        };
        let account = plan.shape.account_per_s.map(AccountLimit::new);
        for worker in 0..plan.shape.workers {
            // Each listener has its own channel: several receivers of one channel wake in no fixed
            // order.
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
                told,
                skew_s,
                begun: world.wire.now(),
                wakers: Arc::clone(&crew.wakers),
                account: account.clone(),
            };
            crew.lives.spawn(lives.live());
        }
        crew
    }

    /// Tells one listener to stop; its successor follows.
    pub(super) fn replace(&self, worker: u8) {
        let worker = usize::from(worker) % self.orders.len().max(1);
        if let Some(orders) = self.orders.get(worker) {
            orders.send_modify(|orders| orders.replaced += 1);
        }
    }

    /// Sends a trigger to each listener, which is a process of its own: some lose it, some get it
    /// twice. `in_capitals` changes the case of the queue's name.
    pub(super) fn announce(&self, in_capitals: bool) {
        let name = if in_capitals {
            self.queue.to_ascii_uppercase()
        } else {
            self.queue.clone()
        };
        for (actor, wakers) in locked(&self.wakers).iter() {
            let copies = self.copies();
            if copies != 1 {
                let seen = Seen::Unreliable { copies };
                self.wire.note(actor, Happening::Listener(seen));
            }
            let trigger = Trigger {
                wire: Arc::clone(&self.wire),
                actor: actor.clone(),
                name: (!self.is_set).then(|| name.clone()),
                copies,
            };
            if !self.wakes_apart {
                trigger.arrives(wakers);
                continue;
            }
            let late = u64::from(locked(&self.triggers).next_u32()) % APART_MS;
            let all = Arc::clone(&self.wakers);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(late)).await;
                if let Some(wakers) = locked(&all).get(&trigger.actor) {
                    trigger.arrives(wakers);
                }
            });
        }
    }

    /// Returns how often the next trigger arrives: a fifth is lost, a fifth arrives twice.
    fn copies(&self) -> u8 {
        let mut triggers = locked(&self.triggers);
        match triggers.next_u32() % 5 {
            0 => 0,
            1 => 2,
            _ => 1,
        }
    }

    /// Corrects the clocks that the service does not accept, and restarts their listeners.
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

    /// Ends all listeners. Returns their errors.
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

/// A trigger on its way to one listener.
struct Trigger {
    wire: Arc<Wire>,
    actor: String,
    /// Name of the queue, where there is only one.
    name: Option<String>,
    copies: u8,
}

impl Trigger {
    fn arrives(&self, wakers: &[Waker]) {
        for _ in 0..self.copies {
            let woken = Happening::Listener(Seen::Woken);
            self.wire.note(&self.actor, woken);
            for waker in wakers {
                match &self.name {
                    None => waker.wake(),
                    Some(name) => drop(waker.wake_for(name)),
                }
            }
        }
    }
}

/// The lives of one listener, one after the other.
struct Lives {
    worker: u8,
    world: World,
    plan: Arc<ListenPlan>,
    names: Names,
    told: watch::Receiver<Orders>,
    skew_s: i32,
    /// When the clocks begin to drift.
    begun: Timestamp,
    wakers: Wakers,
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
            let drift_s = self.plan.shape.drift_s.map(u64::from);
            let drift = drift_s.map(|drift_s| (self.begun, Duration::from_secs(drift_s)));
            let name = format!("listener-{}.{number}", self.worker);
            let actor = Actor::drifting(name, skew_s, drift);
            let ended = match self.plan.shape.set(&self.names) {
                Some(set) => self.one_life_of_many(&actor, number, set).await,
                None => {
                    let listener = self.listener(&actor, number)?;
                    locked(&self.wakers).insert(actor.name.clone(), vec![listener.waker()]);
                    self.one_life(&actor, &listener).await
                }
            };
            actor.ended();
            locked(&self.wakers).remove(&actor.name);
            if ended? && self.told.borrow().over {
                return Ok(());
            }
            world::sleep_s(RESTART_S).await;
        }
        Ok(())
    }

    /// Runs one life to its end. Returns whether it stopped in an orderly way.
    async fn one_life(&self, actor: &Arc<Actor>, listener: &QueueListener) -> Result<bool, String> {
        let wire = &self.world.wire;
        let note = |seen| wire.note(&actor.name, Happening::Listener(seen));
        let stop = self.told_to_stop(actor);
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

    /// Waits until this life is told to make room.
    async fn told_to_stop(&self, actor: &Arc<Actor>) {
        let mut told = self.told.clone();
        let replaced = told.borrow().replaced;
        let due = |orders: &Orders| orders.over || orders.replaced > replaced;
        tokio::select! {
            biased;
            // A closed channel cannot send any more.
            _ = told.wait_for(due) => self.world.wire.note(&actor.name, Happening::ToldToStop),
            () = actor.told_to_stop() => {}
        }
    }

    /// Runs one life that serves several queues.
    async fn one_life_of_many(
        &self,
        actor: &Arc<Actor>,
        number: u64,
        set: PartitionSettings,
    ) -> Result<bool, String> {
        let words = |error: &dyn std::error::Error| error.to_string();
        let wire = Arc::clone(&self.world.wire);
        let (seed, storage) = self.storage(actor, number)?;
        let set = Partitions::new(storage, set).map_err(|error| words(&error))?;
        let handler = self.handler(actor);
        let config = self.plan.shape.config(&self.names, &actor.name);
        let seed = seed ^ u64::from(self.worker);
        let many = PartitionedListener::new(Arc::new(set), config, handler, seed);
        let many = many.map_err(|error| words(&error))?;
        let (wakers, name) = (Arc::clone(&self.wakers), actor.name.clone());
        let account = self.account.clone();
        let (pools, mut opened) = mpsc::unbounded_channel();
        let noted = Arc::clone(&wire);
        let many = many.with_each(move |listener| {
            let queue = listener.config().queue.clone();
            locked(&wakers)
                .entry(name.clone())
                .or_default()
                .push(listener.waker());
            let _ = pools.send((queue.clone(), listener.status()));
            let listener = listener.observed_by(Arc::new(Witness {
                wire: Arc::clone(&noted),
                actor: name.clone(),
            }));
            match &account {
                Some(account) => listener.within(account.clone()),
                None => listener,
            }
        });
        let watching = async {
            let mut watched = FuturesUnordered::new();
            loop {
                tokio::select! {
                    biased;
                    Some((queue, status)) = opened.recv() => {
                        let (wire, actor) = (Arc::clone(&wire), actor.name.clone());
                        watched.push(watch_pool(status, move |seen| {
                            let seen = Seen::Of(queue.clone(), Box::new(seen));
                            wire.note(&actor, Happening::Listener(seen));
                        }));
                    }
                    Some(()) = watched.next() => {}
                    else => std::future::pending::<()>().await,
                }
            }
        };
        tokio::select! {
            biased;
            () = actor.crashed() => Ok(false),
            ended = many.run_until(self.told_to_stop(actor)) => {
                let reports = ended.map_err(|error| words(&error))?;
                let mut ended = reports.iter().map(|(_, report)| report.ended);
                let late = ended.find(|ended| *ended != Ended::Drained);
                let left = Seen::Left(late.unwrap_or(Ended::Drained));
                wire.note(&actor.name, Happening::Listener(left));
                Ok(true)
            }
            () = watching => Ok(true),
        }
    }

    fn handler(&self, actor: &Arc<Actor>) -> Arc<Scripted> {
        Arc::new(Scripted {
            wire: Arc::clone(&self.world.wire),
            actor: actor.name.clone(),
            plan: Arc::clone(&self.plan),
        })
    }

    /// Returns the seed of a life and its client.
    fn storage(&self, actor: &Arc<Actor>, number: u64) -> Result<(u64, Arc<dyn Storage>), String> {
        let seed = self.plan.seed ^ (u64::from(self.worker) << 32) ^ (number << 16);
        let lag = Duration::from_millis(self.plan.shape.lag_ms);
        let way = self.world.storage_afar(Which::Main, actor, seed, lag);
        Ok((seed, way?))
    }

    fn listener(&self, actor: &Arc<Actor>, number: u64) -> Result<QueueListener, String> {
        let (seed, storage) = self.storage(actor, number)?;
        let wire = Arc::clone(&self.world.wire);
        let handler = self.handler(actor);
        let config = self.plan.shape.config(&self.names, &actor.name);
        let observer = Arc::new(Witness {
            wire,
            actor: actor.name.clone(),
        });
        QueueListener::new(config, storage, handler, seed ^ u64::from(self.worker))
            .map(|listener| listener.observed_by(observer))
            .map(|listener| match &self.account {
                Some(account) => listener.within(account.clone()),
                None => listener,
            })
            .map_err(|error| error.to_string())
    }
}

/// Records each change of state and number of tasks; never ends.
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

/// Records the decisions of one life.
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
