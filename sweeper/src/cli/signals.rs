//! What a running sweeper does at SIGHUP and SIGUSR1.

use smalt_sweeper::Sweeper;
use smalt_worker::face::Face;
use smalt_worker::signals::{Request, each};

use super::common::Common;
use crate::connect;

/// Reads the rules again at each SIGHUP, and writes the status into the log at each SIGUSR1. Never
/// ends.
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

/// Replaces the rules. A configuration that cannot be read changes nothing.
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
            let reason = smalt_sleeve::redact(&format!("{error:#}"));
            tracing::error!(op = "reload", reason, "the rules stay as they were");
        }
    }
}
