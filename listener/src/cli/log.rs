//! Log lines, to standard error.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use super::{Common, LogFormat};

/// Starts the log.
pub(crate) fn init(common: &Common) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&common.log_level)
        .with_context(|| format!("--log-level {}", common.log_level))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
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
