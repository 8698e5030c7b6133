//! The listener's scenario: random messages, handlers and settings, and several listeners on one
//! queue, first in trouble, then in peace.
//!
//! A run has five stages: *trouble*, in which faults and acts happen; *peace*, in which the queue
//! must become empty; *idle*, without messages; *late*, with one message; and a *wave*, at once or
//! at a constant rate, while one listener is replaced. Then all listeners are told to stop.

mod check;
mod handler;
mod keeper;
mod life;
mod plan;
mod seen;
mod shape;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use proptest::strategy::{BoxedStrategy, Strategy as _};
use smalt_listener::config::Encoding;
use smalt_listener::partition::{PartitionSender, Partitions};
use smalt_listener::payload::{SendOptions, Sender};
use smalt_sleeve::port::{CallContext, ErrorKind, MessageTtl, Storage};
use tokio::sync::oneshot;
use tokio::time::Instant;

pub use plan::{Act, Arrival, Behaviour, ListenPlan, MessagePlan, Wave};
pub use seen::{Names, Seen, Stage};
pub use shape::{Mode, Resize, Shape};

use self::life::Crew;
use self::plan::WAVE_FIRST;
use super::account::Tally;
use super::actor::Actor;
use super::campaign::{Run, Scenario, Violation};
use super::history::Happening;
use super::world::{self, Engine, Which, World};

/// Duration of the trouble, in seconds.
const TROUBLE_S: u64 = 150;
/// Time in seconds within which the queue must be empty after the trouble.
const PATIENCE_S: u64 = 1_800;
/// Most messages that the stranger takes at a time.
const STOLEN_MAX: u32 = 8;

/// The listener's scenario.
pub struct Listen;

impl Scenario for Listen {
    type Plan = ListenPlan;
    const NAME: &'static str = "listen";
    const SOMETIMES: &'static [&'static str] = check::SOMETIMES;

    fn plans() -> BoxedStrategy<ListenPlan> {
        plan::plans().boxed()
    }

    fn run(plan: &ListenPlan, engine: Engine) -> Run {
        let failed = |why: String| Run {
            violations: vec![Violation::of_run("run", why)],
            ..Run::default()
        };
        let run = world::in_virtual_time(async {
            let world = World::in_process_shuffled(engine, plan.seed)?;
            run_in(&world, plan, &Names::fixed()).await
        });
        run.and_then(|run| run).unwrap_or_else(failed)
    }
}

/// Runs a plan in a world and checks its history.
///
/// # Errors
/// A description, when the world itself does not work.
pub async fn run_in(world: &World, plan: &ListenPlan, names: &Names) -> Result<Run, String> {
    let mut plan = plan.clone();
    if !world.is_virtual() {
        // The service may have no blobs.
        (plan.shape.payloads, plan.shape.partitions) = (None, None);
        plan.shape.swept = false;
    }
    let plan = Arc::new(plan);
    let storage = world.storage(Which::Main, &Actor::owner(), plan.seed)?;
    let owner = Owner {
        sender: sender(&storage, &plan, &names.queue)?,
        set: Set::of(&storage, &plan, names)?,
        storage,
        stranger: world.storage(Which::Main, &Actor::stranger(), plan.seed)?,
        world,
        plan: &plan,
        names,
    };
    let (stop, told) = oneshot::channel();
    let sweeping = keeper::sweep(world, &plan, told);
    let (worked, swept) = join(work(&owner, stop), sweeping).await;
    let (faults, mut violations, emptied) = worked?;
    let wrong = swept.err().into_iter();
    violations.extend(wrong.map(|why| Violation::of_run("DL26", why)));
    let history = world.wire.history();
    let (more, marks) = check::check(&history, &plan, names, world.is_virtual());
    violations.extend(more);
    if !emptied && violations.is_empty() {
        let what = format!("the queue is not empty {PATIENCE_S} s after the last message");
        violations.push(Violation::of_run("LL2", what));
    }
    Ok(Run {
        history,
        violations,
        faults,
        marks,
    })
}

/// Runs the stages until every listener has stopped, and the payloads that are left were swept.
/// Returns the counts of the faults, what is wrong with them and with the ends of the listeners,
/// and whether the queue became empty each time.
async fn work(
    owner: &Owner<'_>,
    stop: oneshot::Sender<()>,
) -> Result<(Tally, Vec<Violation>, bool), String> {
    owner.begin().await?;
    owner.world.trouble(&owner.plan.trouble);
    let crew = Crew::start(owner.world, owner.plan, owner.names);
    let begun = Instant::now();
    owner.trouble(&crew, begun).await?;
    crew.repair_clocks();
    let (faults, mut violations) = owner.world.calm();
    let emptied = owner.peace(&crew).await?;
    owner.stage(Stage::End);
    let wrong = crew.end().await.into_iter();
    violations.extend(wrong.map(|why| Violation::of_run("LL1", why)));
    if owner.plan.shape.swept {
        tokio::time::sleep(keeper::last()).await;
    }
    drop(stop);
    Ok((faults, violations, emptied))
}

fn sender(storage: &Arc<dyn Storage>, plan: &ListenPlan, queue: &str) -> Result<Sender, String> {
    let (storage, offload) = (Arc::clone(storage), plan.shape.offload());
    let sender = Sender::new(storage, queue, encoding(plan), offload, plan.seed);
    sender.map_err(|error| error.to_string())
}

/// The owner of the queue, who puts messages and performs the planned acts.
struct Owner<'a> {
    storage: Arc<dyn Storage>,
    /// Puts bodies that are stored in blobs.
    sender: Sender,
    /// Set where partitions replace the queue.
    set: Option<Set>,
    stranger: Arc<dyn Storage>,
    world: &'a World,
    plan: &'a Arc<ListenPlan>,
    names: &'a Names,
}

/// A planned step of the owner.
enum Step {
    Put(usize, bool),
    Act(Act),
    Resize(u32),
}

/// A partitioned queue, as its owner and its sender use it.
struct Set {
    owner: Arc<Partitions>,
    sender: PartitionSender,
}

impl Set {
    fn of(
        storage: &Arc<dyn Storage>,
        plan: &ListenPlan,
        names: &Names,
    ) -> Result<Option<Self>, String> {
        let Some(settings) = plan.shape.set(names) else {
            return Ok(None);
        };
        let owner = Partitions::new(Arc::clone(storage), settings);
        let owner = Arc::new(owner.map_err(|error| error.to_string())?);
        let (encoding, offload) = (encoding(plan), plan.shape.offload());
        let sender = PartitionSender::new(Arc::clone(&owner), encoding, offload, plan.seed);
        let sender = sender.map_err(|error| error.to_string())?;
        Ok(Some(Set { owner, sender }))
    }
}

fn encoding(plan: &ListenPlan) -> Encoding {
    match plan.shape.base64 {
        true => Encoding::Base64,
        false => Encoding::Text,
    }
}

impl Owner<'_> {
    fn stage(&self, stage: Stage) {
        let seen = Happening::Listener(Seen::Stage(stage));
        self.world.wire.note("harness", seen);
    }

    fn note(&self, seen: Seen) {
        self.world.wire.note("harness", Happening::Listener(seen));
    }

    async fn create(&self, queue: &str) -> Result<(), String> {
        let cx = CallContext::default();
        let made = self.storage.create_queue(&cx, queue).await;
        made.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn put(&self, number: usize, hidden_s: u16, ttl_s: Option<u16>) -> Result<(), String> {
        let cx = CallContext::default();
        let s = |seconds: u16| Duration::from_secs(u64::from(seconds));
        let ttl = ttl_s.map_or(MessageTtl::Never, |ttl_s| MessageTtl::After(s(ttl_s)));
        let delay = s(hidden_s);
        let options = SendOptions { ttl, delay };
        let (body, key) = (self.plan.body(number), format!("m{number}"));
        let readable = self.plan.behaviour(number) != Some(Behaviour::Undecodable);
        match &self.set {
            Some(set) if readable => {
                let sent = set.sender.send(key.as_bytes(), body.as_bytes(), options);
                return sent.await.map(drop).map_err(|error| error.to_string());
            }
            None if self.plan.travels_apart(number) => {
                let sent = self.sender.send(body.as_bytes(), options);
                return sent.await.map(drop).map_err(|error| error.to_string());
            }
            _ => {}
        }
        let text = self.plan.stored_text(number);
        let queue = match &self.set {
            Some(set) => {
                let map = set.owner.map().await.map_err(|error| error.to_string())?;
                map.queue_of(key.as_bytes())
            }
            None => self.names.queue.clone(),
        };
        let put = self.storage.put_message(&cx, &queue, &text, ttl, delay);
        put.await.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Creates the queue and puts the messages that are there from the start.
    async fn begin(&self) -> Result<(), String> {
        match &self.set {
            Some(set) => drop(set.owner.map().await.map_err(|error| error.to_string())?),
            None => self.create(&self.names.queue).await?,
        }
        // The listeners create the poison queue when they need it; half of the runs start without
        // one.
        if self.plan.seed.is_multiple_of(2) {
            self.create(&self.names.poison).await?;
        }
        for (number, message) in self.plan.messages.iter().enumerate() {
            match message.arrival {
                Arrival::First => self.put(number, 0, message.ttl_s).await?,
                Arrival::Hidden(s) => self.put(number, s, message.ttl_s).await?,
                Arrival::Later(..) => {}
            }
        }
        Ok(())
    }

    /// Performs the planned acts of the trouble.
    async fn trouble(&self, crew: &Crew, begun: Instant) -> Result<(), String> {
        let mut steps: Vec<(u16, Step)> = Vec::new();
        for (number, message) in self.plan.messages.iter().enumerate() {
            if let Arrival::Later(at, told) = message.arrival {
                steps.push((at, Step::Put(number, told)));
            }
        }
        steps.extend(
            self.plan
                .acts
                .iter()
                .map(|(at, act)| (*at, Step::Act(*act))),
        );
        let resizes = self.plan.shape.partitions.into_iter();
        steps.extend(
            resizes
                .flat_map(Resize::changes)
                .map(|(at, to)| (at, Step::Resize(to))),
        );
        steps.sort_by_key(|(at, _)| *at);
        for (at, step) in steps {
            // Half a second late, so that it does not always coincide with something else.
            let at = Duration::from_millis(u64::from(at) * 1_000 + 517);
            tokio::time::sleep_until(begun + at).await;
            match step {
                Step::Put(number, told) => {
                    self.put(number, 0, self.plan.messages[number].ttl_s)
                        .await?;
                    if told {
                        crew.announce(number % 2 == 1);
                    }
                }
                Step::Act(act) => self.act(crew, act).await?,
                Step::Resize(to) => {
                    if let Some(set) = &self.set {
                        let resized = set.owner.resize(to).await;
                        resized.map_err(|error| error.to_string())?;
                    }
                }
            }
        }
        if !self.plan.is_calm() {
            tokio::time::sleep_until(begun + Duration::from_secs(TROUBLE_S)).await;
        }
        Ok(())
    }

    async fn act(&self, crew: &Crew, act: Act) -> Result<(), String> {
        match act {
            Act::DeleteQueue(missing_s) => {
                let queue = self.a_queue();
                self.world.delete_queue(&queue).await?;
                self.note(Seen::QueueDeleted);
                world::sleep_s(u64::from(missing_s)).await;
                self.create(&queue).await
            }
            Act::Steal(for_s) => {
                self.steal(for_s).await;
                Ok(())
            }
            Act::Sleep(for_s) => {
                self.note(Seen::Slept(u64::from(for_s)));
                // Polling this makes time jump; anyone who waited for a moment in between wakes
                // after the stranger has taken its messages.
                let jump = tokio::time::advance(Duration::from_secs(u64::from(for_s)));
                tokio::pin!(jump);
                let _ = futures_util::poll!(jump.as_mut());
                self.steal(for_s).await;
                jump.await;
                Ok(())
            }
            Act::Stop(worker) => {
                crew.replace(worker);
                Ok(())
            }
        }
    }

    /// Returns the name of a queue that always exists.
    fn a_queue(&self) -> String {
        let queues = self.plan.shape.queues(self.names);
        queues.last().unwrap_or(&self.names.queue).clone()
    }

    /// Returns the number of messages in all queues.
    async fn count(&self) -> Result<u64, String> {
        let (cx, mut count) = (CallContext::default(), 0);
        for queue in self.plan.shape.queues(self.names) {
            match self.storage.queue_properties(&cx, &queue).await {
                Ok(found) => count += found.approximate_count,
                Err(error) if error.kind == ErrorKind::NotFound && self.set.is_some() => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(count)
    }

    /// Takes all visible messages as a stranger, and forgets them.
    async fn steal(&self, for_s: u16) {
        let cx = CallContext::default();
        let hidden = Duration::from_secs(u64::from(for_s));
        let queue = self.a_queue();
        let got = self.stranger.get_messages(&cx, &queue, STOLEN_MAX, hidden);
        // A stranger whose request fails, or who finds no queue, takes nothing.
        let _ = got.await;
    }

    /// Runs all stages after the trouble. Returns whether the queue became empty each time.
    async fn peace(&self, crew: &Crew) -> Result<bool, String> {
        if !self.empty().await? {
            return Ok(false);
        }
        self.stage(Stage::Idle);
        let idle = self.plan.shape.idle_time() / 2;
        tokio::time::sleep(idle).await;
        // A trigger without a message; it wakes followers of a sentinel as well.
        let polls = matches!(self.plan.shape.mode, Mode::Poll(_));
        if polls && self.plan.seed.is_multiple_of(4) {
            crew.announce(false);
        }
        tokio::time::sleep(idle).await;
        let announced = self.plan.seed.is_multiple_of(3);
        if self.plan.seed.is_multiple_of(6) {
            self.until_something_happens().await;
        }
        self.stage(Stage::Late { announced });
        self.put(WAVE_FIRST, 0, None).await?;
        if announced {
            crew.announce(self.plan.seed.is_multiple_of(2));
        }
        if !self.empty().await? {
            return Ok(false);
        }
        self.wave(crew).await?;
        self.empty().await
    }

    /// Waits for the next get of an idle listener. Where requests take long, the next step falls
    /// between that get and its answer.
    async fn until_something_happens(&self) {
        let before = self.world.wire.events();
        let longest = self.plan.shape.longest_sleep();
        let deadline = Instant::now() + longest;
        while self.world.wire.events() == before && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn wave(&self, crew: &Crew) -> Result<(), String> {
        match self.plan.wave {
            Wave::None => {}
            Wave::Burst(messages, _, stop_ms) => {
                self.stage(Stage::Burst);
                for number in 1..=usize::from(messages) {
                    self.put(WAVE_FIRST + number, 0, None).await?;
                }
                crew.announce(false);
                tokio::time::sleep(Duration::from_millis(u64::from(stop_ms))).await;
                crew.replace(0);
            }
            Wave::Steady(per_s, _, for_s) => {
                self.stage(Stage::Steady);
                let pause = Duration::from_secs(1) / u32::from(per_s.max(1));
                for number in 1..=usize::from(per_s) * usize::from(for_s) {
                    self.put(WAVE_FIRST + number, 0, None).await?;
                    // Beside stragglers, each message must be found.
                    if self.plan.stragglers == 0 {
                        crew.announce(false);
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Ok(())
    }

    /// Waits until the queue is empty. Returns `false` when that takes too long.
    async fn empty(&self) -> Result<bool, String> {
        let deadline = Instant::now() + Duration::from_secs(PATIENCE_S);
        let mut pause = Duration::from_millis(500);
        while Instant::now() < deadline {
            if self.count().await? == 0 {
                return Ok(true);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(30));
        }
        Ok(false)
    }
}
