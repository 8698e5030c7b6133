//! `run` and `once`: one listener per queue, all in one process.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use futures_util::future::join_all;
use smalt_listener::metrics::Metrics;
use smalt_listener::notify::{Relay, Subscription};
use smalt_listener::partition::{PartitionedListener, Partitions};
use smalt_listener::{AccountLimit, ConfigError, QueueListener, Report};
use smalt_sleeve::port::Storage;
use smalt_worker::face::{self, Face};
use smalt_worker::process;
use smalt_worker::progress::TICK;
use smalt_worker::signals::{Orders, Request, each, stopped};
use tokio::sync::watch;

use super::dry_run::{self, Mode};
use super::flags::WorkFlags;
use super::plan::{self, Plan};
use super::serve::{Surface, Watched};
use super::storage::{self, Retries};
use super::{Common, exit, progress, validate};

pub(crate) async fn listen(
    common: &Common,
    flags: &WorkFlags,
    once: bool,
) -> anyhow::Result<ExitCode> {
    let (file, flags, is_dry) = (common.file()?, &flags.listen, flags.dry_run);
    let plan = match plan::make(&file, flags) {
        Ok(plan) => plan,
        Err(mut problems) => {
            problems.extend(validate::account(common, &file).err());
            return Ok(exit::all(&problems));
        }
    };
    if is_dry {
        let mode = if once { Mode::Once } else { Mode::Run };
        return dry_run::look(common, &file, &plan, mode).await;
    }
    let orders = Orders::with_hangup().context("cannot wait for signals")?;
    let seed = flags.scale.seed.map_or_else(process::seed, Ok)?;
    let storage = storage::open(common, &file, Retries::OfTheListener).await?;
    let account = plan.account();
    let mut surface = surface(&plan, &storage, account.clone());
    let subscriptions = match once {
        true => Vec::new(),
        false => subscriptions(&plan, &storage, &surface, seed)?,
    };
    for on in plan.on.iter().filter(|_| !once) {
        on.attach(&surface.relay, &plan.worker);
    }
    let counts = subscriptions.iter().map(|s| Arc::clone(s.metrics()));
    surface.triggers.extend(counts);
    let surface = Arc::new(surface);
    let works = listeners(&plan, &storage, &surface, seed)?;
    let (health, metrics) = (plan.health.as_deref(), plan.metrics.as_deref());
    face::start(&surface, health, metrics).await;
    let shown = Arc::clone(&surface);
    tokio::spawn(each(Request::Status, move || {
        tracing::info!(op = "status", status = %shown.status(), "status");
    }));
    let (stop, told) = watch::channel(false);
    let worker = plan.worker.as_str();
    let work = join_all(
        works
            .iter()
            .map(|work| stopping_all(one(work, worker, told.clone(), once), &stop, once)),
    );
    let watched = async {
        join_all(subscriptions.iter().map(Subscription::watch)).await;
        std::future::pending::<()>().await;
    };
    let shown = async {
        if once {
            show(&surface).await;
        }
        std::future::pending::<()>().await;
    };
    let reports = tokio::select! {
        biased;
        reports = orders.obey(&stop, work) => reports.context("cannot wait for signals")?,
        () = shown => None,
        () = watched => None,
    };
    join_all(subscriptions.iter().map(Subscription::leave)).await;
    let Some(reports) = reports else {
        return Ok(ExitCode::from(smalt_worker::exit::INTERRUPTED));
    };
    let reports: Vec<Vec<Report>> = reports.into_iter().collect::<Result<_, _>>()?;
    let spent = account.today().and_then(|today| today.spent());
    Ok(exit::of_reports(&reports.concat(), once, spent))
}

/// The listener, or listeners, of one queue of the plan.
enum Work {
    One(QueueListener),
    Many(PartitionedListener),
}

/// Returns the surface of a plan's listeners, to which they are added later.
fn surface(plan: &Plan, storage: &Arc<dyn Storage>, account: AccountLimit) -> Surface {
    let sets = plan
        .queues
        .iter()
        .filter(|queue| queue.partitions.is_some());
    Surface {
        worker: plan.worker.clone(),
        relay: Relay::new(storage.account()),
        token: plan.token.clone(),
        price: plan.price,
        account,
        queues: Mutex::default(),
        sets: sets
            .map(|queue| Arc::new(Metrics::new(&queue.config.queue)))
            .collect(),
        triggers: Vec::new(),
    }
}

/// Creates the listeners of a plan and registers each with the surface.
fn listeners(
    plan: &Plan,
    storage: &Arc<dyn Storage>,
    surface: &Arc<Surface>,
    seed: u64,
) -> Result<Vec<Work>, ConfigError> {
    let mut works = Vec::new();
    for (number, queue) in (0_u64..).zip(&plan.queues) {
        let (config, handler) = (queue.config.clone(), Arc::clone(&queue.handler));
        let seed = seed.wrapping_add(number);
        let limit = surface.account.clone();
        let mut maps = surface.sets.iter();
        let map = maps.find(|map| map.queue() == config.queue).cloned();
        let (surface, account) = (Arc::clone(surface), limit.clone());
        let set = queue.partitions.as_ref().map(|set| set.name.clone());
        let shown = move |listener: QueueListener| {
            surface.add(listener.within(account.clone()), set.as_deref())
        };
        let storage = Arc::clone(storage);
        works.push(match &queue.partitions {
            None => Work::One(shown(QueueListener::new(config, storage, handler, seed)?)),
            Some(set) => {
                let mut set = Partitions::new(storage, set.clone())?.within(limit);
                if let Some(map) = map {
                    set = set.observed_by(map);
                }
                let many = PartitionedListener::new(Arc::new(set), config, handler, seed)?;
                Work::Many(many.with_each(shown))
            }
        });
    }
    Ok(works)
}

/// Creates one subscription per topic, even if several listeners name the topic.
fn subscriptions(
    plan: &Plan,
    storage: &Arc<dyn Storage>,
    surface: &Surface,
    seed: u64,
) -> Result<Vec<Subscription>, ConfigError> {
    let topics = plan.topics().into_iter();
    let subscribed = topics.map(|(topic, every)| {
        let (storage, relay) = (Arc::clone(storage), surface.relay.clone());
        let who = (plan.worker.as_str(), seed);
        let subscription = Subscription::new(storage, topic, who, every, relay)?;
        Ok(subscription.within(surface.account.clone()))
    });
    subscribed.collect()
}

/// Shows the progress of `once` on a terminal.
async fn show(surface: &Surface) {
    let bar = progress::bar(None, "once");
    if bar.is_hidden() {
        return;
    }
    loop {
        let settled = surface.queues().iter().map(Watched::settled).sum();
        bar.set_position(settled);
        bar.set_message(surface.summary());
        tokio::time::sleep(TICK).await;
    }
}

/// Stops all queues of `run` when one ends with an error, so that a process does not seem healthy
/// while it processes only some of its queues.
async fn stopping_all<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    stop: &watch::Sender<bool>,
    once: bool,
) -> anyhow::Result<T> {
    let ended = work.await;
    if ended.is_err() && !once {
        let _ = stop.send(true);
    }
    ended
}

async fn one(
    work: &Work,
    worker: &str,
    told: watch::Receiver<bool>,
    once: bool,
) -> anyhow::Result<Vec<Report>> {
    let stop = stopped(told);
    let reports = match (work, once) {
        (Work::One(listener), true) => vec![named(listener, listener.once_until(stop).await?)],
        (Work::One(listener), false) => vec![named(listener, listener.run_until(stop).await?)],
        (Work::Many(many), false) => many.run_until(stop).await?,
        (Work::Many(many), true) => {
            let mut reports = Vec::new();
            for (queue, report) in many.once_until(stop).await? {
                reports.push((queue, report?));
            }
            reports
        }
    };
    for (queue, report) in &reports {
        tracing::info!(
            worker,
            op = "report",
            queue = %queue,
            ended = ?report.ended,
            received = report.received,
            outcomes = %outcomes(report),
            requests = report.requests,
            tasks_started = report.tasks_started,
            expiring = report.expiring,
            "finished"
        );
    }
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

fn named(listener: &QueueListener, report: Report) -> (String, Report) {
    (listener.config().queue.clone(), report)
}

fn outcomes(report: &Report) -> String {
    let counts = report.outcomes.iter();
    let words: Vec<String> = counts.map(|(o, n)| format!("{}={n}", o.name())).collect();
    words.join(" ")
}
