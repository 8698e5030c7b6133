//! `bench`: compares this listener with a bare loop of get and delete that uses the same client, on
//! a queue that is created for the measurement and deleted afterwards.
//!
//! Both use the same number of tasks and receive and delete the same number of messages at once.
//! They run alternately, and each result is the median of its rounds. The difference is the cost of
//! the listener's locks, decisions, log and scaling.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use smalt_listener::config::{Policy, Tasks};
use smalt_listener::handler::{Verdict, function};
use smalt_listener::{Decision, ListenerConfig, Observer, QueueListener};
use smalt_sleeve::port::{CallContext, MessageTtl, PortResult, Storage};
use smalt_worker::process;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::storage::{self, Retries};
use super::{Common, ambient, progress};

const PUTS_AT_ONCE: usize = 16;
/// Longer than any round.
const VISIBILITY: Duration = Duration::from_secs(300);
/// High enough that the token bucket never empties.
const RATE_PER_S: u32 = 10_000_000;
const ROUND_MAX: Duration = Duration::from_secs(600);

#[derive(Args)]
pub(crate) struct BenchFlags {
    /// Messages per round, from 1 to 1,000,000.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    messages: u64,
    /// Length of each message in bytes, from 1 to 65,536.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    size: u32,
    /// Number of dequeue tasks, from 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    tasks: u32,
    /// Messages per get, from 1 to 32, all handled at once.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=32))]
    slots: u32,
    /// Rounds of the loop and of the listener, from 1 to 100. The result is the median.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Print one JSON object in place of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    per_s: f64,
    /// Processor time of this process per message; `None` if the system does not report it.
    cpu_us: Option<f64>,
}

struct Watch {
    at: Instant,
    cpu: Option<Duration>,
}

impl Watch {
    fn start() -> Self {
        Watch {
            at: Instant::now(),
            cpu: ambient::cpu_time(),
        }
    }

    fn stop(&self, messages: u64) -> Round {
        let messages = messages as f64;
        let cpu = ambient::cpu_time().zip(self.cpu);
        let cpu = cpu.map(|(now, then)| now.saturating_sub(then));
        Round {
            per_s: messages / self.at.elapsed().as_secs_f64(),
            cpu_us: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / messages),
        }
    }
}

struct Bench<'a> {
    storage: Arc<dyn Storage>,
    queue: String,
    flags: &'a BenchFlags,
}

impl Bench<'_> {
    async fn fill(&self) -> PortResult<()> {
        let cx = CallContext::default();
        let text = "x".repeat(self.flags.size as usize);
        let (cx, text) = (&cx, &text);
        let put = |_| async move {
            let (never, now) = (MessageTtl::Never, Duration::ZERO);
            let put = self.storage.put_message(cx, &self.queue, text, never, now);
            put.await.map(|_| ())
        };
        let puts = stream::iter(0..self.flags.messages).map(put);
        puts.buffer_unordered(PUTS_AT_ONCE).try_collect().await
    }

    /// Runs the bare loop: get messages, delete them.
    async fn bare(&self) -> anyhow::Result<Round> {
        let left = Arc::new(AtomicU64::new(self.flags.messages));
        let watch = Watch::start();
        let tasks = (0..self.flags.tasks).map(|_| {
            let (storage, queue) = (Arc::clone(&self.storage), self.queue.clone());
            let task = bare_task(storage, queue, self.flags.slots, Arc::clone(&left));
            tokio::spawn(task)
        });
        let tasks = try_join_all(tasks.collect::<Vec<_>>());
        for ended in tokio::time::timeout(ROUND_MAX, tasks).await?? {
            ended?;
        }
        Ok(watch.stop(self.flags.messages))
    }

    async fn listener(&self) -> anyhow::Result<Round> {
        let mut config = ListenerConfig {
            visibility: VISIBILITY,
            policy: Policy::Fixed,
            tasks: Tasks {
                min: self.flags.tasks,
                max: self.flags.tasks,
            },
            slots: self.flags.slots,
            rate_per_s: RATE_PER_S,
            ..ListenerConfig::new(&self.queue)
        };
        config.idle.max = config.idle.min;
        let handler = Arc::new(function(|_, _| async { Verdict::Ok }));
        let seen = Arc::new(Completion {
            left: AtomicU64::new(self.flags.messages),
            last: Notify::new(),
        });
        let storage = Arc::clone(&self.storage);
        let listener = QueueListener::new(config, storage, handler, process::seed()?)?
            .observed_by(Arc::clone(&seen) as Arc<dyn Observer>);
        let watch = Watch::start();
        let mut round = None;
        // Measures until the last delete; the listener then still waits for an empty queue.
        let ended = listener.run_until(async {
            if tokio::time::timeout(ROUND_MAX, seen.last.notified())
                .await
                .is_ok()
            {
                round = Some(watch.stop(self.flags.messages));
            }
        });
        ended.await?;
        round.context("the listener did not finish in ten minutes")
    }

    async fn rounds(&self) -> anyhow::Result<(Vec<Round>, Vec<Round>)> {
        let (mut bare, mut listener) = (Vec::new(), Vec::new());
        let bar = progress::bar(Some(u64::from(self.flags.rounds) * 2), "bench");
        for _ in 0..self.flags.rounds {
            bar.set_message("bare loop");
            self.fill().await?;
            bare.push(self.bare().await?);
            bar.inc(1);
            bar.set_message("listener");
            self.fill().await?;
            listener.push(self.listener().await?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok((bare, listener))
    }
}

async fn bare_task(
    storage: Arc<dyn Storage>,
    queue: String,
    slots: u32,
    left: Arc<AtomicU64>,
) -> PortResult<()> {
    let cx = CallContext::default();
    while left.load(Ordering::Relaxed) > 0 {
        let got = storage.get_messages(&cx, &queue, slots, VISIBILITY).await?;
        let deletes = got.messages.iter().map(|message| {
            let (id, receipt) = (&message.id, &message.pop_receipt);
            storage.delete_message(&cx, &queue, id, receipt)
        });
        for deleted in join_all(deletes).await {
            deleted?;
            left.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Notifies when the last message is settled.
struct Completion {
    left: AtomicU64,
    last: Notify,
}

impl Observer for Completion {
    fn decided(&self, decision: &Decision) {
        let done = !decision.outcome.is_failure();
        if done && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.last.notify_one();
        }
    }
}

/// Measures, then deletes the queue even after a failure.
pub(crate) async fn bench(common: &Common, flags: &BenchFlags) -> anyhow::Result<ExitCode> {
    let file = common.file()?;
    let azure = storage::open_azure(common, &file, Retries::OfTheListener).await?;
    let bench = Bench {
        storage: Arc::clone(&azure) as Arc<dyn Storage>,
        queue: format!("smalt-bench-{:08x}", process::seed()? & 0xffff_ffff),
        flags,
    };
    let cx = CallContext::default();
    bench.storage.create_queue(&cx, &bench.queue).await?;
    let measured = tokio::select! {
        measured = bench.rounds() => measured,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    let removed = azure.delete_queue(&cx, &bench.queue).await;
    let (bare, listener) = measured?;
    removed.with_context(|| format!("cannot delete the temporary queue {}", bench.queue))?;
    let (bare, listener) = (summary(&bare), summary(&listener));
    match flags.json {
        true => println!("{}", as_json(flags, &bare, &listener)),
        false => print!("{}", as_text(flags, &bare, &listener)),
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(rounds: &[Round]) -> Round {
    let cpu: Option<Vec<f64>> = rounds.iter().map(|round| round.cpu_us).collect();
    Round {
        per_s: median(rounds.iter().map(|round| round.per_s).collect()),
        cpu_us: cpu.map(median),
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

fn as_text(flags: &BenchFlags, bare: &Round, listener: &Round) -> String {
    let cpu = |round: &Round| match round.cpu_us {
        Some(us) => format!("{us:>10.0} us of processor time each"),
        None => String::new(),
    };
    let line = |name: &str, round: &Round| {
        format!("{name:<12}{:>10.0} messages/s{}\n", round.per_s, cpu(round))
    };
    format!(
        "{} messages of {} bytes, {} tasks, {} per get, median of {}\n{}{}ratio       {:>10.2}\n",
        flags.messages,
        flags.size,
        flags.tasks,
        flags.slots,
        flags.rounds,
        line("bare loop", bare),
        line("listener", listener),
        listener.per_s / bare.per_s,
    )
}

fn as_json(flags: &BenchFlags, bare: &Round, listener: &Round) -> serde_json::Value {
    let round = |round: &Round| json!({ "per_s": round.per_s, "cpu_us": round.cpu_us });
    json!({
        "messages": flags.messages,
        "size": flags.size,
        "tasks": flags.tasks,
        "slots": flags.slots,
        "rounds": flags.rounds,
        "bare": round(bare),
        "listener": round(listener),
        "ratio": listener.per_s / bare.per_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::support::{FakeStorage, Op};

    /// Both process every message and delete each once.
    #[tokio::test(start_paused = true)]
    async fn both_process_all_messages() {
        let storage = Arc::new(FakeStorage::new(&["bench"]));
        let flags = BenchFlags {
            messages: 100,
            size: 3,
            tasks: 3,
            slots: 8,
            rounds: 2,
            json: false,
        };
        let bench = Bench {
            storage: Arc::clone(&storage) as Arc<dyn Storage>,
            queue: "bench".to_owned(),
            flags: &flags,
        };
        let (bare, listener) = bench.rounds().await.unwrap();
        assert_eq!((bare.len(), listener.len()), (2, 2));
        assert!(storage.stored("bench").is_empty());
        assert_eq!(storage.calls(Op::Delete), 400);
    }

    #[test]
    fn the_median_of_the_rounds_is_reported() {
        assert_eq!(median(vec![9.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(vec![2.0]), 2.0);
    }
}
