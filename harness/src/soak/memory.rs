//! All clients on one thread: the same schedules as bursts have, on a clock that one task moves.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Method;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;
use smalt_protocol::Service;

use super::events::{DRAIN, Event};
use super::worker::{Log, QUEUE, Transport, Worker};
use crate::bursts::schedule::{self, Order, Starts, Stuck, Task, pause};
use crate::histories::render::Request;
use crate::histories::server::{Answer, START_S, Server};

/// Calls between two seconds: visibility of one second lapses while messages are in hands.
const CALLS_PER_SECOND: u64 = 40;
/// After so much time everything is visible again, in seconds.
const EVERYTHING_VISIBLE_S: u64 = 3_600;
/// Steps that a call takes at most, so that a schedule that stands still ends.
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

/// Runs so many calls of so many clients, and fetches what is left.
///
/// # Errors
/// When a call has no answer, or nothing goes on.
pub fn run(seed: u64, calls: u64, clients: usize) -> Result<Vec<Event>, String> {
    let server = Arc::new(Server::stepped(Server::access())?);
    let mut local = Local {
        server: Arc::clone(&server),
        now_s: Arc::new(AtomicU64::new(START_S)),
    };
    let log = Log::default();
    let told = Rc::new(std::cell::RefCell::new(Ok(())));
    let tell = |result: Result<(), String>| {
        if result.is_err() {
            *told.borrow_mut() = result;
        }
    };
    let steps_max = usize::try_from(calls)
        .unwrap_or(usize::MAX)
        .saturating_mul(STEPS_PER_CALL);
    let go = |tasks: Vec<Task<'_>>, order| {
        let step = |most: usize| server.step(most);
        schedule::run_within(
            steps_max.max(STEPS_PER_CALL),
            tasks,
            &Starts::default(),
            order,
            step,
        )
        .map_err(|Stuck { tasks, steps }| format!("{tasks} clients wait after {steps} steps"))
    };
    let mut first = local.clone();
    let create = Box::pin(async {
        let made = first.send(Method::PUT, "", String::new()).await;
        tell(made.map(drop));
    }) as Task<'_>;
    go(vec![create], Order::Plain)?;
    let worker = |client: usize| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(client as u64);
        Worker::new(client, local.clone(), random, &log)
    };
    let client = |client: usize| {
        let mut worker = worker(client);
        let (log, tell) = (&log, &tell);
        Box::pin(async move {
            while log.calls() < calls {
                let told = worker.act().await;
                let is_broken = told.is_err();
                tell(told);
                if is_broken {
                    return;
                }
                pause().await;
            }
        }) as Task<'_>
    };
    let clock = Box::pin(async {
        while log.calls() < calls && told.borrow().is_ok() {
            local
                .now_s
                .store(START_S + log.calls() / CALLS_PER_SECOND, Ordering::SeqCst);
            server.set_time(local.now_s.load(Ordering::SeqCst));
            pause().await;
        }
    }) as Task<'_>;
    let tasks = (0..clients).map(client).chain([clock]);
    go(tasks.collect(), Order::Seeded(seed))?;
    local
        .now_s
        .fetch_add(EVERYTHING_VISIBLE_S, Ordering::SeqCst);
    server.set_time(local.now_s.load(Ordering::SeqCst));
    let mut last = worker(DRAIN);
    let drain = Box::pin(async { tell(last.drain().await) }) as Task<'_>;
    go(vec![drain], Order::Plain)?;
    let _ = &mut local;
    told.replace(Ok(()))?;
    Ok(log.into_events())
}
