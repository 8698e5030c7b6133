//! `run` and `once`: sweeping, and how a sweep ends.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use smalt_sweeper::settings::Settings;
use smalt_sweeper::{Collision, Finished, Progress, Report};
use smalt_worker::signals::{Orders, stopped};
use smalt_worker::{exit, face};
use tokio::sync::watch;

use super::common::{Common, print_json, sweeper};
use super::progress::Far;
use super::{progress, signals};

/// Sweeps until told to stop.
pub(crate) async fn run(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    warn_of_openness(&settings);
    let orders = Orders::new().context("cannot wait for signals")?;
    let (stop, told) = watch::channel(false);
    let monitor = sweeper.monitor();
    monitor.set_prices(settings.prices);
    let (health, metrics) = (settings.health.as_deref(), settings.metrics.as_deref());
    face::start(&Arc::new(monitor), health, metrics).await;
    let work = orders.obey(&stop, sweeper.run_until(stopped(told)));
    let finished = tokio::select! {
        biased;
        finished = work => finished?,
        () = signals::attend(common, &sweeper) => None,
    };
    ended(finished, false)
}

/// Sweeps one cycle.
pub(crate) async fn once(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    warn_of_openness(&settings);
    if settings.sweeper.containers.is_empty() && settings.sweeper.create_state {
        tracing::warn!("no --container given; sweeping what the state document says");
    }
    let orders = Orders::new().context("cannot wait for signals")?;
    let (stop, told) = watch::channel(false);
    let bar = progress::spinner("sweeping");
    let monitor = sweeper.monitor();
    let work = orders.obey(&stop, sweeper.once_until(stopped(told)));
    let finished = tokio::select! {
        biased;
        finished = work => finished?,
        () = progress::follow(&bar, || far(&monitor.progress(), bar.elapsed())) => None,
    };
    bar.finish_and_clear();
    ended(finished, true)
}

/// Says once what `--profile compat` opens, or an allow-list of everything.
fn warn_of_openness(settings: &Settings) {
    let config = &settings.sweeper;
    if config.dead.account.is_none() || !config.policy.allows_any() {
        return;
    }
    let replaces = match config.dead.on_collision {
        Collision::Overwrite => " and replaces what stands there (--on-collision fail)",
        Collision::Fail | Collision::Suffix => "",
    };
    tracing::warn!(
        "whoever may write a blob into a swept container chooses any container of the account for \
         dead blobs as its destination{replaces}; --dead-allow NAME narrows that"
    );
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
    if let Some(report) = reported(&finished).filter(|_| report) {
        print_json(report)?;
    }
    let code = finished.exit_code();
    match finished.error {
        Some(error) => Err(error.into()),
        None if report => Ok(code),
        None => Ok(exit::OK),
    }
}

/// The report, unless nothing but a refusal came of it: then who reads standard output finds it
/// empty, and no report that looks like a sweep of nothing.
fn reported(finished: &Finished) -> Option<&Report> {
    let report = &finished.report;
    (finished.error.is_none() || !report.is_empty()).then_some(report)
}

#[cfg(test)]
mod tests {
    use smalt_sweeper::SweepError;

    use super::*;

    #[test]
    fn a_refusal_prints_no_report() {
        let refusals: [fn() -> SweepError; 3] = [
            || SweepError::Config("other containers".to_owned()),
            || SweepError::StateMissing("somewhere".to_owned()),
            || SweepError::LeaseHeld {
                place: "ops/state".to_owned(),
                waited_s: 60,
            },
        ];
        for refusal in refusals {
            let mut finished = Finished {
                report: Report::new("w"),
                error: Some(refusal()),
            };
            finished.report.transactions.insert("acquire_lease", 9);
            assert!(reported(&finished).is_none(), "{:?}", finished.error);
            // What was done before it is told.
            let done = finished.report.containers.entry("events".to_owned());
            done.or_default().pages = 1;
            assert!(reported(&finished).is_some());
        }
        // A sweep of nothing is one.
        let nothing = Finished {
            report: Report::new("w"),
            error: None,
        };
        assert!(reported(&nothing).is_some());
    }
}
