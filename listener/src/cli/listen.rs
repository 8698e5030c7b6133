//! `run` and `once`: one listener per queue, together in one process.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::join_all;
use smalt_listener::config::file::{ConfigFile, load};
use smalt_listener::config::secret::Process;
use smalt_listener::metrics::Metrics;
use smalt_listener::{AccountLimit, ConfigError, Listener, ListenerError, Observer, Report};
use smalt_sleeve::port::Storage;
use tokio::sync::watch;

use super::flags::ListenFlags;
use super::plan::{self, Plan};
use super::serve::{self, Surface, Watched};
use super::storage::{self, Retries};
use super::trigger::{TriggerQueue, Wakers};
use super::{Common, ambient, exit, progress, signals};

/// Carries out `run` or `once`.
pub(crate) async fn listen(
    common: &Common,
    flags: &ListenFlags,
    once: bool,
) -> anyhow::Result<ExitCode> {
    let file = read(common)?;
    let plan = match plan::make(&file, flags) {
        Ok(plan) => plan,
        Err(problems) => return Ok(exit::all(&problems)),
    };
    let seed = match flags.scale.seed {
        Some(seed) => seed,
        None => ambient::seed()?,
    };
    let storage = storage::open(common, &file, Retries::OfTheListener).await?;
    let (listeners, mut surface) = listeners(&plan, &storage, seed)?;
    if !once {
        for queue in triggers(&plan, &storage, &surface.wakers) {
            surface.triggers.push(Arc::clone(&queue.metrics));
            tokio::spawn(queue.watch());
        }
    }
    let surface = Arc::new(surface);
    let (health, metrics) = (plan.health.as_deref(), plan.metrics.as_deref());
    serve::start(&surface, health, metrics).await;
    tokio::spawn(signals::dumps(Arc::clone(&surface)));
    let (stop, stopped) = watch::channel(false);
    let work = join_all(listeners.iter().map(|l| one(l, stopped.clone(), once)));
    let shown = async {
        if once {
            show(&surface).await;
        }
        std::future::pending::<()>().await;
    };
    let reports = tokio::select! {
        biased;
        reports = work => reports,
        () = shown => return Ok(ExitCode::from(exit::INTERRUPTED)),
        second = signals::second_order(stop) => {
            second.context("cannot wait for signals")?;
            return Ok(ExitCode::from(exit::INTERRUPTED));
        }
    };
    let reports: Vec<Report> = reports.into_iter().collect::<Result<_, _>>()?;
    Ok(exit::of_reports(&reports, once))
}

/// The listeners of a plan, each with its metrics, and what there is to see of them.
fn listeners(
    plan: &Plan,
    storage: &Arc<dyn Storage>,
    seed: u64,
) -> Result<(Vec<Listener>, Surface), ConfigError> {
    let mut listeners = Vec::new();
    let mut watched = Vec::new();
    let account = AccountLimit::new(plan.account_rate);
    for (number, queue) in (0_u64..).zip(&plan.queues) {
        let (config, handler) = (queue.config.clone(), Arc::clone(&queue.handler));
        let metrics = Arc::new(Metrics::new(&config.queue));
        let interval = config.longest_sleep();
        let seed = seed.wrapping_add(number);
        let listener = Listener::new(config, Arc::clone(storage), handler, seed)?
            .within(account.clone())
            .observed_by(Arc::clone(&metrics) as Arc<dyn Observer>);
        watched.push(Watched {
            status: listener.status(),
            metrics,
            interval,
        });
        listeners.push(listener);
    }
    let surface = Surface {
        worker: plan.worker.clone(),
        wakers: Arc::new(Wakers {
            account: storage.account().to_owned(),
            wakers: listeners.iter().map(Listener::waker).collect(),
        }),
        token: plan.token.clone(),
        price: plan.price,
        queues: watched,
        triggers: Vec::new(),
    };
    Ok((listeners, surface))
}

/// The trigger queues, each once, however many listeners it serves.
fn triggers(plan: &Plan, storage: &Arc<dyn Storage>, wakers: &Arc<Wakers>) -> Vec<TriggerQueue> {
    let mut every: BTreeMap<&str, Duration> = BTreeMap::new();
    for (queue, wished) in plan.queues.iter().filter_map(plan::Queue::trigger) {
        let shortest = every.entry(queue).or_insert(wished);
        *shortest = wished.min(*shortest);
    }
    let queues = every.into_iter();
    queues
        .map(|(queue, every)| TriggerQueue {
            storage: Arc::clone(storage),
            metrics: Arc::new(Metrics::new(queue)),
            every,
            wakers: Arc::clone(wakers),
        })
        .collect()
}

/// How far `once` has come, on a terminal.
async fn show(surface: &Surface) {
    let bar = progress::bar(None, "once");
    if bar.is_hidden() {
        return;
    }
    loop {
        let settled = surface.queues.iter().map(Watched::settled).sum();
        bar.set_position(settled);
        bar.set_message(surface.summary());
        tokio::time::sleep(progress::TICK).await;
    }
}

async fn one(
    listener: &Listener,
    mut stopped: watch::Receiver<bool>,
    once: bool,
) -> Result<Report, ListenerError> {
    let stop = async move {
        if stopped.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let report = if once {
        listener.once_until(stop).await?
    } else {
        listener.run_until(stop).await?
    };
    tracing::info!(
        worker = %listener.config().worker,
        op = "report",
        queue = %listener.config().queue,
        ended = ?report.ended,
        received = report.received,
        outcomes = %outcomes(&report),
        requests = report.requests,
        tasks_started = report.tasks_started,
        expiring = report.expiring,
        "finished"
    );
    Ok(report)
}

fn outcomes(report: &Report) -> String {
    let counts = report.outcomes.iter();
    let words: Vec<String> = counts.map(|(o, n)| format!("{}={n}", o.name())).collect();
    words.join(" ")
}

/// The configuration file, or an empty one.
pub(crate) fn read(common: &Common) -> Result<ConfigFile, ConfigError> {
    match &common.config {
        Some(path) => load(path, &Process),
        None => Ok(ConfigFile::default()),
    }
}
