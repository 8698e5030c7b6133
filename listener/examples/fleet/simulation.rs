//! A fleet of listeners on tokio's paused clock, and what it costs: an idle time, a steady load and
//! a burst, one after the other.
//!
//! Each process has its own listeners, request limit, relay and subscription, as separate processes
//! have. The service takes 10 ms for a request, and at most [`QUEUE_RATE`] a second for a queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use smalt_listener::config::Encoding;
use smalt_listener::config::file::TRIGGER_EVERY;
use smalt_listener::config::profile::Profile;
use smalt_listener::handler::{Handler, Message, Verdict, function};
use smalt_listener::notify::{Destination, Relay, Subscription, Topic, When};
use smalt_listener::payload::{SendOptions, Sender};
use smalt_listener::rules::cost::{Polling, Push, sentinel_requests};
use smalt_listener::{
    ACCOUNT_RATE_PER_S, AccountLimit, ListenerConfig, QueueListener, SentinelConfig,
};
use smalt_sleeve::port::{ErrorKind, Storage};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::support::{FakeStorage, Op};

/// Time of a request, an assumption.
const CALL: Duration = Duration::from_millis(10);
/// Time of a handler.
const WORK: Duration = Duration::from_millis(200);
/// The processes start, and later fall asleep, within this time.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const SETTLES_WITHIN: Duration = Duration::from_secs(600);
/// The watchdog's interval where events wake the listeners.
const WATCHDOG: Duration = Duration::from_secs(600);
/// A listener polls if it sent a get within this time.
const POLLS_WITHIN: Duration = Duration::from_secs(60);
/// Requests that the sender makes at once, and its pause after a 503, which doubles.
const SENDS_AT_ONCE: usize = 64;
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// A load that takes longer is an error.
const LOAD_ENDS_WITHIN: Duration = Duration::from_secs(7_200);
const TOPIC: &str = "events";
const HOUR_S: f64 = 3_600.0;

/// How an idle fleet learns of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Each listener polls with the default settings, every 30 s at last.
    Poll,
    /// Each listener polls every second at last.
    PollFast,
    /// The holder of a lease polls every second for all.
    Sentinel,
    /// Each process reads events from a queue of its own every second.
    Topic,
    /// Each process gets events at its address.
    Webhook,
}

impl Mode {
    /// Returns the settings of a listener.
    pub(crate) fn config(self, queue: &str) -> ListenerConfig {
        match self {
            Mode::Poll => ListenerConfig::new(queue),
            Mode::PollFast => Profile::LowLatency.config(queue),
            Mode::Sentinel => ListenerConfig {
                sentinel: Some(SentinelConfig::default()),
                ..Profile::LowLatency.config(queue)
            },
            Mode::Topic | Mode::Webhook => ListenerConfig {
                idle_tasks: 0,
                watchdog: WATCHDOG,
                ..ListenerConfig::new(queue)
            },
        }
    }

    /// Returns the requests of an idle hour by the formulas of `smalt-listener cost`.
    pub(crate) fn idle_requests(self, plan: &Plan) -> f64 {
        let config = self.config("queue");
        let (processes, queues) = (plan.listeners as f64, plan.queues as f64);
        let interval_s = config.idle.max.as_secs_f64();
        let push = |every_s| Push {
            processes: processes * queues,
            every_s,
            watchdog_s: config.watchdog.as_secs_f64(),
        };
        match (self, &config.sentinel) {
            (Mode::Sentinel, Some(sentinel)) => {
                let lease_s = sentinel.lease.as_secs_f64();
                queues * sentinel_requests(interval_s, processes, lease_s, 1.0)
            }
            (Mode::Topic, _) => {
                // A process has one subscription for all its queues.
                let looks = processes * HOUR_S / TRIGGER_EVERY.as_secs_f64();
                push(None).requests(0.0, 1.0) + looks
            }
            (Mode::Webhook, _) => push(None).requests(0.0, 1.0),
            _ => {
                let polling = Polling {
                    tasks: processes * queues,
                    interval_s,
                    requests_per_poll: 1.0,
                };
                polling.requests(1.0)
            }
        }
    }
}

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Processes, each with one listener for each queue.
    pub(crate) listeners: u64,
    /// Queues that share the messages.
    pub(crate) queues: u64,
    /// Length of the idle time that is measured.
    pub(crate) idle: Duration,
    /// Messages a second, and for how long.
    pub(crate) steady: (u64, Duration),
    /// Messages that are sent at once.
    pub(crate) burst: u64,
}

/// What one phase took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    /// Messages that were sent.
    pub(crate) messages: u64,
    /// All requests, refused ones and those of the sender included.
    pub(crate) requests: u64,
    /// Requests that the service refused with 503.
    pub(crate) busy: u64,
    /// Requests for the sentinels' leases, and those that found the lease taken.
    pub(crate) leases: (u64, u64),
    /// Listeners that polled in its last minute.
    pub(crate) pollers: usize,
    /// Time until the last message was deleted.
    pub(crate) took: Duration,
    /// Times from the acknowledged put to the start of the handler, in ascending order.
    pub(crate) waits: Vec<Duration>,
    /// Handlers that started beyond one for each message.
    pub(crate) repeated: u64,
}

impl Phase {
    /// Returns the wait that this share of the messages does not exceed.
    pub(crate) fn wait(&self, share: f64) -> Duration {
        let at = (self.waits.len() as f64 * share) as usize;
        let last = self.waits.len().saturating_sub(1);
        self.waits.get(at.min(last)).copied().unwrap_or_default()
    }

    /// Returns the requests of an hour at its rate.
    pub(crate) fn requests_per_hour(&self) -> f64 {
        self.requests as f64 * HOUR_S / self.took.as_secs_f64()
    }
}

/// The phases of one fleet.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) idle: Phase,
    pub(crate) steady: Phase,
    pub(crate) burst: Phase,
}

/// When each message was acknowledged, and when its handlers started.
#[derive(Default)]
struct Book(Mutex<Vec<(Option<Instant>, Vec<Instant>)>>);

impl Book {
    fn rows(&self) -> MutexGuard<'_, Vec<(Option<Instant>, Vec<Instant>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds unsent messages; returns the number of the first.
    fn open(&self, messages: u64) -> usize {
        let mut rows = self.rows();
        let first = rows.len();
        rows.extend((0..messages).map(|_| (None, Vec::new())));
        first
    }

    fn handling(&self, body: &[u8]) {
        let number: Option<usize> = std::str::from_utf8(body).ok().and_then(|b| b.parse().ok());
        let mut rows = self.rows();
        if let Some((_, started)) = number.and_then(|number| rows.get_mut(number)) {
            started.push(Instant::now());
        }
    }
}

/// The processes, their account and their sender.
struct Fleet {
    storage: Arc<FakeStorage>,
    queues: Vec<String>,
    senders: Vec<Arc<Sender>>,
    book: Arc<Book>,
    /// Stops with the fleet.
    crew: JoinSet<()>,
}

impl Fleet {
    fn new(mode: Mode, plan: &Plan) -> anyhow::Result<Self> {
        let queues: Vec<String> = (0..plan.queues).map(|n| format!("orders-{n:02}")).collect();
        let names: Vec<&str> = queues.iter().map(String::as_str).collect();
        let mut fleet = Fleet {
            storage: Arc::new(FakeStorage::rated(&names, CALL)),
            senders: Vec::new(),
            book: Arc::default(),
            crew: JoinSet::new(),
            queues,
        };
        let mut relays = Vec::new();
        for number in 0..plan.listeners {
            let starts_in = STARTS_WITHIN.mul_f64(number as f64 / plan.listeners as f64);
            relays.push(fleet.process(mode, number, starts_in)?);
        }
        let to = match mode {
            Mode::Topic => vec![Arc::new(Topic::new(fleet.port(), TOPIC)?) as Arc<dyn Destination>],
            Mode::Webhook => {
                let relays = relays.into_iter();
                relays.map(|relay| Arc::new(relay) as _).collect()
            }
            Mode::Poll | Mode::PollFast | Mode::Sentinel => Vec::new(),
        };
        for queue in &fleet.queues {
            let sender = Sender::new(fleet.port(), queue, Encoding::Text, None, 1)?;
            let sender = sender.notifying(to.clone(), When::First);
            fleet.senders.push(Arc::new(sender));
        }
        Ok(fleet)
    }

    fn port(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.storage) as Arc<dyn Storage>
    }

    /// Adds a process that starts later. Returns what wakes its listeners.
    fn process(&mut self, mode: Mode, number: u64, starts_in: Duration) -> anyhow::Result<Relay> {
        let relay = Relay::new(self.storage.account());
        let account = AccountLimit::new(ACCOUNT_RATE_PER_S);
        let worker = format!("w{number}");
        let book = Arc::clone(&self.book);
        let handler = function(move |message: Message, _| {
            book.handling(&message.body);
            async {
                sleep(WORK).await;
                Verdict::Ok
            }
        });
        let handler: Arc<dyn Handler> = Arc::new(handler);
        for queue in self.queues.clone() {
            let config = ListenerConfig {
                worker: worker.clone(),
                ..mode.config(&queue)
            };
            let listener = QueueListener::new(config, self.port(), Arc::clone(&handler), number)?;
            let listener = listener.within(account.clone());
            relay.add(None, listener.waker());
            self.crew.spawn(async move {
                sleep(starts_in).await;
                drop(listener.run_until(std::future::pending()).await);
            });
        }
        if mode == Mode::Topic {
            let who = (worker.as_str(), number);
            let subscription =
                Subscription::new(self.port(), TOPIC, who, TRIGGER_EVERY, relay.clone())?;
            let subscription = subscription.within(account);
            self.crew.spawn(async move {
                sleep(starts_in).await;
                subscription.watch().await;
            });
        }
        Ok(relay)
    }

    /// Sends the messages evenly over a time, waits for it and for the last delete, and measures.
    async fn phase(&self, messages: u64, over: Duration) -> anyhow::Result<Phase> {
        let before = self.totals();
        let begun = Instant::now();
        let first = self.book.open(messages);
        let sends = self.send(first, messages, over);
        tokio::time::timeout(LOAD_ENDS_WITHIN, sends).await?;
        sleep_until(begun + over).await;
        while !self.is_empty() {
            let late = begun.elapsed() > over + LOAD_ENDS_WITHIN;
            ensure!(!late, "the queue is not empty after {LOAD_ENDS_WITHIN:?}");
            sleep(CALL).await;
        }
        let after = self.totals();
        let rows = self.book.rows();
        let mut waits = Vec::new();
        let mut runs = 0;
        for (number, (acknowledged, started)) in rows.iter().enumerate().skip(first) {
            let began = started
                .first()
                .with_context(|| format!("{number} was lost"))?;
            let acknowledged = acknowledged.with_context(|| format!("{number} was not sent"))?;
            // A handler may start before the sender learns of its put.
            waits.push(began.saturating_duration_since(acknowledged));
            runs += started.len() as u64;
        }
        waits.sort_unstable();
        Ok(Phase {
            messages,
            requests: after.requests - before.requests,
            busy: after.busy - before.busy,
            leases: (after.leases - before.leases, after.taken - before.taken),
            pollers: (self.storage)
                .getters_since(Instant::now() - POLLS_WITHIN)
                .len(),
            took: begun.elapsed(),
            waits,
            repeated: runs - messages,
        })
    }

    /// Sends messages to the queues in turn.
    async fn send(&self, first: usize, messages: u64, over: Duration) {
        let at_once = Arc::new(Semaphore::new(SENDS_AT_ONCE));
        let begun = Instant::now();
        let mut sends = JoinSet::new();
        for offset in 0..messages {
            let number = first + offset as usize;
            let sender = Arc::clone(&self.senders[number % self.senders.len()]);
            let (book, at_once) = (Arc::clone(&self.book), Arc::clone(&at_once));
            let due = begun + over.mul_f64(offset as f64 / messages as f64);
            sends.spawn(async move {
                sleep_until(due).await;
                let _turn = at_once.acquire_owned().await;
                let mut pause = PAUSE;
                // A put fails only with 503 here, and this service has not carried it out.
                while sender
                    .send(number.to_string().as_bytes(), SendOptions::default())
                    .await
                    .is_err()
                {
                    sleep(pause).await;
                    pause = PAUSE_MAX.min(pause * 2);
                }
                book.rows()[number].0 = Some(Instant::now());
            });
        }
        while sends.join_next().await.is_some() {}
    }

    fn is_empty(&self) -> bool {
        self.queues
            .iter()
            .all(|q| self.storage.stored(q).is_empty())
    }

    fn totals(&self) -> Totals {
        let requests = self.storage.counts();
        let taken = self.storage.refused(ErrorKind::LeaseTaken);
        Totals {
            requests: requests.values().sum(),
            busy: self.storage.refused(ErrorKind::Busy).values().sum(),
            leases: requests.get(&Op::Lease).copied().unwrap_or(0),
            taken: taken.get(&Op::Lease).copied().unwrap_or(0),
        }
    }
}

/// Counts since the fleet began.
struct Totals {
    requests: u64,
    busy: u64,
    leases: u64,
    taken: u64,
}

/// Runs a fleet through its phases.
pub(crate) async fn measure(mode: Mode, plan: &Plan) -> anyhow::Result<Measured> {
    let fleet = Fleet::new(mode, plan)?;
    sleep(STARTS_WITHIN + SETTLES_WITHIN).await;
    let idle = fleet.phase(0, plan.idle).await?;
    let (per_s, over) = plan.steady;
    let steady = fleet.phase(per_s * over.as_secs(), over).await?;
    sleep(SETTLES_WITHIN).await;
    let burst = fleet.phase(plan.burst, Duration::ZERO).await?;
    ensure!(!fleet.crew.is_empty(), "every listener has ended");
    Ok(Measured {
        idle,
        steady,
        burst,
    })
}
