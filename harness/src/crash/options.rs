//! The command `harness check crash` and its table of rounds.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use super::campaign;
use super::mode::Mode;
use super::round::{Round, Run};
use crate::check::exit_code;
use crate::servers::smalt::{Launch, binary};

/// Options of `harness check crash`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How to disturb the service.
    #[arg(long, value_enum, default_value_t)]
    pub part: Part,
    /// How many rounds (default 20), kills (default 100) or image workloads (default 1) to run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: Option<u64>,
    /// Seed that determines the operations and the moments of the kills.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of connections that write at the same time.
    #[arg(long, default_value_t = 6)]
    pub connections: usize,
    /// The `smalt` binary to kill; by default the one next to this program.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// Keep the store in this directory, which must be empty, instead of a temporary one.
    #[arg(long, value_name = "DIR")]
    pub location: Option<PathBuf>,
    /// Storage mode, for rounds and kills.
    #[arg(long, default_value = "durable")]
    pub mode: Mode,
}

/// How the service is disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Work on one growing store, `kill -9` the binary, and verify; repeat.
    #[default]
    Rounds,
    /// Kill child processes without sockets at random moments; takes a tenth of the time of a round
    /// each.
    Kills,
    /// Make child processes die at every named step of the store. Needs a build with `--features
    /// failpoints`.
    Failpoints,
    /// Check what a power failure can leave at each sync boundary of a workload. Linux only; needs
    /// `cargo build -p smalt-shim`.
    Images,
    /// Simulate full disks, failing syncs and short transfers. Linux only; needs `cargo build -p
    /// smalt-shim`.
    Errors,
}

/// Flaws that are printed for each round.
const SHOWN: usize = 10;

/// Rounds without `--cases`.
const ROUNDS: u64 = 20;

const HEADING: &str = "round  killed after  acknowledged  in flight   ready    blobs  messages  \
                       lost  corrupt";

fn line(round: &Round) -> String {
    let (lost, corrupt) = round.lost_and_corrupt();
    format!(
        "{:>5}  {:>9} ms  {:>12}  {:>9}  {:>3} ms  {:>7}  {:>8}  {lost:>4}  {corrupt:>7}",
        round.number,
        round.killed_after_ms,
        round.acknowledged,
        round.in_flight,
        round.ready_ms,
        round.blobs,
        round.messages,
    )
}

/// Runs the command and prints each round as it ends.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    if options.part != Part::Rounds {
        let options = options.clone();
        return tokio::task::spawn_blocking(move || campaign::run(&options)).await?;
    }
    let count = options.cases.unwrap_or(ROUNDS);
    let temporary = tempfile::tempdir()?;
    let location = options.location.clone();
    let launch = Launch {
        binary: binary(options.smalt.as_deref())?,
        location: location.unwrap_or_else(|| temporary.path().join("store")),
        flags: Vec::new(),
    };
    let mut run = Run::begin(launch, options.mode, options.seed, options.connections).await?;
    println!("{HEADING}");
    let mut rounds = Vec::new();
    for number in 1..=count {
        if std::io::stderr().is_terminal() {
            eprint!("\rround {number} of {count} ...\r");
        }
        let round = run.round(number).await?;
        println!("{}", line(&round));
        for flaw in round.flaws.iter().take(SHOWN) {
            println!("       {flaw}");
        }
        rounds.push(round);
    }
    let acknowledged: u64 = rounds.iter().map(|round| round.acknowledged).sum();
    let flaws = rounds.iter().map(Round::lost_and_corrupt);
    let (lost, corrupt) = flaws.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    println!(
        "{acknowledged} acknowledged operations, seed {}",
        options.seed
    );
    println!("{} rounds, {lost} lost, {corrupt} corrupt", rounds.len());
    let is_sound = lost + corrupt == 0 && acknowledged > 0;
    Ok(exit_code(is_sound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    /// A run that does nothing must not succeed.
    #[test]
    fn an_empty_run_is_rejected() {
        for part in ["rounds", "kills", "images"] {
            let error = parsed::<Options>(&format!("--part {part} --cases 0")).unwrap_err();
            assert!(error.to_string().contains("--cases <N>"), "{error}");
        }
    }
}
