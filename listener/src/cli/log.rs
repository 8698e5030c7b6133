//! Log lines, to standard error.

use std::fmt::Debug;
use std::io::IsTerminal;

use anyhow::Context;
use smalt_protocol::terminal;
use tracing::Subscriber;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::util::SubscriberInitExt;

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
    match common.log {
        LogFormat::Json => json(filter, || Beside).init(),
        LogFormat::Text => {
            let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            text(filter, || Beside, colour).init();
        }
    }
    Ok(())
}

/// Lines for people: no value steers the terminal or forges a line.
fn text<W>(filter: EnvFilter, writer: W, colour: bool) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let field = |out: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
        terminal::write_field(out, field.name(), value)
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_target(false)
        .with_ansi(colour)
        .fmt_fields(debug_fn(field).delimited(" "))
        .finish()
}

/// One object per line, the fields beside `timestamp`, `level` and `message`.
fn json<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_target(false)
        .json()
        .flatten_event(true)
        .finish()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;
    use crate::cli::support::handlers::Obey;
    use crate::cli::support::{FakeStorage, QUEUE, config, listener};

    /// The fields of a message's line: those of the guide's table.
    const OF_A_MESSAGE: [&str; 15] = [
        "attempt",
        "expiring",
        "level",
        "message",
        "ms",
        "msg_id",
        "op",
        "outcome",
        "queue",
        "reason",
        "renewals",
        "req_id",
        "timestamp",
        "trace",
        "worker",
    ];

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The lines of `once` over these messages, as `--log json` writes them.
    async fn logged(texts: &[&str]) -> Vec<Value> {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = super::json(EnvFilter::new("info"), move || writer.clone());
        let text = once(texts, &written, subscriber).await;
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    async fn once(
        texts: &[&str],
        written: &Written,
        subscriber: impl Subscriber + Send + Sync,
    ) -> String {
        let guard = tracing::subscriber::set_default(subscriber);
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        for text in texts {
            storage.put(QUEUE, text);
        }
        let (listener, _) = listener(config(), &storage, Obey::default());
        listener.once().await.unwrap();
        drop(guard);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    /// Whatever a field holds, a line for people is one line and steers no terminal; escape
    /// sequences of the log's own are its colours alone.
    #[test]
    fn a_line_for_people_is_one_line() {
        let hostile = "a\u{1b}[2J\u{9b}31m\r\n2026 ERROR forged\u{2028}\u{202e}\u{85}";
        let written = Written::default();
        let writer = written.clone();
        let subscriber = super::text(EnvFilter::new("info"), move || writer.clone(), false);
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

    /// Every line says who wrote it and what it is about; a message's line has all of its fields.
    #[tokio::test(start_paused = true)]
    async fn a_line_has_the_fields_of_the_guide() {
        let lines = logged(&["sleep 250", "reject", "retry"]).await;
        for line in &lines {
            for field in ["timestamp", "level", "message", "worker", "op", "queue"] {
                assert!(line[field].is_string(), "{field} in {line}");
            }
        }
        let messages: Vec<_> = lines.iter().filter(|l| l["op"] == "message").collect();
        assert_eq!(messages.len(), 3);
        for line in &messages {
            let fields: Vec<_> = line.as_object().unwrap().keys().collect();
            assert_eq!(fields, OF_A_MESSAGE, "{line}");
            assert_eq!(
                (&line["attempt"], &line["queue"]),
                (&json!(1), &json!(QUEUE))
            );
            assert_eq!(line["trace"], "listener/1", "as in a poison copy");
        }
        let of = |outcome| messages.iter().find(|l| l["outcome"] == outcome).unwrap();
        assert_eq!(of("done")["ms"], 250);
        assert_eq!(
            (&of("done")["level"], &of("done")["reason"]),
            (&json!("INFO"), &json!(""))
        );
        assert_eq!(of("poisoned")["level"], "WARN");
        assert_eq!(of("poisoned")["reason"], "bad order");
        for (outcome, op) in [
            ("done", "delete"),
            ("poisoned", "delete"),
            ("retried", "update"),
        ] {
            let sent = of(outcome)["req_id"].as_str().unwrap();
            let sent: Value = serde_json::from_str(sent).unwrap();
            let id = of(outcome)["msg_id"].clone();
            assert_eq!(sent, json!({ "worker": "listener", "op": op, "msg": id }));
        }
    }
}
