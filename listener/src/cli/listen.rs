//! `run` and `once`: one listener per queue, together in one process.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::join_all;
use smalt_listener::config::file::{ConfigFile, HandlerLayer, QueueLayer, load};
use smalt_listener::config::secret::Process;
use smalt_listener::handler::Handler;
use smalt_listener::handler::exec::ExecHandler;
use smalt_listener::handler::http::HttpHandler;
use smalt_listener::{ConfigError, Listener, ListenerConfig, ListenerError, Report};
use tokio::sync::watch;

use super::storage::{self, Retries};
use super::{Common, ListenFlags, ambient, exit, signals};

/// Carries out `run` or `once`.
pub(crate) async fn listen(
    common: &Common,
    flags: &ListenFlags,
    once: bool,
) -> anyhow::Result<ExitCode> {
    let file = read(common)?;
    let layers = queues(&file, flags)?;
    let worker = worker(&file, flags);
    let grace = flags.scale.grace.or(file.listener.grace.map(|g| g.0));
    let seed = match flags.scale.seed {
        Some(seed) => seed,
        None => ambient::seed()?,
    };
    let storage = storage::open(common, &file, Retries::OfTheListener).await?;
    let mut listeners = Vec::new();
    for (number, layer) in (0_u64..).zip(&layers) {
        let mut config: ListenerConfig = layer.settings(&worker)?;
        config.grace = grace.unwrap_or(config.grace);
        let handler = handler(&layer.handler)?;
        let seed = seed.wrapping_add(number);
        listeners.push(Listener::new(config, Arc::clone(&storage), handler, seed)?);
    }
    let (stop, stopped) = watch::channel(false);
    let work = join_all(listeners.iter().map(|l| one(l, stopped.clone(), once)));
    let reports = tokio::select! {
        biased;
        reports = work => reports,
        second = signals::second_order(stop) => {
            second.context("cannot wait for signals")?;
            return Ok(ExitCode::from(exit::INTERRUPTED));
        }
    };
    let reports: Vec<Report> = reports.into_iter().collect::<Result<_, _>>()?;
    Ok(exit::of_reports(&reports, once))
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

/// The queues to listen to: those named by flags, or all of the file.
pub(crate) fn queues(file: &ConfigFile, flags: &ListenFlags) -> anyhow::Result<Vec<QueueLayer>> {
    let in_file = |name: &String| {
        let found = file.listener.queue.iter();
        found
            .clone()
            .find(|q| q.name.as_ref() == Some(name))
            .cloned()
    };
    let chosen: Vec<QueueLayer> = if flags.queue.is_empty() {
        file.listener.queue.clone()
    } else {
        let named = |name: &String| QueueLayer {
            name: Some(name.clone()),
            ..QueueLayer::default()
        };
        let queues = flags.queue.iter();
        queues
            .map(|q| in_file(q).unwrap_or_else(|| named(q)))
            .collect()
    };
    anyhow::ensure!(!chosen.is_empty(), "say which queue: --queue NAME");
    Ok(chosen
        .into_iter()
        .map(|below| flags.layer().over(below))
        .collect())
}

fn worker(file: &ConfigFile, flags: &ListenFlags) -> String {
    let named = flags
        .scale
        .worker_id
        .clone()
        .or(file.listener.worker.clone());
    named.unwrap_or_else(|| {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "listener".to_owned());
        format!("{host}-{}", std::process::id())
    })
}

fn handler(layer: &HandlerLayer) -> anyhow::Result<Arc<dyn Handler>> {
    match (&layer.exec, &layer.http) {
        (Some(line), None) => Ok(Arc::new(ExecHandler::new(line.clone()))),
        (None, Some(url)) => {
            let mut handler = HttpHandler::new(url, layer.on_4xx.unwrap_or_default())?;
            if let Some(content_type) = &layer.content_type {
                handler = handler.with_content_type(content_type);
            }
            Ok(Arc::new(handler))
        }
        (None, None) => anyhow::bail!("say what handles messages: --exec COMMAND or --http URL"),
        (Some(_), Some(_)) => anyhow::bail!("a queue has one handler: exec or http, not both"),
    }
}
