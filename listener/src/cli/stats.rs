//! `stats`: counts waiting messages, their age, and the rate at which their number changes.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use smalt_listener::partition::PartitionSettings;
use smalt_sleeve::port::{CallContext, ErrorKind, PortResult, Storage};
use smalt_worker::span;
use tokio::time::Instant;

use super::storage::{self, Retries};
use super::{Common, partitions, poison};

const WATCH_EVERY: Duration = Duration::from_secs(2);
/// Largest number of messages in a peek; the oldest of them stands for the oldest of all.
const PEEK: u32 = 32;

#[derive(Args)]
pub(crate) struct StatsFlags {
    /// Queue to count. If the --config file has `partitions` for it, all its queues, with totals.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// Poison queue. Default: as in the --config file, or the queue's name followed by -poison.
    #[arg(long, value_name = "NAME", env = "LISTENER_POISON_QUEUE")]
    poison_queue: Option<String>,
    /// Count again after this time, for example 10s, and show the rate of change.
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    interval: Option<Duration>,
    /// Count repeatedly until interrupted, every 2s or every --interval.
    #[arg(long)]
    watch: bool,
    /// Print one JSON object per count.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug)]
pub(super) struct QueueCounts {
    at: Instant,
    parts: Vec<Part>,
    poisoned: Option<u64>,
    /// Messages per second since the previous look; negative while the number falls.
    per_s: Option<f64>,
}

#[derive(Clone, Debug)]
struct Part {
    queue: String,
    messages: u64,
    oldest_age: Option<Duration>,
}

impl QueueCounts {
    fn messages(&self) -> u64 {
        self.parts.iter().map(|part| part.messages).sum()
    }

    fn oldest_age(&self) -> Option<Duration> {
        self.parts.iter().filter_map(|part| part.oldest_age).max()
    }
}

pub(super) struct Subject<'a> {
    pub(super) storage: &'a Arc<dyn Storage>,
    pub(super) queue: &'a str,
    /// Set for a partitioned queue.
    pub(super) set: Option<PartitionSettings>,
    pub(super) poison_queue: &'a str,
}

impl Subject<'_> {
    async fn look(&self, before: Option<&QueueCounts>) -> anyhow::Result<QueueCounts> {
        // A resize may have changed the queues since the last look.
        let queues = partitions::queues(self.storage, self.set.as_ref(), self.queue).await?;
        Ok(self.look_at(queues, before).await?)
    }

    pub(super) async fn look_at(
        &self,
        queues: Vec<String>,
        before: Option<&QueueCounts>,
    ) -> PortResult<QueueCounts> {
        let cx = CallContext::housekeeping();
        let at = Instant::now();
        let mut parts = Vec::new();
        for queue in queues {
            let facts = self.storage.queue_properties(&cx, &queue).await?;
            let seen = self.storage.peek_messages(&cx, &queue, PEEK).await?;
            let oldest = seen.messages.iter().map(|message| message.inserted).min();
            parts.push(Part {
                queue,
                messages: facts.approximate_count,
                oldest_age: oldest.map(|inserted| seen.server_time.since(inserted)),
            });
        }
        let poison = self.storage.queue_properties(&cx, self.poison_queue).await;
        let poisoned = match poison {
            Ok(facts) => Some(facts.approximate_count),
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut look = QueueCounts {
            at,
            parts,
            poisoned,
            per_s: None,
        };
        look.per_s = before.and_then(|before| {
            let seconds = at.saturating_duration_since(before.at).as_secs_f64();
            let change = look.messages() as f64 - before.messages() as f64;
            (seconds > 0.0).then(|| change / seconds)
        });
        Ok(look)
    }

    fn json(&self, look: &QueueCounts) -> serde_json::Value {
        let age_s = |age: Option<Duration>| age.map(|age| age.as_secs());
        let mut shown = json!({
            "queue": self.queue,
            "messages": look.messages(),
            "oldest_visible_age_s": age_s(look.oldest_age()),
            "change_per_s": look.per_s,
            "poison_queue": self.poison_queue,
            "poisoned": look.poisoned,
        });
        if self.set.is_some() {
            let parts = look.parts.iter().map(|part| {
                json!({
                    "queue": part.queue,
                    "messages": part.messages,
                    "oldest_visible_age_s": age_s(part.oldest_age),
                })
            });
            shown["partitions"] = parts.collect();
        }
        shown
    }

    pub(super) fn text(&self, look: &QueueCounts) -> String {
        let age = |age: Option<Duration>| match age {
            Some(age) => format!("oldest visible {}", poison::spoken(age.as_secs())),
            None => "none visible".to_owned(),
        };
        let rate = match look.per_s {
            Some(per_s) => format!(", {per_s:+.1}/s"),
            None => String::new(),
        };
        let poisoned = match look.poisoned {
            Some(count) => format!("{count} messages"),
            None => "not there".to_owned(),
        };
        let parts = look.parts.iter().filter(|_| self.set.is_some());
        let parts = parts.map(|part| {
            let (queue, messages) = (&part.queue, part.messages);
            format!("  {queue}: {messages}, {}\n", age(part.oldest_age))
        });
        format!(
            "{}: {} messages (approximately, hidden ones included), {}{rate}\n{}{}: {poisoned}",
            self.queue,
            look.messages(),
            age(look.oldest_age()),
            parts.collect::<String>(),
            self.poison_queue
        )
    }
}

pub(crate) async fn stats(common: &Common, flags: &StatsFlags) -> anyhow::Result<ExitCode> {
    let file = common.file()?;
    let poison_queue = flags.poison_queue.as_deref();
    let poison_queue = poison::poison_queue(&file, &flags.queue, poison_queue)?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    let subject = Subject {
        storage: &storage,
        queue: &flags.queue,
        set: partitions::of(&file, &flags.queue)?,
        poison_queue: &poison_queue,
    };
    if flags.watch {
        let every = flags.interval.unwrap_or(WATCH_EVERY);
        tokio::select! {
            watched = watch(&subject, every, flags.json) => watched?,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut look = subject.look(None).await?;
    if let Some(interval) = flags.interval {
        tokio::time::sleep(interval).await;
        look = subject.look(Some(&look)).await?;
    }
    match flags.json {
        true => println!("{}", subject.json(&look)),
        false => println!("{}", subject.text(&look)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints looks until interrupted: in place on a terminal, otherwise one after the other.
async fn watch(subject: &Subject<'_>, every: Duration, json: bool) -> anyhow::Result<()> {
    let in_place = std::io::stdout().is_terminal() && !json;
    let mut before: Option<QueueCounts> = None;
    let mut lines = 0;
    loop {
        let look = subject.look(before.as_ref()).await?;
        let text = match json {
            true => subject.json(&look).to_string(),
            false => subject.text(&look),
        };
        let mut out = std::io::stdout().lock();
        match in_place && before.is_some() {
            // Moves the cursor up over the previous look and clears it.
            true => writeln!(out, "\u{1b}[{lines}A\u{1b}[J{text}")?,
            false => writeln!(out, "{text}")?,
        }
        out.flush()?;
        drop(out);
        lines = text.lines().count();
        before = Some(look);
        tokio::time::sleep(every.max(Duration::from_millis(100))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::support::{FakeStorage, POISON, QUEUE, s};

    /// A flag wins over the file, the file over the default name.
    #[test]
    fn the_file_names_the_poison_queue() {
        let file = "[[listener.queue]]\nname = \"orders\"\npoison = { queue = \"dead\" }";
        let file = toml::from_str(file).unwrap();
        for (queue, flag, wanted) in [
            ("orders", None, "dead"),
            ("orders", Some("other"), "other"),
            ("mails", None, "mails-poison"),
        ] {
            let found = poison::poison_queue(&file, queue, flag).unwrap();
            assert_eq!(found, wanted);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn age_and_rate() {
        let fake = Arc::new(FakeStorage::new(&[QUEUE]));
        let storage = Arc::clone(&fake) as Arc<dyn Storage>;
        let subject = Subject {
            storage: &storage,
            queue: QUEUE,
            set: None,
            poison_queue: POISON,
        };
        let empty = subject.look(None).await.unwrap();
        assert_eq!(
            (empty.messages(), empty.oldest_age(), empty.poisoned),
            (0, None, None)
        );
        assert!(subject.text(&empty).contains("none visible"));
        for _ in 0..30 {
            fake.put(QUEUE, "x");
        }
        tokio::time::sleep_until(empty.at + s(10)).await;
        let later = subject.look(Some(&empty)).await.unwrap();
        assert_eq!(later.oldest_age(), Some(s(10)));
        assert_eq!(later.per_s, Some(3.0));
        assert!(subject.text(&later).contains("+3.0/s"));
        fake.steal(QUEUE, s(60));
        tokio::time::advance(s(1)).await;
        let hidden = subject.look(Some(&later)).await.unwrap();
        assert_eq!((hidden.messages(), hidden.oldest_age()), (30, None));
        assert_eq!(subject.json(&hidden)["change_per_s"], 0.0);
        assert!(subject.json(&hidden).get("partitions").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn partitions_are_summed_and_shown() {
        let queues = ["orders-00", "orders-01"];
        let fake = Arc::new(FakeStorage::new(&queues));
        let storage = Arc::clone(&fake) as Arc<dyn Storage>;
        let subject = Subject {
            storage: &storage,
            queue: QUEUE,
            set: Some(PartitionSettings::new(QUEUE, 2, "maps")),
            poison_queue: POISON,
        };
        for (queue, after) in [(queues[1], s(5)), (queues[0], s(2)), (queues[1], s(1))] {
            fake.put(queue, "x");
            tokio::time::advance(after).await;
        }
        let queues = queues.map(str::to_owned).to_vec();
        let look = subject.look_at(queues, None).await.unwrap();
        assert_eq!(
            subject.text(&look),
            "orders: 3 messages (approximately, hidden ones included), oldest visible 8 s\n  \
             orders-00: 1, oldest visible 3 s\n  orders-01: 2, oldest visible 8 s\n\
             orders-poison: not there"
        );
        let json = subject.json(&look);
        assert_eq!(
            (&json["messages"], &json["queue"]),
            (&json!(3), &json!(QUEUE))
        );
        assert_eq!(json["partitions"][1]["messages"], 2);
    }
}
