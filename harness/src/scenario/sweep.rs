//! The sweeper's scenario: random blobs, up to three workers, owners who change their minds,
//! trouble, then peace. A week of expiry.

mod check;
mod model;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use proptest::strategy::{BoxedStrategy, Strategy as _};
use smalt_protocol::uri::percent_decode;
use smalt_sleeve::port::{
    BlobId, CallContext, Conditions, DeleteSnapshots, Metadata, PortResult, PutBlob, Storage,
};
use smalt_sweeper::schedule::Schedule;
use smalt_sweeper::{Accounts, DeadConfig, SweepError, Sweeper, SweeperConfig, SweptContainer};
use tokio::sync::watch;
use tokio::time::Instant;

pub use plan::{BlobPlan, Dead, Deed, Life, OwnerAct, SweepPlan};

use super::actor::Actor;
use super::bent::Bend;
use super::campaign::{Run, Scenario, Violation};
use super::history::Happening;
use super::world::{self, Which, World};

/// Every blob of a run has this length: what its content says is in the first bytes.
pub const CONTENT_BYTES: u64 = 32;
/// How long the trouble lasts: a week and a day, so that what expires within a week has expired.
const TROUBLE_S: u64 = 8 * 86_400;
/// A worker that died or gave up is started again after this long.
const RESTART_S: u64 = 20;
/// Lives of one worker; each mishap and each outage ends one at most.
const LIVES_MAX: u32 = 60;
/// Leases, page deadlines and container back-offs have all ended after this long.
const SETTLE_S: u64 = 1_300;
/// When the trouble is over, the fleet has so many sweeps in which everything that is due must go:
/// one that was under way, and one from the start.
const SWEEPS_TO_CONVERGE: u64 = 2;
/// A worker that is asked to stop when nothing goes wrong has ended after this long (SL5): the
/// blobs in hand, its state write, and a lease that somebody else holds.
const STOP_S: u64 = 60;
/// A single sweep of a quiet service ends within this long.
const ONCE_S: u64 = 86_400;
/// From this skew on a worker that looks at its own clock refuses to work (D4).
const SKEW_MAX_S: u32 = 600;

/// The scenario.
pub struct Sweep;

impl Scenario for Sweep {
    type Plan = SweepPlan;
    const NAME: &'static str = "sweep";
    const SOMETIMES: &'static [&'static str] = check::SOMETIMES;

    fn plans() -> BoxedStrategy<SweepPlan> {
        plan::plans().boxed()
    }

    fn run(plan: &SweepPlan, bend: Option<Bend>) -> Run {
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

/// Names of the containers of a run.
#[derive(Clone, Debug)]
pub struct Names {
    /// In front of every container name: empty in a world of its own.
    pub prefix: String,
}

impl Names {
    /// In a world of its own.
    pub fn fixed() -> Self {
        Names {
            prefix: String::new(),
        }
    }

    /// The container of the state document.
    pub fn state(&self) -> String {
        format!("{}state", self.prefix)
    }

    /// A container.
    pub fn container(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Runs a plan in a world, and judges its history.
///
/// # Errors
/// In words, when the world itself does not work.
pub async fn run_in(
    world: &World,
    plan: &SweepPlan,
    names: &Names,
    bend: Option<Bend>,
) -> Result<Run, String> {
    let owner = Owner::new(world, plan, names)?;
    owner.put_all().await?;
    let acting = owner.clone();
    world.wire.owner_acts(Box::new(move |act, about| {
        let owner = acting.clone();
        Box::pin(async move { owner.act(act, about).await })
    }));
    let mut run = Run::default();
    if plan.lasts {
        with_trouble(world, plan, names, bend, &mut run).await;
    }
    let rounds = if plan.lasts { 1 } else { 2 };
    for round in 0..rounds {
        let maker = Maker::new(world, plan, names, bend);
        run.violations.extend(quiet(&maker, round).await?);
    }
    run.history = world.wire.history();
    let accounts = [world.name(Which::Main), world.name(Which::Dead)];
    let (more, marks) = check::check(&run.history, plan, names, accounts);
    run.violations.extend(more);
    run.marks = marks;
    Ok(run)
}

/// One sweep with nothing in its way.
async fn quiet(maker: &Maker, round: u64) -> Result<Vec<Violation>, String> {
    let actor = Actor::worker(format!("quiet-{round}"));
    let sweeper = maker.sweeper(&actor, 100 + round)?;
    let limit = Duration::from_secs(ONCE_S);
    let Ok(finished) = tokio::time::timeout(limit, sweeper.once()).await else {
        let what = "a quiet cycle does not end";
        return Ok(vec![Violation::of_run("SL1", what)]);
    };
    let failed = finished
        .error
        .map(|error| format!("a quiet cycle ended with: {error}"));
    let failed = failed.map(|what| Violation::of_run("SL1", what));
    Ok(failed.into_iter().collect())
}

/// The workers in their week of trouble, and in the calm after it.
async fn with_trouble(
    world: &World,
    plan: &SweepPlan,
    names: &Names,
    bend: Option<Bend>,
    run: &mut Run,
) {
    world.trouble(&plan.trouble);
    let (stop, stopped) = watch::channel(false);
    let lives = (0..plan.workers).map(|worker| {
        let maker = Maker::new(world, plan, names, bend);
        live(maker, worker, stopped.clone())
    });
    let weeks = async {
        world::sleep_s(TROUBLE_S).await;
        let account = world.calm();
        let every_s = 3_600 * u64::from(plan.every_h);
        world::sleep_s(SWEEPS_TO_CONVERGE * every_s + SETTLE_S).await;
        // A worker that has ended already is told in vain.
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

/// One worker, life after life, until told to stop.
async fn live(maker: Maker, worker: u8, stop: watch::Receiver<bool>) -> Result<(), String> {
    let skew_s = maker.plan.skew_s(worker);
    for life in 0..LIVES_MAX {
        let actor = Actor::skewed(format!("sweeper-{worker}.{life}"), skew_s);
        let sweeper = maker.sweeper(&actor, u64::from(worker) << 8 | u64::from(life))?;
        let mut told = stop.clone();
        let told = async {
            tokio::select! {
                biased;
                // A channel that is closed cannot tell any more.
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
                // Storage was out of reach for too long, or it was asked to stop: whatever runs
                // the worker starts it again.
            }
        }
        actor.ended();
        drop(sweeper);
        world::sleep_s(RESTART_S).await;
    }
    Err("a worker died more often than planned".to_owned())
}

/// Makes workers.
#[derive(Clone)]
struct Maker {
    world: World,
    plan: SweepPlan,
    names: Names,
    bend: Option<Bend>,
}

impl Maker {
    fn new(world: &World, plan: &SweepPlan, names: &Names, bend: Option<Bend>) -> Self {
        Maker {
            world: world.clone(),
            plan: plan.clone(),
            names: names.clone(),
            bend,
        }
    }

    fn sweeper(&self, actor: &Arc<Actor>, salt: u64) -> Result<Sweeper, String> {
        let seed = self.plan.seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let storage = |which| self.world.storage(which, actor, seed, self.bend);
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

fn config(plan: &SweepPlan, names: &Names, worker: &str) -> SweeperConfig {
    let swept = |(which, container, prefix): &(Which, &str, &str)| SweptContainer {
        account: if *which == Which::Main {
            "default"
        } else {
            "dead"
        }
        .to_owned(),
        container: names.container(container),
        prefix: (*prefix).to_owned(),
    };
    SweeperConfig {
        worker_id: Some(worker.to_owned()),
        state_blob: BlobId::new(names.state(), "TimeToLiveBlobs"),
        containers: plan::SWEPT.iter().map(swept).collect(),
        backend: plan.backend,
        schedule: Schedule {
            every: Duration::from_secs(3_600 * u64::from(plan.every_h)),
            align: true,
            jitter: Duration::from_secs(5),
        },
        page_size: plan.page_size,
        parallelism: plan.parallelism,
        dead: DeadConfig {
            account: plan.dead_account.then(|| "dead".to_owned()),
            on_collision: plan.on_collision,
            ..DeadConfig::default()
        },
        ..SweeperConfig::default()
    }
}

/// The owner of the data, and of what stands in the account for dead blobs.
#[derive(Clone)]
struct Owner {
    main: Arc<dyn Storage>,
    dead: Arc<dyn Storage>,
    plan: Arc<SweepPlan>,
    names: Names,
    world: World,
}

impl Owner {
    fn new(world: &World, plan: &SweepPlan, names: &Names) -> Result<Self, String> {
        let actor = Actor::owner();
        Ok(Owner {
            main: world.storage(Which::Main, &actor, plan.seed, None)?,
            dead: world.storage(Which::Dead, &actor, plan.seed, None)?,
            plan: Arc::new(plan.clone()),
            names: names.clone(),
            world: world.clone(),
        })
    }

    fn storage(&self, which: Which) -> &Arc<dyn Storage> {
        match which {
            Which::Main => &self.main,
            Which::Dead => &self.dead,
        }
    }

    async fn put_all(&self) -> Result<(), String> {
        let cx = CallContext::default();
        for (which, container, _) in plan::SWEPT {
            let container = self.names.container(container);
            let made = self.storage(which).create_container(&cx, &container).await;
            made.map_err(|error| error.to_string())?;
        }
        for number in 0..self.plan.blobs.len() {
            let blob = &self.plan.blobs[number];
            let put = self.put(number, blob.life, blob.dead, 0).await;
            put.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn id(&self, number: usize) -> (Which, BlobId) {
        let blob = &self.plan.blobs[number];
        let (which, container, _) = plan::SWEPT[usize::from(blob.container) % plan::SWEPT.len()];
        let name = self.plan.blob_name(number);
        (which, BlobId::new(self.names.container(container), name))
    }

    fn metadata(&self, life: Life, dead: Dead) -> Metadata {
        let now = self.world.wire.now();
        let mut metadata = Metadata::new();
        metadata.insert("owner".to_owned(), "scenario".to_owned());
        metadata.extend(life.text(now).map(|text| ("TimeToLive".to_owned(), text)));
        let dead = dead.text(&self.names);
        metadata.extend(dead.map(|text| ("DeadBlobContainer".to_owned(), text)));
        metadata
    }

    async fn put(&self, number: usize, life: Life, dead: Dead, version: u8) -> PortResult<()> {
        let (which, blob) = self.id(number);
        let put = PutBlob {
            metadata: self.metadata(life, dead),
            ..PutBlob::default()
        };
        let content = content(&format!("{number}#{version}"));
        let cx = CallContext::default();
        let put = self.storage(which).put_blob(&cx, &blob, content, &put);
        put.await.map(|_| ())
    }

    /// The blob of a path.
    fn number_of(&self, path: &str) -> Option<usize> {
        let path = percent_decode(path).ok()?;
        (0..self.plan.blobs.len()).find(|number| {
            let (which, blob) = self.id(*number);
            path == format!(
                "/{}/{}/{}",
                self.world.name(which),
                blob.container,
                blob.name
            )
        })
    }

    /// Does what the plan says under this number, to the blob of this path or of the plan's choice.
    /// Refusals are part of it: another deed may have taken a lease or removed the blob before.
    async fn act(&self, number: u8, about: Option<String>) {
        let acts = &self.plan.acts;
        let Some(act) = acts.get(usize::from(number) % acts.len().max(1)) else {
            return;
        };
        let target = about.and_then(|path| self.number_of(&path));
        let target = target.unwrap_or(usize::from(act.blob) % self.plan.blobs.len().max(1));
        let (which, blob) = self.id(target);
        let (cx, storage) = (CallContext::default(), self.storage(which));
        let none = Conditions::default();
        match act.deed {
            Deed::Overwrite(life, dead) => {
                let _ = self.put(target, life, dead, number + 1).await;
            }
            Deed::Tag(life, dead) => {
                let metadata = self.metadata(life, dead);
                let _ = storage
                    .set_blob_metadata(&cx, &blob, &metadata, &none)
                    .await;
            }
            Deed::Lease(seconds) => {
                let id = "11111111-2222-3333-4444-555555555555";
                let _ = storage.acquire_lease(&cx, &blob, id, seconds).await;
            }
            Deed::Delete => {
                let _ = storage
                    .delete_blob(&cx, &blob, &none, DeleteSnapshots::Refuse)
                    .await;
            }
            Deed::TakeDestination => self.take_destination(target).await,
        }
    }

    /// Puts a blob of its own where a dead one may go.
    async fn take_destination(&self, target: usize) {
        let dead = self.plan.blobs[target].dead.text(&self.names);
        let name = self.plan.blob_name(target);
        let Some((container, name)) = dead.and_then(|dead| model::resolve(&dead, &name)) else {
            return;
        };
        let cx = CallContext::default();
        let _ = self.dead.create_container(&cx, &container).await;
        let (blob, put) = (BlobId::new(container, name), PutBlob::default());
        let _ = self
            .dead
            .put_blob(&cx, &blob, content("foreign"), &put)
            .await;
    }
}

/// Content of [`CONTENT_BYTES`] that says what it is.
fn content(text: &str) -> Bytes {
    let width = usize::try_from(CONTENT_BYTES).unwrap_or(usize::MAX);
    Bytes::from(format!("{text:<width$}"))
}
