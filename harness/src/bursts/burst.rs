//! One burst: its operations, the schedule of its clients, and the check of the answers.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::Model;
use smalt_model::vocabulary::{ContainerOperation, Operation};

use super::judge::{self, Verdict};
use super::known::Known;
use super::linear::Call;
use super::plan::{Kind, Plan, SOLO};
use super::program::{self, Draw};
use super::schedule::{self, Order, Starts, Stuck, Task, pause};
use super::state::State;
use crate::histories::check::check;
use crate::histories::generate::{DICE, Space, choose};
use crate::histories::names::Names;
use crate::histories::run::Answered;
use crate::histories::server::{self, START_S, Server};
use crate::wire::access::Access;

/// Percentage of operations that lose their answer.
const LOST_PERCENT: u32 = 8;
/// Percentage of lost operations that their client drops while they are in progress.
const GIVEN_UP_PERCENT: u32 = 50;
/// Maximum number of polls before a client drops a call.
const POLLS_MAX: u32 = 6;
/// A page size that fits all blobs: a listing of several pages is not atomic.
const ONE_PAGE: u32 = 5_000;

/// What clients did, ordered by start.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Calls with their answers.
    pub calls: Vec<Call>,
    /// The state before the first of these calls.
    pub start: State,
    /// The requests sent before, with their answers, as text.
    pub before: String,
    /// Number of steps of the schedule.
    pub steps: usize,
}

/// Why a burst failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Why the burst failed.
    pub reason: String,
    /// Everything that happened.
    pub history: History,
}

struct World<'a> {
    plan: &'a Plan,
    server: Server,
    ask: Ask,
    ticks: Cell<u64>,
    /// The state before the first call of the history.
    start: RefCell<State>,
    /// What clients have seen since then; in a burst of [`Kind::All`] they only know the start.
    known: RefCell<Known>,
    history: RefCell<History>,
    broken: RefCell<Option<String>>,
}

/// Runs a burst on one thread, in the order of its plan, and checks it.
///
/// # Errors
/// Why no order of the calls explains the answers, or why the burst could not run, with the
/// history.
pub fn burst(plan: &Plan, access: &Access) -> Result<(Verdict, History), Box<Failure>> {
    let history = play(plan, access)?;
    match judge::judge(plan.kind, &history) {
        Ok(verdict) => Ok((verdict, history)),
        Err(reason) => Err(Box::new(Failure { reason, history })),
    }
}

/// Sends an operation; tests insert a faulty service here.
pub type Ask = for<'a> fn(
    &'a Server,
    &'a Operation,
    &'a Names,
) -> Pin<Box<dyn Future<Output = Result<Answered, String>> + 'a>>;

/// Runs a burst on one thread, in the order of its plan.
///
/// # Errors
/// Why the burst could not run, with what happened so far.
pub fn play(plan: &Plan, access: &Access) -> Result<History, Box<Failure>> {
    play_against(plan, access, |server, operation, names| {
        Box::pin(Answered::to(server, operation, names))
    })
}

/// Like [`play`], with a service of the caller between clients and emulator.
///
/// # Errors
/// As [`play`].
pub fn play_against(plan: &Plan, access: &Access, ask: Ask) -> Result<History, Box<Failure>> {
    let failed = |reason: String, history: History| Box::new(Failure { reason, history });
    let config = server::config(plan.kind == Kind::Lake);
    let server = Server::stepped_as(access.clone(), config);
    let server = server.map_err(|reason| failed(reason, History::default()))?;
    let world = Rc::new(World {
        plan,
        server,
        ask,
        ticks: Cell::new(0),
        start: RefCell::new(start_of(plan.kind)),
        known: RefCell::default(),
        history: RefCell::default(),
        broken: RefCell::default(),
    });
    let ran = world.run();
    let mut history = world.history.take();
    history.start = world.start.take();
    if plan.kind != Kind::All {
        history.start.asked = Some(Arc::new(world.known.take().names));
    }
    if let Some(reason) = world.broken.take() {
        return Err(failed(reason, history));
    }
    match ran {
        Ok(steps) => {
            history.steps = steps;
            match world.server.audit() {
                Ok(()) => Ok(history),
                Err(difference) => Err(failed(difference, history)),
            }
        }
        Err(Stuck { tasks, steps }) => {
            let reason = format!("{tasks} clients still wait after {steps} steps");
            Err(failed(reason, history))
        }
    }
}

impl<'a> World<'a> {
    fn run(self: &Rc<Self>) -> Result<usize, Stuck> {
        let starts = Starts::default();
        let step = |most: usize| self.server.step(most);
        let prelude = Box::pin(Rc::clone(self).prelude(starts.clone())) as Task<'a>;
        schedule::run(vec![prelude], &starts, Order::Plain, step)?;
        let clients = (SOLO + 1..=SOLO + self.plan.clients).map(|client| {
            let task = Rc::clone(self).client(client, self.plan.operations, starts.clone());
            Box::pin(task) as Task<'a>
        });
        schedule::run(clients.collect(), &starts, self.plan.order, step)
    }

    /// Runs the prelude, with one client.
    async fn prelude(self: Rc<Self>, starts: Starts<'a>) {
        let operations = self.plan.prelude();
        match self.plan.kind {
            Kind::All => {
                let told = self.prelude_of_all().await;
                self.note(told);
            }
            Kind::Blob | Kind::Listing | Kind::Lake => {
                let told = self.ask(&program::create_container()).await;
                self.note(told.map(drop));
                self.client(SOLO, operations, starts).await;
            }
            Kind::Entity => {
                let told = self.ask(&program::create_table()).await;
                self.note(told.map(drop));
                self.client(SOLO, operations, starts).await;
            }
            Kind::Container | Kind::Queue => self.client(SOLO, operations, starts).await,
        }
    }

    /// Runs operations in sequence; the model checks each one immediately.
    async fn prelude_of_all(&self) -> Result<(), String> {
        for index in (0..self.plan.prelude()).filter(|index| self.plan.keeps(SOLO, *index)) {
            let mut random = self.random(SOLO, index);
            let operation = any(&self.start.borrow().model, &mut random);
            let answered = self.ask(&operation).await?;
            let start = &mut *self.start.borrow_mut();
            let expected = start.model.step(&operation);
            check(&expected, &answered, &mut start.names)?;
            self.history.borrow_mut().before += answered.transcript();
        }
        Ok(())
    }

    async fn client(self: Rc<Self>, client: usize, operations: usize, starts: Starts<'a>) {
        for index in 0..operations {
            if !self.plan.keeps(client, index) {
                continue;
            }
            let mut random = self.random(client, index);
            let is_lost = client != SOLO && random.next_u32() % 100 < LOST_PERCENT;
            let operation = self.next(index, client, &mut random);
            let place = self.call(client, operation.clone());
            if is_lost {
                // A client that does not see the answer does not know when it arrived.
                let is_given_up = random.next_u32() % 100 < GIVEN_UP_PERCENT;
                let polls = is_given_up.then(|| 1 + random.next_u32() % POLLS_MAX);
                starts.start(Box::pin(Rc::clone(&self).lost(operation, polls)));
                pause().await;
                continue;
            }
            let told = self.ask(&operation).await;
            let told = told.and_then(|answered| self.answer(place, answered));
            self.note(told);
            pause().await;
        }
    }

    /// Runs a call whose answer is ignored, and drops it after `polls` polls.
    async fn lost(self: Rc<Self>, operation: Operation, polls: Option<u32>) {
        let mut asked = Box::pin(self.ask(&operation));
        let mut left = polls;
        std::future::poll_fn(|context| {
            if left == Some(0) {
                return std::task::Poll::Ready(());
            }
            left = left.map(|left| left - 1);
            asked.as_mut().poll(context).map(drop)
        })
        .await;
    }

    /// Returns the random numbers of one operation, which do not change when another operation is
    /// left out.
    fn random(&self, client: usize, index: usize) -> ChaCha8Rng {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.plan.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&(client as u64).to_le_bytes());
        seed[16..24].copy_from_slice(&(index as u64).to_le_bytes());
        ChaCha8Rng::from_seed(seed)
    }

    fn next(&self, index: usize, client: usize, random: &mut ChaCha8Rng) -> Operation {
        if self.plan.kind == Kind::All {
            // Clients choose operations for the state after the prelude.
            return any(&self.start.borrow().model, random);
        }
        let known = self.known.borrow();
        let is_first = client == SOLO && index == 0;
        let mut draw = Draw {
            random,
            known: &known,
        };
        match self.plan.kind {
            Kind::Container if is_first => program::create_container(),
            Kind::Queue if is_first => program::create_queue(),
            Kind::Blob => program::blob(&mut draw, &program::BLOBS[..self.plan.partitions()]),
            Kind::Container => program::container(&mut draw),
            Kind::Listing => program::listing(&mut draw),
            Kind::Lake => program::lake(&mut draw),
            Kind::Entity => {
                program::entity(&mut draw, &program::PARTITIONS[..self.plan.partitions()])
            }
            Kind::Queue | Kind::All => program::queue(&mut draw),
        }
    }

    fn tick(&self) -> u64 {
        self.ticks.set(self.ticks.get() + 1);
        self.ticks.get()
    }

    async fn ask(&self, operation: &Operation) -> Result<Answered, String> {
        let names = match self.plan.kind {
            Kind::All => self.start.borrow().names.clone(),
            _ => self.known.borrow().names.clone(),
        };
        (self.ask)(&self.server, operation, &names).await
    }

    /// Records a call and returns its index.
    fn call(&self, client: usize, operation: Operation) -> usize {
        let called = self.tick();
        let history = &mut *self.history.borrow_mut();
        history.calls.push(Call {
            client,
            operation,
            called,
            returned: None,
        });
        history.calls.len() - 1
    }

    /// Records an answer.
    fn answer(&self, place: usize, answered: Answered) -> Result<(), String> {
        let returned = self.tick();
        let history = &mut *self.history.borrow_mut();
        if self.plan.kind != Kind::All {
            let known = &mut *self.known.borrow_mut();
            known.learn(&history.calls[place].operation, &answered)?;
        }
        history.calls[place].returned = Some((returned, answered));
        Ok(())
    }

    fn note(&self, told: Result<(), String>) {
        if let Err(reason) = told {
            self.broken.borrow_mut().get_or_insert(reason);
        }
    }
}

/// Returns the initial state of bursts of this kind; the prelude creates the rest.
pub fn start_of(kind: Kind) -> State {
    let mut start = State::default();
    if kind == Kind::Lake {
        start.model = Model::hierarchical(START_S);
    }
    match kind {
        Kind::Blob | Kind::Listing | Kind::Lake => {
            drop(start.model.step(&program::create_container()));
        }
        Kind::Entity => drop(start.model.step(&program::create_table())),
        Kind::Container | Kind::Queue | Kind::All => {}
    }
    start
}

/// Returns any operation that could succeed in this state.
pub fn any(model: &Model, random: &mut ChaCha8Rng) -> Operation {
    let mut dice = [0; DICE];
    random.fill_bytes(&mut dice);
    let mut operation = choose(model, Space::BURST, &dice);
    if let Operation::Container(_, ContainerOperation::List { page, .. }) = &mut operation {
        *page = ONE_PAGE;
    }
    operation
}
