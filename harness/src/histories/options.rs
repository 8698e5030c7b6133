//! The command `harness check histories`.

use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget};

use super::campaign::{About, Campaign, Outcome};
use super::coverage::{Coverage, Shown};
use super::regressions;
use crate::check::{Cases, exit_code};

/// Maximum number of cells in a message.
const CELLS_SHOWN_MAX: usize = 20;
/// Without `--about`, one history of tables and one of a hierarchical account run for this many
/// others.
const OTHERS_EVERY: u32 = 4;

/// Runs random histories of one client and compares every answer with the model's.
///
/// Histories of blobs and queues run first, then those of tables and of hierarchical accounts.
///
/// Every operation has an intent: to succeed, to be rejected because of the state, or to be
/// rejected because of its syntax. The intended and actual shares are printed at the end. While
/// cells of the matrix operation x outcome x condition header are not reached, later histories
/// target them. The circumstances in which operations meet are counted as well: states, boundaries
/// and neighbours, derived from what happened.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Histories; 2,000 of each kind by default. The same seed and number of jobs generate the same
    /// histories. A failing history is shrunk and saved as a trace.
    #[command(flatten)]
    cases: Cases,
    /// Kind of histories; by default blobs and queues, then a quarter as many of tables and of
    /// hierarchical accounts.
    #[arg(long, value_enum)]
    about: Option<About>,
    /// Maximum length of a history, in operations.
    #[arg(long, default_value = "50")]
    operations: NonZeroUsize,
    /// Keep the state on disk, and restart the service during histories.
    #[arg(long)]
    restarts: bool,
    /// Check the invariants after this many operations, and at the end of every history.
    #[arg(long, default_value = "5", value_name = "OPERATIONS")]
    invariants_every: NonZeroUsize,
    /// Run only the generator and the model, without a service, to tune the generator's weights.
    #[arg(long, conflicts_with = "restarts")]
    dry: bool,
    /// Print how often each outcome of each operation and each circumstance occurred, and which
    /// outcomes did not.
    #[arg(long)]
    coverage: bool,
    /// Fail if an outcome or a circumstance that the model declares did not occur.
    #[arg(long)]
    require_coverage: bool,
    /// Fail if a circumstance that the model declares did not occur; 20,000 histories reach all.
    #[arg(long)]
    require_matrix: bool,
    /// Instead of running histories, update the trace of a failed history with smalt's current
    /// answers.
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,
}

/// Default number of histories.
const CASES: u64 = 2_000;

/// Runs the command. Must not be called from within a runtime, because every history creates its
/// own.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(path) = &options.again {
        let changed = regressions::again(path)?;
        println!(
            "{}: {changed} answers have another status now",
            path.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let cases = u32::try_from(options.cases.cases.unwrap_or(CASES))?;
    let all = [About::Account, About::Tables, About::Lake];
    let [histories, tables, lake] = all.map(|about| match (options.about, about) {
        (None, About::Account) => cases,
        (None, _) => cases / OTHERS_EVERY,
        (Some(only), about) if only == about => cases,
        _ => 0,
    });
    let bar = ProgressBar::new(u64::from(histories) + u64::from(tables) + u64::from(lake));
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let account = Campaign {
        about: About::Account,
        seed: options.cases.seed,
        histories,
        operations: options.operations.get(),
        restarts: options.restarts,
        invariants_every: options.invariants_every.get(),
        dry: options.dry,
    };
    let of_tables = Campaign {
        about: About::Tables,
        histories: tables,
        ..account
    };
    let of_lake = Campaign {
        about: About::Lake,
        histories: lake,
        ..account
    };
    let mut outcomes = Vec::new();
    for campaign in [account, of_tables, of_lake] {
        let outcome = campaign.run_jobs(options.cases.jobs, &|| bar.inc(1));
        let has_failed = outcome.failed.is_some();
        outcomes.push((campaign, outcome));
        if has_failed {
            break;
        }
    }
    bar.finish_and_clear();
    let coverage = tell(options, &outcomes);
    let mut good = true;
    if let Some(failed) = outcomes.iter().find_map(|(_, one)| one.failed.as_ref()) {
        eprintln!("{failed}");
        println!("{}", failed.save(&options.cases)?);
        good = false;
    }
    if options.require_coverage || options.require_matrix {
        good &= is_full(&coverage);
    }
    if options.require_coverage {
        good &= is_covered(&coverage);
    }
    Ok(exit_code(good))
}

fn tell(options: &Options, outcomes: &[(Campaign, Outcome)]) -> Coverage {
    let mut coverage = Coverage::default();
    for (_, outcome) in outcomes {
        coverage.add(&outcome.coverage);
    }
    if options.coverage {
        print!("{coverage}");
    }
    for (campaign, outcome) in outcomes {
        let what = match campaign.about {
            About::Account => "blobs and queues",
            About::Tables => "tables",
            About::Lake => "both interfaces",
        };
        let own = &outcome.coverage;
        println!(
            "{what}: {} operations in {} histories, {}",
            own.steps(),
            outcome.histories,
            outcome.pace
        );
        println!("  made for: {}", own.intended());
        println!("  came to:  {}", own.actual());
    }
    let (unreached, places) = coverage.unreached_places();
    println!(
        "{} of {} outcomes and {} of {places} circumstances reached",
        coverage.reached(),
        Coverage::declared(),
        places - unreached.len(),
    );
    if options.coverage || options.require_matrix {
        for (area, (reached, all, rarest)) in coverage.areas() {
            println!("  {area}: {reached} of {all}, the rarest {rarest} times");
        }
    }
    coverage
}

fn is_full(coverage: &Coverage) -> bool {
    let (unreached, _) = coverage.unreached_places();
    for place in &unreached {
        eprintln!("never reached: {place}");
    }
    unreached.is_empty()
}

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
