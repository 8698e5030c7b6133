//! The listener's scenario: random messages and handlers, two workers, trouble, then peace.

mod check;
mod handler;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use proptest::strategy::{BoxedStrategy, Strategy as _};
use smalt_listener::config::{Encoding, Idle, Tasks};
use smalt_listener::{Listener, ListenerConfig};
use smalt_sleeve::port::{CallContext, MessageTtl, Storage};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use plan::{Behaviour, ListenPlan, MessagePlan};

use super::account::Tally;
use super::actor::Actor;
use super::bent::Bend;
use super::campaign::{Run, Scenario, Violation};
use super::world::{self, Which, World};

/// How long the trouble lasts.
const TROUBLE_S: u64 = 150;
/// A worker that died is started again after this long.
const RESTART_S: u64 = 5;
/// When trouble is over, the queue must be empty within this time.
const PATIENCE_S: u64 = 1_800;

/// The scenario.
pub struct Listen;

impl Scenario for Listen {
    type Plan = ListenPlan;
    const NAME: &'static str = "listen";
    const SOMETIMES: &'static [&'static str] = &[
        "worker died",
        "answer lost: delete",
        "answer lost: get",
        "answer lost: update",
        "receipt mismatch",
        "503",
        "connection reset",
        "handler panicked",
        "copy in the poison queue",
    ];

    fn plans() -> BoxedStrategy<ListenPlan> {
        plan::plans().boxed()
    }

    fn run(plan: &ListenPlan, bend: Option<Bend>) -> Run {
        let failed = |why: String| Run {
            violations: vec![Violation::of_run("run", why)],
            ..Run::default()
        };
        let run = world::in_virtual_time(async {
            let world = World::in_process(plan.seed)?;
            run_in(&world, plan, &Names::fixed(), bend).await
        });
        run.and_then(|run| run).unwrap_or_else(failed)
    }
}

/// Names of the queues of a run.
#[derive(Clone, Debug)]
pub struct Names {
    /// The queue.
    pub queue: String,
    /// Its poison queue.
    pub poison: String,
}

impl Names {
    /// In a world of its own.
    pub fn fixed() -> Self {
        Self::fresh("orders")
    }

    /// In a service that others use, too.
    pub fn fresh(queue: &str) -> Self {
        Names {
            queue: queue.to_owned(),
            poison: format!("{queue}-poison"),
        }
    }
}

/// Runs a plan in a world, and judges its history.
///
/// # Errors
/// In words, when the world itself does not work.
pub async fn run_in(
    world: &World,
    plan: &ListenPlan,
    names: &Names,
    bend: Option<Bend>,
) -> Result<Run, String> {
    let owner = world.storage(Which::Main, &Actor::owner(), plan.seed, None)?;
    put_all(owner.as_ref(), plan, names).await?;
    world.trouble(&plan.trouble);
    let (stop, stopped) = watch::channel(false);
    let mut lives = JoinSet::new();
    for worker in 0..plan.workers {
        let storage = |actor: &Arc<Actor>, seed| world.storage(Which::Main, actor, seed, bend);
        let life = Lives {
            worker,
            plan: plan.clone(),
            names: names.clone(),
            stop: stopped.clone(),
            wire: Arc::clone(&world.wire),
        };
        // Storages are opened here: the world stays on this side.
        let mut storages = Vec::new();
        for life_number in 0..=plan.trouble.faults.len() {
            let actor = Actor::worker(format!("listener-{worker}.{life_number}"));
            let seed = plan.seed ^ (u64::from(worker) << 32) ^ (life_number as u64) << 16;
            storages.push((Arc::clone(&actor), storage(&actor, seed)?));
        }
        lives.spawn(life.live(storages));
    }
    let (faults, unaccounted) = if plan.trouble.faults.is_empty() && plan.trouble.rules.is_empty() {
        (Tally::default(), Vec::new())
    } else {
        world::sleep_s(TROUBLE_S).await;
        world.calm()
    };
    let emptied = wait_until_empty(owner.as_ref(), names).await?;
    // Sent and seen: a worker that has ended already is told in vain.
    let _ = stop.send(true);
    let mut violations = unaccounted;
    while let Some(ended) = lives.join_next().await {
        if let Err(why) = ended.map_err(|e| e.to_string()).and_then(|ended| ended) {
            violations.push(Violation::of_run("LL1", why));
        }
    }
    let history = world.wire.history();
    let (more, marks) = check::check(&history, plan, names);
    violations.extend(more);
    if !emptied && violations.is_empty() {
        let what = format!("the queue is not empty {PATIENCE_S} s after the trouble");
        violations.push(Violation::of_run("LL2", what));
    }
    Ok(Run {
        history,
        violations,
        faults,
        marks,
    })
}

async fn put_all(owner: &dyn Storage, plan: &ListenPlan, names: &Names) -> Result<(), String> {
    let cx = CallContext::default();
    let text = |error: smalt_sleeve::PortError| error.to_string();
    owner.create_queue(&cx, &names.queue).await.map_err(text)?;
    // The workers create the poison queue when they need it; half of the runs start without.
    if plan.seed.is_multiple_of(2) {
        owner.create_queue(&cx, &names.poison).await.map_err(text)?;
    }
    for (number, message) in plan.messages.iter().enumerate() {
        let delay = Duration::from_secs(u64::from(message.delay_s));
        let stored = plan.stored_text(number);
        owner
            .put_message(&cx, &names.queue, &stored, MessageTtl::Never, delay)
            .await
            .map_err(text)?;
    }
    Ok(())
}

async fn wait_until_empty(owner: &dyn Storage, names: &Names) -> Result<bool, String> {
    let cx = CallContext::default();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(PATIENCE_S);
    let mut pause = Duration::from_millis(500);
    while tokio::time::Instant::now() < deadline {
        let found = owner.queue_properties(&cx, &names.queue).await;
        if found.map_err(|e| e.to_string())?.approximate_count == 0 {
            return Ok(true);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(30));
    }
    Ok(false)
}

/// The lives of one worker, one after the other.
struct Lives {
    worker: u8,
    plan: ListenPlan,
    names: Names,
    stop: watch::Receiver<bool>,
    wire: Arc<super::wire::Wire>,
}

impl Lives {
    /// Lives until told to stop, or until the last life that was given.
    async fn live(self, lives: Vec<(Arc<Actor>, Arc<dyn Storage>)>) -> Result<(), String> {
        for (number, (actor, storage)) in lives.into_iter().enumerate() {
            let handler = Arc::new(handler::Scripted {
                wire: Arc::clone(&self.wire),
                actor: actor.name.clone(),
                plan: self.plan.clone(),
            });
            let seed = self.plan.seed ^ u64::from(self.worker) ^ (number as u64) << 8;
            let config = config(&self.plan, &self.names, &actor.name);
            let listener =
                Listener::new(config, storage, handler, seed).map_err(|error| error.to_string())?;
            let mut stop = self.stop.clone();
            let told = async move {
                // A channel that is closed cannot tell any more.
                let _ = stop.wait_for(|stop| *stop).await;
            };
            tokio::select! {
                biased;
                () = actor.crashed() => {}
                ended = listener.run_until(told) => {
                    return ended.map(|_| ()).map_err(|error| error.to_string());
                }
            }
            drop(listener);
            world::sleep_s(RESTART_S).await;
        }
        Err("a worker died more often than planned".to_owned())
    }
}

fn config(plan: &ListenPlan, names: &Names, worker: &str) -> ListenerConfig {
    let s = |seconds: u16| Duration::from_secs(u64::from(seconds));
    ListenerConfig {
        worker: worker.to_owned(),
        visibility: s(plan.visibility_s),
        renew: plan.renew,
        max_dequeue: plan.max_dequeue,
        retry: vec![s(1), s(4), s(20)],
        idle: Idle {
            min: Duration::from_millis(200),
            max: s(20),
        },
        tasks: Tasks { min: 1, max: 2 },
        slots: plan.slots,
        poison_queue: Some(names.poison.clone()),
        encoding: if plan.base64 {
            Encoding::Base64
        } else {
            Encoding::Text
        },
        handler_timeout: s(plan::HANDLER_TIMEOUT_S),
        ..ListenerConfig::new(&names.queue)
    }
}
