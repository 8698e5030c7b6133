//! Signals: of the orders to stop the first finishes the blobs in hand and the second aborts;
//! SIGHUP reads the rules again, SIGUSR1 writes the status into the log.

use smalt_sweeper::{Finished, Sweeper};

use super::common::Common;
use crate::connect;

/// The first SIGTERM or Ctrl-C.
pub(crate) async fn asked_to_stop() {
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
pub(crate) async fn aborting(work: impl Future<Output = Finished>) -> Option<Finished> {
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

/// Reads the rules again at each SIGHUP, and writes the status into the log at each SIGUSR1. Never
/// ends.
#[cfg(unix)]
pub(crate) async fn attend(common: &Common, sweeper: &Sweeper) {
    use tokio::signal::unix::{SignalKind, signal};
    let hangup = signal(SignalKind::hangup());
    let (Ok(mut hangup), Ok(mut asked)) = (hangup, signal(SignalKind::user_defined1())) else {
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            Some(()) = hangup.recv() => reload(common, sweeper),
            Some(()) = asked.recv() => {
                let status = sweeper.monitor().status();
                tracing::info!(op = "status", %status, "status");
            }
            else => return std::future::pending().await,
        }
    }
}

/// There are no such signals here.
#[cfg(not(unix))]
pub(crate) async fn attend(_: &Common, _: &Sweeper) {
    std::future::pending().await
}

/// What cannot be read changes nothing: a worker goes on by the rules that it has.
fn reload(common: &Common, sweeper: &Sweeper) {
    let read = connect::settings(common.config.as_deref(), common.flags());
    let reloaded = read.and_then(|settings| {
        let rules = settings.sweeper.policy.rules.len();
        sweeper.reload(settings.sweeper.policy)?;
        Ok(rules)
    });
    match reloaded {
        Ok(rules) => tracing::info!(op = "reload", rules, "rules read again"),
        Err(error) => {
            let reason = smalt_sweeper::uri::redact(&format!("{error:#}"));
            tracing::error!(op = "reload", reason, "the rules stay as they were");
        }
    }
}
