//! The log of the binary, on stderr: text or JSON lines, coloured where a person reads.

use std::fmt::Debug;
use std::io::IsTerminal as _;

use smalt_protocol::terminal;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

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
        LogFormat::Text => {
            let field = |out: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
                terminal::write_field(out, field.name(), value)
            };
            log.fmt_fields(debug_fn(field).delimited(" ")).init();
        }
        LogFormat::Json => log.json().init(),
    }
}

/// Prints why the program ends.
pub fn print_error(error: &anyhow::Error) {
    let error = format!("{error:#}");
    let error = terminal::lines(&error);
    if std::io::stderr().is_terminal() {
        eprintln!("\u{1b}[1;31merror:\u{1b}[0m {error}");
    } else {
        eprintln!("error: {error}");
    }
}
