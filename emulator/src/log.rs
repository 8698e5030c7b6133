//! The log of the binary, on stderr: text or JSON lines, coloured where a person reads.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::cli::{Flags, LogFormat};

/// Starts logging. `RUST_LOG` wins over the flags.
pub fn start(flags: &Flags) {
    let level = match (flags.silent, flags.debug.is_some()) {
        (true, _) => "error",
        (false, true) => "smalt=debug",
        (false, false) => "warn",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match flags.log {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

/// Prints why the program ends.
pub fn print_error(error: &anyhow::Error) {
    if std::io::stderr().is_terminal() {
        eprintln!("\u{1b}[1;31merror:\u{1b}[0m {error:#}");
    } else {
        eprintln!("error: {error:#}");
    }
}
