//! Tests of the log lines' fields.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::cli::support::handlers::Obey;
use crate::cli::support::{FakeStorage, QUEUE, config, listener};

/// The fields of a message's line, as in the guide's table.
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

/// Returns the lines of `once` over these messages, as `--log json` writes them.
async fn logged(texts: &[&str]) -> Vec<Value> {
    let written = LogBuffer::default();
    let writer = written.clone();
    let filter = Targets::new().with_default(LevelFilter::INFO);
    let subscriber = smalt_worker::log::json(filter, move || writer.clone());
    let text = once(texts, &written, subscriber).await;
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

async fn once(
    texts: &[&str],
    written: &LogBuffer,
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

/// Every line has the common fields; a message's line has all of its own.
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
