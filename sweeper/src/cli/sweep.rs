//! `run` and `once`: sweeping, and how a sweep ends.

use anyhow::Result;
use smalt_sweeper::Finished;
use smalt_sweeper::error::exit;

use super::common::{Common, sweeper};
use super::progress;

/// Sweeps until told to stop.
pub(crate) async fn run(common: &Common) -> Result<u8> {
    let (sweeper, _) = sweeper(common)?;
    ended(aborting(sweeper.run_until(asked_to_stop())).await, false)
}

/// Sweeps one cycle.
pub(crate) async fn once(common: &Common) -> Result<u8> {
    let (sweeper, settings) = sweeper(common)?;
    if settings.sweeper.containers.is_empty() && settings.sweeper.create_state {
        tracing::warn!("no --container given; sweeping what the state document says");
    }
    let bar = progress::spinner("sweeping");
    let finished = aborting(sweeper.once_until(asked_to_stop())).await;
    bar.finish_and_clear();
    ended(finished, true)
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

/// The first SIGTERM or Ctrl-C.
async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Lets work go on until a second signal; `None` then. What is dropped is safe: the ledger has it.
async fn aborting(work: impl Future<Output = Finished>) -> Option<Finished> {
    let twice = async {
        asked_to_stop().await;
        asked_to_stop().await;
    };
    tokio::select! {
        biased;
        finished = work => Some(finished),
        () = twice => None,
    }
}
