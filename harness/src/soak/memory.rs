//! Runs all clients on one thread, with the same schedules as bursts, on a clock that one task
//! advances.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Method;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;
use smalt::Config;
use smalt_protocol::Service;

use super::events::{DRAIN, Event};
use super::worker::{Log, QUEUE, Transport, Worker};
use crate::bursts::schedule::{self, Order, Starts, Stuck, Task, pause};
use crate::histories::render::{Credential, Request};
use crate::histories::server::{START_S, Server};
use crate::wire::Answer;

/// Calls per second of the clock: few enough that visibility timeouts of one second expire during
/// use.
const CALLS_PER_SECOND: u64 = 40;
/// Seconds after which every message is visible again.
const EVERYTHING_VISIBLE_S: u64 = 3_600;
/// Most steps of a call, so that a schedule without progress ends.
const STEPS_PER_CALL: usize = 1_000;

/// A client of the server in this process.
#[derive(Clone)]
struct Local {
    server: Arc<Server>,
    now_s: Arc<AtomicU64>,
}

impl Transport for Local {
    async fn send(&mut self, method: Method, path: &str, body: String) -> Result<Answer, String> {
        let request = Request {
            service: Service::Queue,
            credential: Credential::Account,
            method,
            path: format!("{QUEUE}{path}"),
            headers: Vec::new(),
            body: body.into_bytes(),
        };
        self.server.send(&request).await
    }

    fn now_ms(&self) -> u64 {
        self.now_s.load(Ordering::SeqCst) * 1_000
    }
}

/// One run.
struct Run {
    local: Local,
    log: Log,
    seed: u64,
    calls: u64,
    /// The first error.
    told: RefCell<Result<(), String>>,
}

/// Runs the calls of all clients, and fetches what is left. `shuffled` returns messages that become
/// visible at the same time in random order.
///
/// # Errors
/// When a call has no answer, or nothing makes progress.
pub fn run(seed: u64, calls: u64, clients: usize, shuffled: bool) -> Result<Vec<Event>, String> {
    let config = Config {
        shuffle_messages: shuffled,
        ..Config::default()
    };
    let run = Run {
        local: Local {
            server: Arc::new(Server::stepped_as(Server::access(), config)?),
            now_s: Arc::new(AtomicU64::new(START_S)),
        },
        log: Log::default(),
        seed,
        calls,
        told: RefCell::new(Ok(())),
    };
    run.go(vec![Box::pin(run.create())], Order::Plain)?;
    let clients = (0..clients).map(|client| Box::pin(run.client(client)) as Task<'_>);
    let clock = Box::pin(run.clock()) as Task<'_>;
    run.go(clients.chain([clock]).collect(), Order::Seeded(seed))?;
    run.set_time(run.local.now_s.load(Ordering::SeqCst) + EVERYTHING_VISIBLE_S);
    run.go(vec![Box::pin(run.drain())], Order::Plain)?;
    run.told.replace(Ok(()))?;
    Ok(run.log.into_events())
}

impl Run {
    fn go<'a>(&'a self, tasks: Vec<Task<'a>>, order: Order) -> Result<(), String> {
        let calls = usize::try_from(self.calls).unwrap_or(usize::MAX);
        let steps_max = calls.saturating_add(1).saturating_mul(STEPS_PER_CALL);
        let step = |most: usize| self.local.server.step(most);
        let ran = schedule::run_within(steps_max, tasks, &Starts::default(), order, step);
        let stuck = |Stuck { tasks, steps }| format!("{tasks} clients wait after {steps} steps");
        ran.map(drop).map_err(stuck)
    }

    /// Records an error. Returns `false` if there is one.
    fn tell<T>(&self, result: Result<T, String>) -> bool {
        let told = &mut *self.told.borrow_mut();
        if let (Err(reason), Ok(())) = (result, &*told) {
            *told = Err(reason);
        }
        told.is_ok()
    }

    fn is_going_on(&self) -> bool {
        self.log.calls() < self.calls && self.told.borrow().is_ok()
    }

    fn worker(&self, client: usize) -> Worker<'_, Local> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(client as u64);
        Worker::new(client, self.local.clone(), random, &self.log)
    }

    fn set_time(&self, now_s: u64) {
        self.local.now_s.store(now_s, Ordering::SeqCst);
        self.local.server.set_time(now_s);
    }

    async fn create(&self) {
        let mut local = self.local.clone();
        self.tell(local.send(Method::PUT, "", String::new()).await);
    }

    async fn client(&self, client: usize) {
        let mut worker = self.worker(client);
        while self.is_going_on() && self.tell(worker.act().await) {
            pause().await;
        }
    }

    async fn clock(&self) {
        while self.is_going_on() {
            self.set_time(START_S + self.log.calls() / CALLS_PER_SECOND);
            pause().await;
        }
    }

    async fn drain(&self) {
        self.tell(self.worker(DRAIN).drain().await);
    }
}
