//! Runs each client on its own thread and connection, over loopback HTTP. The emulator is in this
//! process, on a clock that is faster than real time, so that visibility timeouts often expire.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;
use smalt::{Clock, Emulator};
use smalt_protocol::Timestamp;

use super::events::{DRAIN, Event};
use super::worker::{Log, QUEUE, Transport, Worker};
use crate::histories::server::{START_S, Server};
use crate::testing::Served;
use crate::wire::Answer;
use crate::wire::access::Access;
use crate::wire::connection::Connection;

/// Real time in which the clock advances by a second.
const SECOND: Duration = Duration::from_millis(100);
/// Seconds after which every message is visible again.
const EVERYTHING_VISIBLE_S: u64 = 3_600;
/// Time that a run may take beyond its limit.
const PATIENCE: Duration = Duration::from_secs(120);

/// When a run ends: after this many calls or this much time, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// Number of calls.
    pub calls: u64,
    /// Real time.
    pub time: Duration,
}

struct Remote {
    connection: Connection,
    access: Arc<Access>,
    clock: Clock,
}

impl Transport for Remote {
    async fn send(&mut self, method: Method, path: &str, body: String) -> Result<Answer, String> {
        let path = self.access.path(&format!("{QUEUE}{path}"));
        let version = [("x-ms-version", "2021-12-02")];
        let sent = self.connection.send(method, &path, &version, body).await;
        sent.map_err(|error| error.to_string())
    }

    fn now_ms(&self) -> u64 {
        let ticks_per_ms = 10_000;
        let now = self.clock.now();
        now.unix_s() * 1_000 + now.ticks() / ticks_per_ms % 1_000
    }
}

/// The server to which the clients connect.
struct Target {
    address: SocketAddr,
    access: Arc<Access>,
    clock: Clock,
}

impl Target {
    async fn connect(&self) -> Result<Remote, String> {
        let connection = Connection::open(self.address).await;
        Ok(Remote {
            connection: connection.map_err(|error| error.to_string())?,
            access: Arc::clone(&self.access),
            clock: self.clock.clone(),
        })
    }
}

/// Runs the clients, and fetches what is left. With a directory, the state is on disk there and
/// every answer waits for it.
pub fn run(
    seed: u64,
    until: Until,
    clients: usize,
    durable: Option<&Path>,
) -> Result<Vec<Event>, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(clients.max(1))
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let events = runtime.block_on(serve(seed, until, clients, durable));
    runtime.shutdown_background();
    events
}

async fn serve(
    seed: u64,
    until: Until,
    clients: usize,
    durable: Option<&Path>,
) -> Result<Vec<Event>, String> {
    let clock = Clock::manual(Timestamp::from_unix_s(START_S));
    let builder = Emulator::builder().clock(clock.clone()).seed(seed);
    let builder = match durable {
        Some(dir) => builder.durable(dir),
        None => builder,
    };
    let emulator = builder.open().map_err(|error| error.to_string())?;
    let served = Served::of(&emulator).await;
    let served = served.map_err(|error| error.to_string())?;
    let target = Target {
        address: served.addresses()[1],
        access: Arc::new(Server::access()),
        clock: clock.clone(),
    };
    let worked = tokio::time::timeout(until.time + PATIENCE, work(seed, until, clients, &target));
    worked
        .await
        .map_err(|_| "the clients did not end".to_owned())?
}

async fn work(
    seed: u64,
    until: Until,
    clients: usize,
    target: &Target,
) -> Result<Vec<Event>, String> {
    let made = target
        .connect()
        .await?
        .send(Method::PUT, "", String::new())
        .await?;
    if made.status != 201 {
        return Err(format!("Create Queue: {}", made.summary()));
    }
    // The tasks of the clients share it for as long as the longest of them lives.
    let log: Arc<Log> = Arc::default();
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for client in 0..clients {
        let transport = target.connect().await?;
        let (log, over) = (Arc::clone(&log), Arc::clone(&over));
        let random = random(seed, client);
        tasks.spawn(async move {
            let mut worker = Worker::new(client, transport, random, &log);
            while log.calls() < until.calls && !over.load(Ordering::Relaxed) {
                worker.act().await?;
            }
            Ok::<_, String>(())
        });
    }
    let clock = target.clock.clone();
    let ticking = tokio::spawn(async move {
        let mut second = tokio::time::interval(SECOND);
        loop {
            second.tick().await;
            clock.advance(Duration::from_secs(1));
        }
    });
    let alarm = Arc::clone(&over);
    let timing = tokio::spawn(async move {
        tokio::time::sleep(until.time).await;
        alarm.store(true, Ordering::Relaxed);
    });
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    ticking.abort();
    timing.abort();
    target
        .clock
        .advance(Duration::from_secs(EVERYTHING_VISIBLE_S));
    let mut last = Worker::new(DRAIN, target.connect().await?, random(seed, DRAIN), &log);
    last.drain().await?;
    drop(last);
    let log = Arc::into_inner(log).ok_or("a client is still running")?;
    Ok(log.into_events())
}

fn random(seed: u64, client: usize) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(client as u64);
    random
}
