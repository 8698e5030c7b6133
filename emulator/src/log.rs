//! The log of the binary: on stderr, as text or JSON lines, coloured on a terminal, and in the file
//! of `--debug`.

use std::fmt::Debug;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use smalt_protocol::terminal;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::writer::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::cli::{Flags, LogFormat};
use crate::disk::{Disk as _, DiskFile, SystemDisk};

/// Returns the filter of `--debug`.
fn debug() -> Targets {
    Targets::new().with_target("smalt", LevelFilter::DEBUG)
}

/// Starts logging. On stderr `RUST_LOG` overrides the flags.
///
/// # Errors
/// When the file of `--debug` cannot be written.
pub fn start(flags: &Flags) -> anyhow::Result<()> {
    let file = flags.debug.as_deref().filter(|file| !file.is_empty());
    let by_flags = match (flags.silent, flags.debug.is_some() && file.is_none()) {
        (true, _) => Targets::new().with_default(LevelFilter::ERROR),
        (false, true) => debug(),
        (false, false) => Targets::new().with_default(LevelFilter::WARN),
    };
    let asked = std::env::var("RUST_LOG")
        .ok()
        .filter(|asked| !asked.is_empty());
    let filter = asked
        .and_then(|asked| asked.parse().ok())
        .unwrap_or(by_flags);
    let mut layers = vec![layer(
        flags.log,
        filter,
        io::stderr().is_terminal(),
        io::stderr,
    )];
    if let Some(path) = file {
        let file = LogFile::open(Path::new(path));
        let file = file.with_context(|| format!("--debug: cannot write {path}"))?;
        layers.push(layer(flags.log, debug(), false, Mutex::new(file)));
    }
    tracing_subscriber::registry().with(layers).init();
    Ok(())
}

fn layer(
    format: LogFormat,
    filter: Targets,
    is_coloured: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = fmt::layer().with_ansi(is_coloured).with_writer(writer);
    match format {
        LogFormat::Text => {
            let field = |out: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
                terminal::write_field(out, field.name(), value)
            };
            let layer = layer.fmt_fields(debug_fn(field).delimited(" "));
            layer.with_filter(filter).boxed()
        }
        LogFormat::Json => layer.json().with_filter(filter).boxed(),
    }
}

/// A log file to which lines are appended.
#[derive(Debug)]
struct LogFile {
    file: Arc<dyn DiskFile>,
    end: u64,
}

impl LogFile {
    /// Opens the file for appending, and creates its directory.
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            SystemDisk.create_dir(dir)?;
        }
        let file = SystemDisk.open(path, true)?;
        let end = file.len()?;
        Ok(LogFile { file, end })
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Prints the error that ends the program to stderr.
pub fn print_error(error: &anyhow::Error) {
    let error = format!("{error:#}");
    let error = terminal::lines(&error);
    if io::stderr().is_terminal() {
        eprintln!("\u{1b}[1;31merror:\u{1b}[0m {error}");
    } else {
        eprintln!("error: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::read_small;

    #[test]
    fn log_file_is_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/debug.log");
        for line in ["one\n", "two\n"] {
            LogFile::open(&path)
                .unwrap()
                .write_all(line.as_bytes())
                .unwrap();
        }
        let text = read_small(&SystemDisk, &path).unwrap().unwrap();
        assert_eq!(text, b"one\ntwo\n");
    }
}
