//! The command `harness histories`.

use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget};

use super::campaign::{Campaign, Outcome};
use super::coverage::{Coverage, Shown};
use super::{failure, regressions};
use crate::replay::corpus;

/// Longest list of cells in a message.
const CELLS_SHOWN_MAX: usize = 20;

/// Options of `harness histories`.
///
/// Every operation has an intent: done as things stand, refused for what is there, refused for its
/// syntax. Intended and actual shares are printed at the end. While cells of the matrix operation x
/// outcome x condition header are unreached, later histories go for them.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Seed: the same one makes the same histories, for the same number of jobs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many histories.
    #[arg(long, default_value_t = 2_000)]
    histories: u32,
    /// Longest history, in operations.
    #[arg(long, default_value_t = 50)]
    operations: usize,
    /// Keep the state on disk, and stop and start the service in between.
    #[arg(long)]
    restarts: bool,
    /// Look at the invariants after so many operations, and at the end of every history.
    #[arg(long, default_value = "5", value_name = "OPERATIONS")]
    invariants_every: NonZeroUsize,
    /// How many histories run side by side, each job with a seed of its own.
    #[arg(long, default_value = "1")]
    jobs: NonZeroUsize,
    /// Ask nobody: what the generator and the model reach by themselves, to tune weights.
    #[arg(long, conflicts_with = "restarts")]
    dry: bool,
    /// Print how often each outcome of each operation was reached, and those that were not.
    #[arg(long)]
    coverage: bool,
    /// Write the same as JSON.
    #[arg(long, value_name = "FILE")]
    coverage_json: Option<PathBuf>,
    /// Fail when an outcome that the model declares was not reached.
    #[arg(long)]
    require_coverage: bool,
    /// Write the history that failed, shrunk, as a trace to fixtures/regressions/NAME.ndjson.
    #[arg(long, value_name = "NAME", value_parser = failure::name)]
    save: Option<String>,
    /// Run nothing: write smalt's answers of today into a trace that `--save` wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    again: Option<PathBuf>,
    /// Where `--save` writes.
    #[arg(long, default_value = "fixtures/regressions", value_name = "DIRECTORY")]
    save_in: PathBuf,
}

/// Runs the command. Not to be called from within a runtime: every history has its own.
///
/// # Errors
/// When a file cannot be written.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its caller"
)]
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(path) = &options.again {
        let changed = regressions::again(path)?;
        println!(
            "{}: {changed} answers have another status now",
            path.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let bar = ProgressBar::new(u64::from(options.histories));
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let campaign = Campaign {
        seed: options.seed,
        histories: options.histories,
        operations: options.operations,
        restarts: options.restarts,
        invariants_every: options.invariants_every.get(),
        dry: options.dry,
    };
    let outcome = campaign.run_jobs(options.jobs.get(), &|| bar.inc(1));
    bar.finish_and_clear();
    tell(options, &outcome)?;
    let mut good = true;
    if let Some(failed) = &outcome.failed {
        eprintln!("{failed}");
        if let Some(name) = &options.save {
            println!("{}", failed.save(&options.save_in, name)?);
        }
        good = false;
    }
    if options.require_coverage {
        good &= is_covered(&outcome.coverage);
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stdout, reason = "a command talks to its caller")]
fn tell(options: &Options, outcome: &Outcome) -> anyhow::Result<()> {
    let coverage = &outcome.coverage;
    if options.coverage {
        print!("{coverage}");
    }
    if let Some(path) = &options.coverage_json {
        let text = serde_json::to_string_pretty(&coverage.json())?;
        corpus::write(path, &(text + "\n"))?;
    }
    println!(
        "{} operations in {} histories, {} of {} outcomes reached",
        coverage.steps(),
        options.histories,
        coverage.reached(),
        Coverage::declared(),
    );
    println!("made for: {}", coverage.intended());
    println!("came to:  {}", coverage.actual());
    println!("{}", outcome.pace);
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a command talks to its caller")]
fn is_covered(coverage: &Coverage) -> bool {
    let (unreached, stale) = (coverage.unreached(), coverage.stale_excuses());
    if !unreached.is_empty() {
        eprintln!(
            "{} outcomes that the model declares were not reached: run more histories, or take \
             out of harness/model/src/outcomes what cannot come",
            unreached.len()
        );
    }
    for cell in unreached.iter().take(CELLS_SHOWN_MAX) {
        eprintln!("  {}", Shown(cell));
    }
    for cell in &stale {
        eprintln!("excused as unreachable, and reached: {}", Shown(cell));
    }
    unreached.is_empty() && stale.is_empty()
}
