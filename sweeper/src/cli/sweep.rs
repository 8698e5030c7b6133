//! `run` and `once`: sweeps, and maps the result to output and exit code.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use smalt_sweeper::settings::Settings;
use smalt_sweeper::{Collision, Finished, Progress, Report, SweepError};
use smalt_worker::signals::{Orders, stopped};
use smalt_worker::{exit, face};
use tokio::sync::watch;

use super::common::{Common, print_json, sweeper};
use super::progress::Far;
use super::{progress, signals};

pub(crate) async fn run(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    warn_of_openness(&settings);
    let orders = Orders::new().context("cannot wait for signals")?;
    let (stop, told) = watch::channel(false);
    let monitor = sweeper.monitor();
    monitor.set_prices(settings.prices);
    let (health, metrics) = (settings.health.as_deref(), settings.metrics.as_deref());
    face::start(&Arc::new(monitor), health, metrics).await;
    let work = orders.obey(&stop, async {
        sweeper.check_new_state().await?;
        Ok::<_, SweepError>(sweeper.run_until(stopped(told)).await)
    });
    let finished = tokio::select! {
        biased;
        finished = work => finished?.transpose()?,
        () = signals::attend(common, &sweeper) => None,
    };
    ended(finished, false)
}

pub(crate) async fn once(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    warn_of_openness(&settings);
    if settings.sweeper.containers.is_empty() && settings.sweeper.create_state {
        tracing::warn!("no --container given; sweeping the containers of the state document");
    }
    let orders = Orders::new().context("cannot wait for signals")?;
    let (stop, told) = watch::channel(false);
    let bar = progress::spinner("sweeping");
    let monitor = sweeper.monitor();
    let work = orders.obey(&stop, async {
        sweeper.check_new_state().await?;
        Ok::<_, SweepError>(sweeper.once_until(stopped(told)).await)
    });
    let finished = tokio::select! {
        biased;
        finished = work => finished?.transpose()?,
        () = progress::follow(&bar, || far(&monitor.progress(), bar.elapsed())) => None,
    };
    bar.finish_and_clear();
    ended(finished, true)
}

/// Warns once if blobs may choose any destination container, by `--profile compat` or an allow-list
/// of `*`.
fn warn_of_openness(settings: &Settings) {
    let config = &settings.sweeper;
    if config.dead.account.is_none() || !config.policy.allows_any() {
        return;
    }
    let replaces = match config.dead.on_collision {
        Collision::Overwrite => " and overwrite blobs there (prevent: --on-collision fail)",
        Collision::Fail | Collision::Suffix => "",
    };
    tracing::warn!(
        "anyone who can write a blob to a swept container can choose any container of the account \
         for dead blobs as its destination{replaces}; restrict this with --dead-allow NAME"
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
        words: format!("{seen} blobs seen, {gone} of {due} due removed, {failed} failed, {rate}"),
    }
}

/// Prints the report and returns the exit code. A run that a signal stopped returns 0.
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

/// Returns the report, or `None` if the sweep failed before it did anything, so that standard
/// output stays empty instead of showing a report of an empty sweep.
fn reported(finished: &Finished) -> Option<&Report> {
    let report = &finished.report;
    (finished.error.is_none() || !report.is_empty()).then_some(report)
}

#[cfg(test)]
mod tests {
    use smalt_sweeper::SweepError;

    use super::*;

    #[test]
    fn refused_sweep_prints_no_report() {
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
            // A report with progress is printed even when an error follows.
            let done = finished.report.containers.entry("events".to_owned());
            done.or_default().pages = 1;
            assert!(reported(&finished).is_some());
        }
        // An empty sweep without an error has a report.
        let nothing = Finished {
            report: Report::new("w"),
            error: None,
        };
        assert!(reported(&nothing).is_some());
    }
}
