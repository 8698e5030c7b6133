//! The command `harness check fleet sweep`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use smalt_protocol::Timestamp;
use tempfile::TempDir;

use super::blobs::Blobs;
use super::judge::{self, Account, Evidence};
use super::round::{Filled, Round, Times};
use crate::bench::servers::Start;
use crate::fleet::options::bar;
use crate::servers::smalt::{binary, named_or_beside};

/// Options of `harness check fleet sweep`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Number of blobs to put.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    blobs: u64,
    /// Number of containers that share the blobs.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    containers: u64,
    /// Number of concurrent sweeper processes.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// Mean time in milliseconds between two kills of a sweeper process; 0 kills none. With kills
    /// each run sweeps twice, and all due blobs must be gone after the second sweep.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    kill_every: u64,
    /// Number of runs; each has its own service unless `--refill` is given.
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    cases: u64,
    /// Fill one service once and use it for all runs, putting again only the blobs that the run
    /// before removed. Use this for services that take long to fill.
    #[arg(long)]
    refill: bool,
    /// Seed that determines which blobs are due and which process is killed when. Each run adds 1;
    /// with `--refill` that changes the kills only.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Report a sweep that takes longer than this many seconds as stuck.
    #[arg(long, default_value_t = 1_800, value_name = "S")]
    patience: u64,
    /// The `smalt` binary, which runs in durable mode on free ports; by default the one next to
    /// this program.
    #[arg(long, value_name = "FILE")]
    smalt: Option<PathBuf>,
    /// The `smalt-sweeper` binary; by default the one next to this program.
    #[arg(long, value_name = "FILE")]
    sweeper: Option<PathBuf>,
    /// Further options for the sweepers, after `--`, such as `-- --page-size 5000`.
    #[arg(last = true)]
    flags: Vec<String>,
}

impl Options {
    fn round(&self, number: u64) -> anyhow::Result<Round> {
        let kill_every = (self.kill_every > 0).then(|| Duration::from_millis(self.kill_every));
        Ok(Round {
            blobs: Blobs {
                count: self.blobs,
                containers: self.containers,
                seed: self.seed.wrapping_add(if self.refill { 0 } else { number }),
                now: Timestamp::MIN,
            },
            kill_seed: self.seed.wrapping_add(number),
            service: Start::Smalt(binary(self.smalt.as_deref())?),
            sweeper: named_or_beside(self.sweeper.as_deref(), "smalt-sweeper")?,
            flags: self.flags.clone(),
            workers: usize::try_from(self.workers)?,
            kill_every,
            sweeps: if kill_every.is_some() { 2 } else { 1 },
            patience: Duration::from_secs(self.patience),
        })
    }
}

/// Formats the figures of a run as one line.
fn figures(blobs: &Blobs, evidence: &Evidence, times: &Times) -> String {
    let per_s = |count: f64, seconds: f64| count / seconds.max(f64::EPSILON);
    let count = blobs.count as f64;
    let mut text = format!(
        "put {:.0}/s; swept in {:.1} s: {:.0} blobs/s; the service took {:.1} s of processor \
         time\n",
        per_s(times.put as f64, times.fill_s),
        times.sweep_s,
        per_s(count, times.sweep_s),
        times.service_cpu_s,
    );
    if evidence.killed > 0 {
        let peak = evidence.workers.iter().map(|w| w.peak_bytes).max();
        let peak_mib = peak.unwrap_or(0) as f64 / f64::from(1 << 20);
        return text + &format!("{peak_mib:.1} MiB at most in the workers that were not killed\n");
    }
    let calls: u64 = evidence.workers.iter().map(|worker| worker.calls).sum();
    let per_thousand = calls as f64 * 1_000.0 / count;
    text += &format!("{calls} calls, {per_thousand:.2} for 1,000 blobs\n");
    text += "worker     pages    blobs  of even  removed   calls  peak MiB   cpu s\n";
    for worker in &evidence.workers {
        text += &format!(
            "{:9} {:6} {:8} {:8.2} {:8} {:7} {:9.1} {:7.1}\n",
            worker.name,
            worker.pages,
            worker.handled,
            judge::share(worker, &evidence.workers),
            worker.removed,
            worker.calls,
            worker.peak_bytes as f64 / f64::from(1 << 20),
            worker.cpu_s,
        );
    }
    text
}

/// Runs `harness check fleet sweep`.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let mut failed = 0;
    let mut kept: Option<(TempDir, Filled, Blobs)> = None;
    for number in 0..options.cases {
        let mut round = options.round(number)?;
        let bar = bar(options.blobs, "put");
        let (temporary, filled) = match kept.take() {
            Some((temporary, mut filled, blobs)) => {
                round.blobs = blobs;
                filled.refill(&round.blobs, &bar).await?;
                (temporary, filled)
            }
            None => {
                let temporary = tempfile::tempdir()?;
                let filled = round.begin(temporary.path(), &bar).await?;
                (temporary, filled)
            }
        };
        bar.finish_and_clear();
        let (evidence, times) = round.run(&filled).await?;
        let account = Account::of(&round.blobs, &evidence);
        println!("seed {}: {account}", round.kill_seed);
        print!("{}", figures(&round.blobs, &evidence, &times));
        failed += u64::from(!account.is_clean());
        if options.refill {
            kept = Some((temporary, filled, round.blobs));
        } else {
            filled.end().await?;
        }
    }
    if let Some((_temporary, filled, _)) = kept {
        filled.end().await?;
    }
    if failed == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    println!("{failed} of {} runs found errors", options.cases);
    Ok(ExitCode::FAILURE)
}
