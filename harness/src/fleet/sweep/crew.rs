//! The workers of one sweep, from their start until the last has ended by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::judge::Worker;
use crate::fleet::herd::{Herd, Plan};
use crate::servers::ServerError;
use crate::servers::process::Process;

/// Interval at which the processes are checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Result of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Reports of the workers that ended by themselves.
    pub workers: Vec<Worker>,
    /// Number of processes that were killed.
    pub killed: u64,
    /// Seconds from the first start until the first worker ended, which ends the cycle.
    pub seconds: f64,
    /// Whether the sweep did not end in time.
    pub is_stuck: bool,
}

/// Measurements of a running process.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    peak_bytes: u64,
    cpu: Duration,
}

/// Runs workers for one cycle. No process is killed once the cycle is over.
pub async fn sweep(plan: Plan, patience: Duration) -> Result<Swept, ServerError> {
    let begun = Instant::now();
    let mut herd = Herd::start(plan)?;
    let mut swept = Swept::default();
    let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
    let mut next_death = Instant::now() + herd.next_death();
    while !herd.running().is_empty() {
        if begun.elapsed() > patience {
            swept.is_stuck = true;
            break;
        }
        tokio::select! {
            biased;
            () = sleep_until(next_death), if swept.workers.is_empty() => {
                herd.kill_one().await?;
                next_death = Instant::now() + herd.next_death();
            }
            () = tokio::time::sleep(LOOK_EVERY) => {
                note(herd.running(), &mut seen);
                for process in herd.take_ended() {
                    if swept.workers.is_empty() {
                        swept.seconds = begun.elapsed().as_secs_f64();
                    }
                    let seen = process.id().and_then(|id| seen.get(&id));
                    let seen = seen.copied().unwrap_or_default();
                    swept.workers.push(ended(process, seen).await?);
                }
            }
        }
    }
    swept.killed = herd.killed;
    herd.end().await?;
    Ok(swept)
}

fn note(running: &[Process], seen: &mut BTreeMap<u32, Seen>) {
    for process in running {
        let Some(id) = process.id() else { continue };
        let seen = seen.entry(id).or_default();
        seen.peak_bytes = seen
            .peak_bytes
            .max(process.peak_resident_bytes().unwrap_or(0));
        seen.cpu = seen.cpu.max(process.cpu_time().unwrap_or_default());
    }
}

async fn ended(process: Process, seen: Seen) -> Result<Worker, ServerError> {
    let (exit, report) = process.ended().await?;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap_or_default();
    Ok(Worker {
        exit,
        peak_bytes: seen.peak_bytes,
        cpu_s: seen.cpu.as_secs_f64(),
        ..read(&report)
    })
}

/// Parses the report of `smalt-sweeper once`.
fn read(report: &serde_json::Value) -> Worker {
    let mut worker = Worker {
        name: report["worker"].as_str().unwrap_or_default().to_owned(),
        calls: sum(&report["transactions"]),
        ..Worker::default()
    };
    let containers = report["containers"].as_object();
    for container in containers.into_iter().flat_map(|all| all.values()) {
        let outcomes = &container["outcomes"];
        let of = |outcome: &str| outcomes[outcome].as_u64().unwrap_or(0);
        worker.pages += container["pages"].as_u64().unwrap_or(0);
        worker.handled += sum(outcomes);
        worker.removed += of("deleted") + of("moved");
        worker.gone += of("gone");
    }
    worker
}

fn sum(counts: &serde_json::Value) -> u64 {
    let counts = counts.as_object().into_iter().flat_map(|all| all.values());
    counts.filter_map(serde_json::Value::as_u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_summed_up() {
        let report = serde_json::json!({
            "worker": "fleet-1",
            "containers": {
                "a": { "pages": 2, "outcomes": { "deleted": 3, "no_ttl": 40, "gone": 1 } },
                "b": { "pages": 1, "outcomes": { "moved": 2, "not_due": 5 } },
            },
            "transactions": { "list_blobs": 3, "delete_blob": 6 },
        });
        let expected = Worker {
            name: "fleet-1".to_owned(),
            pages: 3,
            handled: 51,
            removed: 5,
            gone: 1,
            calls: 9,
            ..Worker::default()
        };
        assert_eq!(read(&report), expected);
        assert_eq!(read(&serde_json::Value::Null), Worker::default());
    }
}
