//! `run` and `once`: sweeping, and how a sweep ends.

use std::time::Duration;

use anyhow::Result;
use smalt_sweeper::error::exit;
use smalt_sweeper::{Finished, Progress};

use super::common::{Common, sweeper};
use super::progress::Far;
use super::signals::{self, aborting, asked_to_stop};
use super::{progress, serve};

/// Sweeps until told to stop.
pub(crate) async fn run(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    let monitor = sweeper.monitor();
    monitor.set_prices(settings.prices);
    let (health, metrics) = (settings.health.as_deref(), settings.metrics.as_deref());
    serve::start(&monitor, health, metrics).await;
    let work = aborting(sweeper.run_until(asked_to_stop()));
    let finished = tokio::select! {
        biased;
        finished = work => finished,
        () = signals::attend(common, &sweeper) => None,
    };
    ended(finished, false)
}

/// Sweeps one cycle.
pub(crate) async fn once(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    if settings.sweeper.containers.is_empty() && settings.sweeper.create_state {
        tracing::warn!("no --container given; sweeping what the state document says");
    }
    let bar = progress::spinner("sweeping");
    let monitor = sweeper.monitor();
    let work = aborting(sweeper.once_until(asked_to_stop()));
    let finished = tokio::select! {
        biased;
        finished = work => finished,
        () = progress::follow(&bar, || far(&monitor.progress(), bar.elapsed())) => None,
    };
    bar.finish_and_clear();
    ended(finished, true)
}

fn far(progress: &Progress, since: Duration) -> Far {
    let Progress {
        containers,
        containers_done,
        seen,
        due,
        gone,
        failed,
        ..
    } = *progress;
    let rate = progress::rate(seen, since);
    Far {
        done: containers_done,
        all: containers,
        words: format!("{seen} blobs seen, {gone} of {due} due gone, {failed} failed, {rate}"),
    }
}

/// Prints how it ended. A run that was stopped by a signal ends well.
fn ended(finished: Option<Finished>, report: bool) -> Result<u8> {
    let Some(finished) = finished else {
        return Ok(exit::INTERRUPTED);
    };
    if report {
        println!("{}", serde_json::to_string_pretty(&finished.report)?);
    }
    let code = finished.exit_code();
    match finished.error {
        Some(error) => Err(error.into()),
        None if report => Ok(code),
        None => Ok(exit::OK),
    }
}
