//! The log of a worker on standard error, as text or as one JSON object per line.

use std::borrow::Cow;
use std::fmt::Debug;
use std::io::IsTerminal;

use clap::ValueEnum;
use smalt_protocol::terminal;
use tracing::Subscriber;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt;

use crate::progress::Beside;

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text lines.
    Text,
    /// One JSON object per line.
    Json,
}

/// The string is neither a level nor a filter.
#[derive(Debug, thiserror::Error)]
#[error("--log-level {level}: {source}; use error, warn, info, debug, trace or e.g. smalt=debug")]
pub struct BadLevel {
    level: String,
    source: ParseError,
}

/// Starts the log of the process. A second call has no effect.
///
/// # Errors
/// [`BadLevel`].
pub fn start(format: Format, level: &str) -> Result<(), BadLevel> {
    let filter = filter_of(level).parse().map_err(|source| BadLevel {
        level: level.to_owned(),
        source,
    })?;
    let _ = match format {
        Format::Json => json(filter, || Beside).try_init(),
        Format::Text => text(filter, || Beside, is_coloured()).try_init(),
    };
    Ok(())
}

/// Returns the filter of a level. Libraries log from `warn` on: the storage client logs every
/// failed attempt at info, also those that are retried, and sockets and TLS fill a log at debug.
fn filter_of(level: &str) -> Cow<'_, str> {
    match level {
        "info" | "debug" | "trace" => Cow::Owned(format!("warn,smalt={level}")),
        filter => Cow::Borrowed(filter),
    }
}

/// Returns whether to color standard error: if it is a terminal and `NO_COLOR` is not set.
pub fn is_coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Creates a text log. Field values cannot control the terminal or forge a line.
pub fn text<W>(filter: Targets, writer: W, colour: bool) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let field = |out: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
        terminal::write_field(out, field.name(), value)
    };
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(writer)
        .with_target(false)
        .with_ansi(colour)
        .fmt_fields(debug_fn(field).delimited(" "))
        .finish()
        .with(filter)
}

/// Creates a JSON log: one object per line, with the fields next to `timestamp`, `level` and
/// `message`.
pub fn json<W>(filter: Targets, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(writer)
        .with_target(false)
        .json()
        .flatten_event(true)
        .finish()
        .with(filter)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn hostile_fields_stay_on_one_line_without_control_characters() {
        let hostile = "a\u{1b}[2J\u{9b}31m\r\n2026 ERROR forged\u{2028}\u{202e}\u{85}";
        let written = LogBuffer::default();
        let writer = written.clone();
        let filter = Targets::new().with_default(LevelFilter::INFO);
        let subscriber = text(filter, move || writer.clone(), false);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(reason = %hostile, id = hostile, "said {hostile}");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text:?}");
        let line = text.trim_end_matches('\n');
        assert!(!line.chars().any(terminal::steers), "{text:?}");
        assert_eq!(line.matches("\\u{1b}[2J").count(), 3, "{text:?}");
        assert!(
            line.contains("WARN") && line.contains("reason=a"),
            "{text:?}"
        );
    }

    /// A level shows the lines of the worker, its library and their storage client, and only the
    /// warnings of other libraries; a filter is taken as it is.
    #[test]
    fn a_level_shows_our_lines() {
        let logged = |level: &str| {
            let written = LogBuffer::default();
            let writer = written.clone();
            let filter = filter_of(level).parse().unwrap();
            let subscriber = text(filter, move || writer.clone(), false);
            tracing::subscriber::with_default(subscriber, || {
                tracing::debug!(target: "smalt_sweeper::cycle", "ours");
                tracing::debug!(target: "hyper_util::client", "theirs");
                tracing::warn!(target: "hyper_util::client", "warning");
            });
            let bytes = written.0.lock().unwrap().clone();
            let lines = String::from_utf8(bytes).unwrap();
            ["ours", "theirs", "warning"].map(|line| lines.contains(line))
        };
        assert_eq!(logged("debug"), [true, false, true]);
        assert_eq!(logged("info"), [false, false, true]);
        assert_eq!(logged("error"), [false, false, false]);
        assert_eq!(logged("warn,hyper_util=debug"), [false, true, true]);
    }

    #[test]
    fn unknown_level_is_rejected_with_the_valid_ones() {
        let error = start(Format::Json, "smalt=loud").unwrap_err().to_string();
        assert!(error.starts_with("--log-level smalt=loud: "), "{error}");
        assert!(error.contains("use error, warn, info"), "{error}");
    }
}
