//! Handles SIGHUP and SIGUSR1 during a run.

use smalt_sweeper::Sweeper;
use smalt_worker::face::Face;
use smalt_worker::signals::{Request, each};

use super::common::Common;
use crate::connect;

/// Reloads the rules on SIGHUP and logs the status on SIGUSR1. Never returns.
pub(crate) async fn attend(common: &Common, sweeper: &Sweeper) {
    let status = || {
        let status = sweeper.monitor().status();
        tracing::info!(op = "status", %status, "status");
    };
    tokio::select! {
        () = each(Request::Hangup, || reload(common, sweeper)) => {}
        () = each(Request::Status, status) => {}
    }
}

/// Reloads the rules. An invalid configuration leaves the current rules in place.
fn reload(common: &Common, sweeper: &Sweeper) {
    let read = connect::settings(common.config.as_deref(), common.flags());
    let reloaded = read.and_then(|settings| {
        let rules = settings.sweeper.policy.rules.len();
        sweeper.reload(settings.sweeper.policy)?;
        Ok(rules)
    });
    match reloaded {
        Ok(rules) => tracing::info!(op = "reload", rules, "reloaded the rules"),
        Err(error) => {
            let reason = smalt_sleeve::redact(&format!("{error:#}"));
            tracing::error!(op = "reload", reason, "rules not reloaded; old ones kept");
        }
    }
}
