//! Log lines, to standard error.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use super::progress::Beside;
use super::{Common, LogFormat};

/// Starts the log; a quiet command shows warnings only, unless it is told otherwise.
pub(crate) fn init(common: &Common, quiet: bool) -> anyhow::Result<()> {
    // The client's own lines about each failed try say nothing that the listener does not.
    let by_default = if quiet {
        "warn"
    } else {
        "info,typespec_client_core=warn"
    };
    let level = common.log_level.as_deref().unwrap_or(by_default);
    let filter = EnvFilter::try_new(level).with_context(|| format!("--log-level {level}"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Beside)
        .with_target(false);
    match common.log {
        LogFormat::Json => log.json().flatten_event(true).init(),
        LogFormat::Text => {
            let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            log.with_ansi(colour).init();
        }
    }
    Ok(())
}
