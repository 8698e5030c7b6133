//! The sweeper's scenario: random blobs with expiry within a week, up to three workers, and owners
//! who change their blobs, first in trouble, then in peace.

mod check;
mod extras;
mod ledger;
mod model;
mod notes;
mod owner;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use proptest::strategy::{BoxedStrategy, Strategy as _};
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobId, DeleteSnapshots};
use smalt_sweeper::decide::Policy;
use smalt_sweeper::guard::Guard;
use smalt_sweeper::schedule::Schedule;
use smalt_sweeper::{
    Accounts, Budget, DeadConfig, SweepError, Sweeper, SweeperConfig, SweptContainer,
};
use tokio::sync::watch;
use tokio::time::Instant;

pub use extras::Extras;
pub use plan::{BlobPlan, CONTENT_BYTES, Dead, Deed, Life, Names, OwnerAct, SweepPlan};

use self::plan::converges_s;
use super::actor::Actor;
use super::campaign::{Run, Scenario, Violation};
use super::history::Happening;
use super::world::{self, Engine, Which, World};

/// Duration of the trouble in seconds: a week and a day, so that all expiry within a week is over.
const TROUBLE_S: u64 = 8 * 86_400;
/// Time in seconds after which a worker that died or gave up is restarted.
const RESTART_S: u64 = 20;
/// Most lives of one worker; each mishap and each outage ends at most one.
const LIVES_MAX: u32 = 60;
/// Time in seconds within which a worker that is asked to stop must end when no fault happens
/// (SL5): the blobs in hand, its state write, and a lease that another worker has.
const STOP_S: u64 = 60;
/// Time in seconds within which a single sweep of a quiet service must end.
const ONCE_S: u64 = 86_400;
/// Clock skew in seconds from which on a worker that checks its own clock refuses to work (D4).
const SKEW_MAX_S: u32 = 600;

/// The sweeper's scenario.
pub struct Sweep;

impl Scenario for Sweep {
    type Plan = SweepPlan;
    const NAME: &'static str = "sweep";
    const SOMETIMES: &'static [&'static str] = notes::SOMETIMES;

    fn plans() -> BoxedStrategy<SweepPlan> {
        plan::plans().boxed()
    }

    fn run(plan: &SweepPlan, engine: Engine) -> Run {
        let failed = |why: String| Run {
            violations: vec![Violation::of_run("run", why)],
            ..Run::default()
        };
        let run = world::in_virtual_time(async {
            let world = match plan.extras.hierarchical {
                true => World::in_process_hierarchical(engine, plan.seed)?,
                false => World::in_process(engine, plan.seed)?,
            };
            run_in(&world, plan, &Names::fixed()).await
        });
        run.and_then(|run| run).unwrap_or_else(failed)
    }
}

/// Runs a plan in a world and checks its history.
///
/// # Errors
/// A description, when the world itself does not work.
pub async fn run_in(world: &World, plan: &SweepPlan, names: &Names) -> Result<Run, String> {
    let owner = owner::Owner::new(world, plan, names)?;
    owner.put_all().await?;
    let acting = owner.clone();
    world.wire.owner_acts(Some(Arc::new(move |act, about| {
        let owner = acting.clone();
        Box::pin(async move { owner.act(act, about).await })
    })));
    let run = sweep_and_judge(world, plan, names).await;
    world.wire.owner_acts(None);
    run
}

async fn sweep_and_judge(world: &World, plan: &SweepPlan, names: &Names) -> Result<Run, String> {
    let mut run = Run::default();
    if plan.lasts {
        with_trouble(world, plan, names, &mut run).await;
    }
    let rounds = if plan.lasts { 1 } else { 2 };
    for round in 0..rounds {
        let maker = Maker::new(world, plan, names);
        run.violations.extend(quiet(&maker, round).await?);
    }
    run.history = world.wire.history();
    let accounts = [world.name(Which::Main), world.name(Which::Dead)];
    let (more, marks) = check::check(&run.history, plan, names, accounts);
    run.violations.extend(more);
    run.marks = marks;
    Ok(run)
}

/// Runs one sweep without any faults.
async fn quiet(maker: &Maker, round: u64) -> Result<Vec<Violation>, String> {
    let actor = Actor::worker(format!("quiet-{round}"));
    let sweeper = maker.sweeper(&actor, 100 + round)?;
    let limit = Duration::from_secs(ONCE_S);
    let Ok(finished) = tokio::time::timeout(limit, sweeper.once()).await else {
        let what = "a quiet sweep did not end";
        return Ok(vec![Violation::of_run("SL1", what)]);
    };
    let failed = finished
        .error
        .map(|error| format!("a quiet sweep failed: {error}"));
    let failed = failed.map(|what| Violation::of_run("SL1", what));
    Ok(failed.into_iter().collect())
}

/// Runs the workers through the week of trouble and the peace after it.
async fn with_trouble(world: &World, plan: &SweepPlan, names: &Names, run: &mut Run) {
    world.trouble(&plan.trouble);
    let (stop, stopped) = watch::channel(false);
    let lives = (0..plan.workers).map(|worker| {
        let maker = Maker::new(world, plan, names);
        live(maker, worker, stopped.clone())
    });
    let weeks = async {
        world::sleep_s(TROUBLE_S).await;
        let account = world.calm();
        world::sleep_s(converges_s(plan)).await;
        world.wire.note("harness", Happening::ToldToStop);
        // A worker that has already ended does not get this.
        let _ = stop.send(true);
        (account, Instant::now())
    };
    let all = futures_util::future::join(join_all(lives), weeks);
    let (ended, ((faults, unaccounted), stopped_at)) = all.await;
    run.faults = faults;
    run.violations.extend(unaccounted);
    let gave_up = ended.into_iter().filter_map(Result::err);
    run.violations
        .extend(gave_up.map(|why| Violation::of_run("SL2", why)));
    if stopped_at.elapsed() > Duration::from_secs(STOP_S) {
        let what = format!("stopping took {} s", stopped_at.elapsed().as_secs());
        run.violations.push(Violation::of_run("SL5", what));
    }
}

/// Runs one worker, life after life, until it is told to stop.
async fn live(maker: Maker, worker: u8, stop: watch::Receiver<bool>) -> Result<(), String> {
    let skew_s = maker.plan.skew_s(worker);
    for life in 0..LIVES_MAX {
        let name = format!("sweeper-{worker}.{life}");
        let drift = (maker.begun, Duration::from_secs(TROUBLE_S));
        let actor = Actor::drifting(
            name,
            skew_s,
            Some(drift).filter(|_| maker.plan.extras.drifts),
        );
        let sweeper = maker.sweeper(&actor, u64::from(worker) << 8 | u64::from(life))?;
        let mut told = stop.clone();
        let told = async {
            tokio::select! {
                biased;
                // A closed channel cannot send any more.
                _ = told.wait_for(|stop| *stop) => {}
                () = actor.told_to_stop() => {}
            }
        };
        tokio::select! {
            biased;
            () = actor.crashed() => {}
            finished = sweeper.run_until(told) => {
                let why = finished.error.as_ref().map(ToString::to_string);
                maker.world.wire.note(&actor.name, Happening::Ended(why));
                let refuses = matches!(finished.error, Some(SweepError::ClockSkew(_)));
                if *stop.borrow() || refuses && skew_s.unsigned_abs() > SKEW_MAX_S {
                    return Ok(());
                }
                // Storage was unavailable for too long, or the worker was asked to stop: a
                // supervisor would restart it.
            }
        }
        actor.ended();
        drop(sweeper);
        world::sleep_s(RESTART_S).await;
    }
    Err("a worker died more often than planned".to_owned())
}

/// Creates workers.
#[derive(Clone)]
struct Maker {
    world: World,
    plan: SweepPlan,
    names: Names,
    begun: Timestamp,
}

impl Maker {
    fn new(world: &World, plan: &SweepPlan, names: &Names) -> Self {
        Maker {
            world: world.clone(),
            plan: plan.clone(),
            names: names.clone(),
            begun: world.wire.now(),
        }
    }

    fn sweeper(&self, actor: &Arc<Actor>, salt: u64) -> Result<Sweeper, String> {
        let seed = self.plan.seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let storage = |which| self.world.storage(which, actor, seed);
        let accounts = Accounts::new()
            .with("default", storage(Which::Main)?)
            .with("dead", storage(Which::Dead)?);
        let config = config(&self.plan, &self.names, &actor.name);
        let sweeper = Sweeper::new(config, accounts, seed).map_err(|error| error.to_string())?;
        Ok(if self.plan.wall_clocks {
            sweeper.with_wall_clock(self.world.wall_clock(actor))
        } else {
            sweeper
        })
    }
}

/// Returns the name that the configuration gives to an account.
fn account(which: Which) -> &'static str {
    match which {
        Which::Main => "default",
        Which::Dead => "dead",
    }
}

fn config(plan: &SweepPlan, names: &Names, worker: &str) -> SweeperConfig {
    let swept = |(which, container, prefix): &(Which, &str, &str)| SweptContainer {
        account: account(*which).to_owned(),
        container: names.container(container),
        prefix: (*prefix).to_owned(),
    };
    SweeperConfig {
        worker_id: Some(worker.to_owned()),
        state_blob: BlobId::new(names.state(), "TimeToLiveBlobs"),
        containers: plan::SWEPT.iter().map(swept).collect(),
        backend: plan.backend,
        schedule: Schedule {
            every: Duration::from_secs(plan.every_s()),
            align: true,
            jitter: Duration::from_secs(5),
        },
        page_size: plan.page_size,
        parallelism: plan.parallelism,
        dead: DeadConfig {
            account: plan.dead_account.map(|which| account(which).to_owned()),
            on_collision: plan.on_collision,
            ..DeadConfig::default()
        },
        lease_s: plan.lease_s,
        rate_per_s: plan.extras.rate_per_s.map_or(0.0, f64::from),
        policy: Policy {
            grace: Duration::from_secs(3_600 * plan.grace_h),
            allow: vec!["*".to_owned()],
            rules: plan.extras.rule(names).into_iter().collect(),
            ..Policy::default()
        },
        budget: plan.extras.has_budget.then_some(Budget {
            max_cost_per_day: 1_000.0,
            price_per_10k: 0.01,
        }),
        guard: Guard {
            max_per_cycle: plan.removals_max,
            ..Guard::default()
        },
        snapshots: match plan.with_snapshots {
            true => DeleteSnapshots::Include,
            false => DeleteSnapshots::Refuse,
        },
        ..SweeperConfig::default()
    }
}
