//! The command `harness pools`: what the scaling rules cost and how long messages wait, side by
//! side on the same load.
//!
//! One listener at a time works a queue of an emulator in process off, on a virtual clock: a burst,
//! a constant rate, a trickle, an idle hour. Everything is counted at the service: a transaction is
//! a request that reached it, a wait the time from a message's put to the get that handed it out.
//! The same seed gives the same figures. Not modelled: a service that throttles, and time that
//! anything but handlers and the way to the service takes.

pub mod article;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use smalt_listener::config::profile::Profile;
use smalt_listener::config::{Idle, Policy, Tasks};
use smalt_listener::handler::{Verdict, function};
use smalt_listener::{ListenerConfig, QueueListener};
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{CallContext, MessageTtl, Storage};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::article::Article;
use crate::scenario::actor::Actor;
use crate::scenario::history::{Answer, Event, Happening, element, elements};
use crate::scenario::world::{self, Which, World};

/// The queue.
const QUEUE: &str = "orders";
/// Name of what is measured, in the history: no worker of a scenario, which may send only so much.
const MEASURED: &str = "stranger";
/// It is idle for so long before the load begins.
const REST: Duration = Duration::from_secs(30);
/// Each way to the service takes so long.
const LAG: Duration = Duration::from_millis(5);

/// Options of `harness pools`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Seed of service and listener.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON in place of the table.
    #[arg(long)]
    json: bool,
}

/// One part of the load: messages, then rest until its end.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// Messages.
    pub messages: u32,
    /// Time between two of them.
    pub every: Duration,
    /// Its whole length.
    pub length: Duration,
}

/// The load that the command measures: the one of the design's paper model, then an idle hour.
pub const LOAD: [Phase; 4] = [
    phase("burst of 5,000", 5_000, 0, 120),
    phase("20/s for 2 min", 2_400, 50, 150),
    phase("1 in 10 s for 10 min", 60, 10_000, 630),
    phase("idle hour", 0, 0, 3_600),
];

const fn phase(name: &'static str, messages: u32, every_ms: u64, length_s: u64) -> Phase {
    Phase {
        name,
        messages,
        every: Duration::from_millis(every_ms),
        length: Duration::from_secs(length_s),
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The article's listener as written.
    Article,
    /// Our listener with this policy, and the article's longest idle interval of a second.
    Policy(Policy),
    /// Our listener with a profile, and nothing set besides.
    Profile(Profile),
}

/// All of them. The profile `seed` is the policy with the article's interval, under its own name.
pub const RULES: [Rule; 9] = [
    Rule::Article,
    Rule::Policy(Policy::Seed),
    Rule::Policy(Policy::Little),
    Rule::Policy(Policy::Aimd),
    Rule::Policy(Policy::Fixed),
    Rule::Profile(Profile::Default),
    Rule::Profile(Profile::LowLatency),
    Rule::Profile(Profile::Throughput),
    Rule::Profile(Profile::Frugal),
];

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Rule::Article => "article",
            Rule::Profile(Profile::Default) => "defaults",
            Rule::Profile(profile) => profile.name(),
            Rule::Policy(Policy::Little) => "little",
            Rule::Policy(Policy::Seed) => "seed",
            Rule::Policy(Policy::Fixed) => "fixed",
            Rule::Policy(Policy::Aimd) => "aimd",
        }
    }
}

/// How hard the load is to bear.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Time that a handler takes.
    pub work: Duration,
    /// Most tasks of our listener; the article's rule has its own number.
    pub tasks_max: u32,
    /// Requests per second that our listener allows itself (the article's limit of a queue).
    pub rate_per_s: u32,
}

/// The setting of the command.
pub const SETTING: Setting = Setting {
    work: Duration::from_millis(200),
    tasks_max: 100,
    rate_per_s: 500,
};

/// What one rule came to in one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The phase.
    pub phase: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// Requests that reached the service.
    pub transactions: usize,
    /// Gets without a message among them.
    pub empty_gets: usize,
    /// Most requests within a second.
    pub peak_per_s: usize,
    /// Tasks started.
    pub tasks_started: u64,
    /// Messages handed out.
    pub messages: usize,
    /// Half of the messages waited no longer than this, in milliseconds.
    pub wait_p50_ms: u64,
    /// All but one in a hundred waited no longer.
    pub wait_p99_ms: u64,
}

/// Carries the command out.
///
/// # Errors
/// In words, when a run does not work.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    for rule in RULES {
        let measured = measure(rule, &LOAD, SETTING, options.seed);
        rows.extend(measured.map_err(anyhow::Error::msg)?);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows, &LOAD));
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures one rule over a load: a row for each phase.
///
/// # Errors
/// In words, when the run does not work, or when messages are left in the end.
pub fn measure(
    rule: Rule,
    load: &[Phase],
    setting: Setting,
    seed: u64,
) -> Result<Vec<Row>, String> {
    world::in_virtual_time(async {
        let world = World::in_process(seed)?;
        let owner = world.storage(Which::Main, &Actor::owner(), seed, None)?;
        let cx = CallContext::default();
        let made = owner.create_queue(&cx, QUEUE).await;
        made.map_err(|error| error.to_string())?;
        let actor = Actor::stranger();
        let storage = world.storage_afar(Which::Main, &actor, seed, None, LAG)?;
        let pool = Running::start(rule, storage, setting, seed)?;
        tokio::time::sleep(REST).await;
        let mut ends = Vec::new();
        let begun = (world.wire.events(), pool.tasks_started());
        for phase in load {
            put(&owner, phase).await?;
            ends.push((world.wire.events(), pool.tasks_started()));
        }
        pool.stop().await?;
        let left = owner.queue_properties(&cx, QUEUE).await;
        let left = left.map_err(|error| error.to_string())?.approximate_count;
        if left > 0 {
            return Err(format!("{}: {left} messages are left", rule.name()));
        }
        Ok(rows(rule, load, &world.wire.history(), begun, &ends))
    })?
}

/// Puts the messages of a phase, and waits for its end.
async fn put(owner: &Arc<dyn Storage>, phase: &Phase) -> Result<(), String> {
    let (begun, cx) = (Instant::now(), CallContext::default());
    for number in 0..phase.messages {
        tokio::time::sleep_until(begun + phase.every * number).await;
        let now = Duration::ZERO;
        let put = owner.put_message(&cx, QUEUE, "order", MessageTtl::Never, now);
        put.await.map_err(|error| error.to_string())?;
    }
    tokio::time::sleep_until(begun + phase.length).await;
    Ok(())
}

/// What is measured, at work.
enum Running {
    Article(Article),
    Listener {
        listener: Arc<QueueListener>,
        stop: oneshot::Sender<()>,
        run: tokio::task::JoinHandle<Result<(), String>>,
    },
}

impl Running {
    fn start(
        rule: Rule,
        storage: Arc<dyn Storage>,
        setting: Setting,
        seed: u64,
    ) -> Result<Self, String> {
        let Some(config) = config(rule, setting) else {
            let article = Article::new(storage, QUEUE, setting.work);
            article.start(1);
            return Ok(Running::Article(article));
        };
        let handler = function(move |_, _| async move {
            tokio::time::sleep(setting.work).await;
            Verdict::Ok
        });
        let listener = QueueListener::new(config, storage, Arc::new(handler), seed);
        let listener = Arc::new(listener.map_err(|error| error.to_string())?);
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&listener);
        let run = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            let report = shared.run_until(stopped).await;
            report.map(|_| ()).map_err(|error| error.to_string())
        });
        Ok(Running::Listener {
            listener,
            stop,
            run,
        })
    }

    fn tasks_started(&self) -> u64 {
        match self {
            Running::Article(article) => article.started(),
            Running::Listener { listener, .. } => listener.status().borrow().tasks_started,
        }
    }

    async fn stop(self) -> Result<(), String> {
        match self {
            Running::Article(article) => {
                article.stop();
                Ok(())
            }
            Running::Listener { stop, run, .. } => {
                let _ = stop.send(());
                run.await.map_err(|error| error.to_string())?
            }
        }
    }
}

/// The settings of our listener; none for the article's.
fn config(rule: Rule, setting: Setting) -> Option<ListenerConfig> {
    let defaults = ListenerConfig::new(QUEUE);
    match rule {
        Rule::Article => None,
        Rule::Profile(profile) => Some(profile.config(QUEUE)),
        Rule::Policy(policy) => Some(ListenerConfig {
            policy,
            tasks: Tasks {
                min: 1,
                max: setting.tasks_max,
            },
            slots: 32,
            rate_per_s: setting.rate_per_s,
            idle: Idle {
                max: article::IDLE_MAX,
                ..defaults.idle
            },
            ..defaults
        }),
    }
}

/// What the history says, phase by phase.
fn rows(
    rule: Rule,
    load: &[Phase],
    history: &[Event],
    begun: (usize, u64),
    ends: &[(usize, u64)],
) -> Vec<Row> {
    let mut put: BTreeMap<String, Timestamp> = BTreeMap::new();
    let (mut start, mut tasks) = begun;
    let mut rows = Vec::new();
    for (phase, (end, started)) in load.iter().zip(ends) {
        let events = history.get(start..*end).unwrap_or_default();
        let mut sent = Vec::new();
        let (mut waits, mut empty_gets) = (Vec::new(), 0);
        for event in events {
            let Happening::Exchange(exchange) = &event.what else {
                continue;
            };
            let text = exchange.done().map(Answer::text);
            let text = text.unwrap_or_default();
            if event.actor != MEASURED {
                let id = element(&text, "MessageId").unwrap_or_default();
                put.insert(id.to_owned(), event.at);
                continue;
            }
            sent.push(exchange.sent);
            if exchange.method == "GET" && exchange.segments().2 == "messages" {
                let ids = elements(&text, "MessageId");
                empty_gets += usize::from(ids.is_empty());
                let at = ids.into_iter().filter_map(|id| put.remove(id));
                waits.extend(at.map(|at| event.at.since(at)));
            }
        }
        waits.sort();
        rows.push(Row {
            phase: phase.name,
            rule: rule.name(),
            transactions: sent.len(),
            empty_gets,
            peak_per_s: peak(sent),
            tasks_started: started - tasks,
            messages: waits.len(),
            wait_p50_ms: quantile_ms(&waits, 50),
            wait_p99_ms: quantile_ms(&waits, 99),
        });
        (start, tasks) = (*end, *started);
    }
    rows
}

/// Most of these moments within a second.
fn peak(mut sent: Vec<Timestamp>) -> usize {
    sent.sort();
    let (mut first, mut most) = (0, 0);
    for (last, at) in sent.iter().enumerate() {
        while at.since(sent[first]) >= Duration::from_secs(1) {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}

/// The shortest of these sorted times that so many in a hundred do not exceed.
fn quantile_ms(sorted: &[Duration], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    let at = sorted.get(rank - 1).copied().unwrap_or_default();
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

/// The rows, phase by phase.
pub fn table(rows: &[Row], load: &[Phase]) -> String {
    let mut text = String::new();
    for phase in load {
        let _ = writeln!(
            text,
            "{:<22}{:>13}{:>12}{:>9}{:>9}{:>10}{:>10}{:>10}",
            phase.name,
            "transactions",
            "empty gets",
            "peak/s",
            "started",
            "messages",
            "p50 ms",
            "p99 ms"
        );
        for row in rows.iter().filter(|row| row.phase == phase.name) {
            let _ = writeln!(
                text,
                "  {:<20}{:>13}{:>12}{:>9}{:>9}{:>10}{:>10}{:>10}",
                row.rule,
                row.transactions,
                row.empty_gets,
                row.peak_per_s,
                row.tasks_started,
                row.messages,
                row.wait_p50_ms,
                row.wait_p99_ms
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: [Phase; 2] = [phase("burst", 300, 0, 60), phase("idle", 0, 0, 600)];

    #[test]
    fn quantiles_and_peaks() {
        let ms: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!((quantile_ms(&ms, 50), quantile_ms(&ms, 99)), (100, 198));
        assert_eq!(quantile_ms(&[], 99), 0);
        let at = |ms| Timestamp::from_unix_s(1_000).plus(Duration::from_millis(ms));
        assert_eq!(peak([0, 400, 999, 1000, 1400].map(at).to_vec()), 3);
    }

    /// The same seed, the same figures; every message is handed out once; and what the article's
    /// listener costs an idle queue, two transactions a second (DL2), ours does not.
    #[test]
    fn figures_repeat_and_tell_the_rules_apart() {
        let of = |rule| measure(rule, &SMALL, SETTING, 7).unwrap();
        let little = of(Rule::Policy(Policy::Little));
        assert_eq!(little, of(Rule::Policy(Policy::Little)));
        let article = of(Rule::Article);
        for rows in [&little, &article] {
            assert_eq!((rows[0].messages, rows[1].messages), (300, 0));
            assert!(rows[0].transactions > 300, "a delete each, and gets");
        }
        let idle = (article[1].transactions, article[1].empty_gets);
        assert!(
            (1_150..1_250).contains(&idle.0) && idle.0 == 2 * idle.1,
            "{idle:?}"
        );
        let little = little[1].transactions;
        assert!((590..650).contains(&little), "{little} at a second each");
        assert!(of(Rule::Profile(Profile::Default))[1].transactions < 40);
        let seed = config(Rule::Policy(Policy::Seed), SETTING);
        assert_eq!(seed, config(Rule::Profile(Profile::Seed), SETTING));
    }
}
