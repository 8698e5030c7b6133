//! The command `harness planted`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its caller"
)]

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use smalt_planted::{Area, Detector, VARIABLE, bugs};

use super::detect::{self, Check, Places, Tests};
use super::report;
use super::run::{Done, Runner, Task};
use crate::check::exit_code;

/// Options of `harness planted`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Run only this bug, given by its id, and skip the control run. May be repeated.
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Run only the bugs of this area: emulator, store, sleeve, sweeper or listener.
    #[arg(long, value_parser = area)]
    area: Option<Area>,
    /// List the bugs and exit.
    #[arg(long)]
    list: bool,
    /// Number of processes that run at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Print the table of docs/planted.md as Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
    /// Test binary of a package built with the bugs; ci/planted.sh passes these. May be repeated.
    #[arg(long, value_name = "PACKAGE=FILE", value_parser = Tests::parse)]
    tests: Vec<Tests>,
    /// Directory of the recorded traces.
    #[arg(long, value_name = "DIR", default_value = "fixtures/traces")]
    traces: PathBuf,
    /// Run only this check, in this process, and print the result. The environment variable
    /// SMALT_PLANTED may name a bug. Checks: histories, tables, lake, restarts, bursts, traces,
    /// store-crash, emulator-tests, sleeve-tests, sweeper-tests, listener-tests, sweep, listen,
    /// canary.
    #[arg(long, value_name = "CHECK", value_parser = Check::parse)]
    check: Option<Check>,
}

/// How to build a harness with the bugs.
const HOW: &str = "this harness has no planted bugs: run ci/planted.sh, which builds one of a copy \
                   that has them";

fn area(name: &str) -> Result<Area, String> {
    let found = Area::ALL.into_iter().find(|area| area.name() == name);
    found.ok_or_else(|| format!("unknown area; use {}", Area::ALL.map(Area::name).join(", ")))
}

/// Runs the command. Must not be called from within a runtime, because checks create their own.
///
/// # Errors
/// When an id is unknown, or a check cannot run.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    if options.list {
        for (area, bug) in bugs() {
            println!("{:<9} {:<30} {}", area.name(), bug.id, bug.wrong);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !smalt_planted::IS_SWITCHED {
        eprintln!("{HOW}");
        return Ok(ExitCode::FAILURE);
    }
    if let Some(check) = options.check {
        return one_check(check, options);
    }
    anyhow::ensure!(
        std::env::var_os(VARIABLE).is_none_or(|id| id.is_empty()),
        "{VARIABLE} is set, but the runner selects the bugs itself: unset it, or pass --check"
    );
    let tasks = tasks(options)?;
    let all = run(options, &tasks)?;
    if options.json {
        println!("{:#}", report::json(&all));
    } else if options.markdown {
        print!("{}", report::markdown(&all));
        eprint!("{}", report::text(&all));
    } else {
        print!("{}", report::text(&all));
    }
    Ok(exit_code(all.iter().all(Done::is_good)))
}

fn one_check(check: Check, options: &Options) -> anyhow::Result<ExitCode> {
    let places = Places {
        traces: options.traces.clone(),
        tests: options.tests.clone(),
    };
    let verdict = detect::detect(check, &places).map_err(anyhow::Error::msg)?;
    if options.json {
        println!("{}", serde_json::to_string(&verdict)?);
        return Ok(ExitCode::SUCCESS);
    }
    match verdict.caught {
        Some(caught) => {
            println!("{}\ncase {}: {}", caught.story, verdict.cases, caught.what);
            Ok(ExitCode::FAILURE)
        }
        None => {
            println!("{} cases, nothing found", verdict.cases);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the selected bugs; unless single bugs are selected, also the checks without a bug; and
/// always the canary.
fn tasks(options: &Options) -> anyhow::Result<Vec<Task>> {
    for id in &options.only {
        anyhow::ensure!(
            smalt_planted::find(id).is_some(),
            "unknown bug `{id}`; run `harness planted --list`"
        );
    }
    let is_wanted = |task: &Task| match task {
        Task::Bug(area, bug) => {
            options.area.is_none_or(|wanted| wanted == *area)
                && (options.only.is_empty() || options.only.contains(&bug.id))
        }
        _ => false,
    };
    let planted = bugs().map(|(area, bug)| Task::Bug(area, bug));
    let planted: Vec<Task> = planted.filter(is_wanted).collect();
    anyhow::ensure!(
        !planted.is_empty(),
        "no bug is selected; list them with --list"
    );
    let mut checks: BTreeSet<Detector> = BTreeSet::new();
    if options.only.is_empty() {
        for task in &planted {
            if let Task::Bug(_, bug) = task {
                checks.extend(&bug.caught_by);
            }
        }
    }
    // The longest first: checks without a bug spend their whole budget.
    let controls = checks.into_iter().map(Task::Control);
    Ok([Task::Canary]
        .into_iter()
        .chain(controls)
        .chain(planted)
        .collect())
}

fn run(options: &Options, tasks: &[Task]) -> anyhow::Result<Vec<Done>> {
    let runner = Runner {
        program: std::env::current_exe()?,
        traces: options.traces.clone(),
        tests: options.tests.clone(),
    };
    let bar = ProgressBar::new(tasks.len() as u64);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}")?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let all = runtime.block_on(runner.run(tasks, options.jobs, &|done| {
        bar.inc(1);
        bar.set_message(done.task.name());
    }));
    bar.finish_and_clear();
    Ok(all)
}
