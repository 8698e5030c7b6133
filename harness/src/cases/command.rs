//! The command `harness conform`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use indicatif::ProgressBar;
use smalt::Clock;
use tokio::time::Instant;

use super::case::Case;
use super::ledger::{self, Deviation};
use super::options::Options;
use super::report::{FORMAT, Of, Report, html, markdown, text};
use super::suite::{self, Plan};
use super::{commit, faults, file, traces};
use crate::check::exit_code;
use crate::diff::side;
use crate::interrupt::interrupted;
use crate::replay::corpus;
use crate::servers::files;
use crate::target::start::{self, Started};
use crate::target::{Target as _, probe};

/// Prefix for the environment variable with a connection string.
const VARIABLE: &str = "env:";

/// Runs the command: runs the suite against every target, prints a summary, writes reports.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let scenarios = selected(options)?;
    if options.list {
        print!("{}", text::list(&scenarios));
        return Ok(ExitCode::SUCCESS);
    }
    anyhow::ensure!(
        !scenarios.is_empty(),
        "no scenario matches; list them with --list"
    );
    let ledger = match &options.ledger {
        Some(path) => ledger::parse(&files::text(path).with_context(|| shown(path))?)?,
        None => ledger::built_in()?,
    };
    let stopped = Arc::new(AtomicBool::new(false));
    let interrupt = tokio::spawn(watch(Arc::clone(&stopped)));
    let mut report = Report {
        format: FORMAT,
        harness: env!("CARGO_PKG_VERSION").to_owned(),
        date: Clock::system().now().iso_s(),
        command: command(),
        commit: commit::of_this_program().await,
        targets: Vec::new(),
    };
    for name in &options.target {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let of = one(options, name, &scenarios, &ledger, &stopped).await?;
        report.targets.push(of);
    }
    interrupt.abort();
    print!("{}", text::summary(&report, &ledger, options.verbose));
    write(options, &report, &ledger)?;
    let is_whole = !stopped.load(Ordering::Relaxed);
    Ok(exit_code(
        is_whole && report.targets.iter().all(Of::is_right),
    ))
}

/// On the first interrupt, lets the current scenario end and clean up.
async fn watch(stopped: Arc<AtomicBool>) {
    if interrupted().await.is_ok() {
        stopped.store(true, Ordering::Relaxed);
        eprintln!("stopping after the clean-up of this scenario");
    }
}

fn selected(options: &Options) -> anyhow::Result<Vec<Case>> {
    let mut scenarios = match &options.scenarios {
        Some(dir) => file::read(dir)?,
        None => suite::scenarios()?,
    };
    scenarios.retain(|scenario| {
        let only = options.only.as_deref().unwrap_or_default();
        let is_named = scenario.area.contains(only) || scenario.name.contains(only);
        is_named && options.service.is_none_or(|of| of == scenario.service)
    });
    anyhow::ensure!(
        !scenarios.is_empty(),
        "no scenario matches --only and --service"
    );
    Ok(scenarios)
}

/// Runs everything against one target.
async fn one(
    options: &Options,
    name: &str,
    scenarios: &[Case],
    ledger: &[Deviation],
    stopped: &AtomicBool,
) -> anyhow::Result<Of> {
    let begun = Instant::now();
    let location = tempfile::tempdir()?;
    let started = begin(options, name, location.path()).await?;
    let target = &started.target;
    probe(target).await.map_err(anyhow::Error::msg)?;
    let with_faults = !options.no_faults && target.about().lacks(faults::NEEDS).is_none();
    let cells = if with_faults {
        faults::cells(target, scenarios)
    } else {
        0
    };
    let bar = bar(scenarios.len() + cells, name);
    let progress = || bar.inc(1);
    let prefix = prefix();
    let plan = Plan {
        prefix: &prefix,
        progress: &progress,
        stopped,
    };
    let mut played = suite::run(target, scenarios, &plan).await;
    let faults = if with_faults && !stopped.load(Ordering::Relaxed) {
        Some(faults::map(target, scenarios, &plan).await?)
    } else {
        None
    };
    bar.finish_and_clear();
    let stale = ledger::apply(ledger, &started.ledger, &mut played);
    let left = suite::sweep(target, &prefix).await;
    let left = left.map_err(anyhow::Error::msg).context("cleaning up")?;
    let mut of = Of::new(target.about(), &started.ledger, played);
    of.faults = faults;
    of.stale = stale;
    of.left_behind = left;
    if name == "smalt" && !options.no_traces && options.only.is_none() {
        of.traces = Some(replayed(options, location.path()).await?);
    }
    started.target.end().await?;
    of.seconds = begun.elapsed().as_secs_f64();
    Ok(of)
}

async fn begin(options: &Options, name: &str, location: &Path) -> anyhow::Result<Started> {
    let named = match name.strip_prefix(VARIABLE) {
        Some(variable) => std::env::var(variable)
            .with_context(|| format!("the environment variable {variable} is not set"))?,
        None => name.to_owned(),
    };
    Ok(start::start(&named, &options.allowed, &location.join("store")).await?)
}

/// Replays the traces on their own `smalt`, because they need their own clock and accounts.
async fn replayed(options: &Options, location: &Path) -> anyhow::Result<Vec<traces::Row>> {
    let server = side::smalt(options.allowed.smalt.as_deref(), &location.join("traces")).await?;
    let server = Arc::new(server);
    let rows = traces::replay(&options.traces, server).await?;
    let dir = options.traces.display();
    anyhow::ensure!(
        !rows.is_empty(),
        "no traces in {dir}; use --no-traces to skip them"
    );
    Ok(rows)
}

fn bar(length: usize, name: &str) -> ProgressBar {
    ProgressBar::new(length as u64).with_message(name.to_owned())
}

/// Returns `conform-` and the time, so that no two runs share a name and leftovers are
/// recognizable.
fn prefix() -> String {
    let now = Clock::system().now().iso_ticks();
    let digits: String = now.chars().filter(char::is_ascii_digit).collect();
    format!("conform-{digits}")
}

/// Returns the command line without secrets: connection strings are shown by their variable.
fn command() -> String {
    let arguments = std::env::args().skip(1).map(|argument| {
        if argument.contains("AccountKey=") || argument.contains("SharedAccessSignature=") {
            "CONNECTION-STRING".to_owned()
        } else {
            argument
        }
    });
    let words: Vec<String> = std::iter::once("harness".to_owned())
        .chain(arguments)
        .collect();
    words.join(" ")
}

fn write(options: &Options, report: &Report, ledger: &[Deviation]) -> anyhow::Result<()> {
    if let Some(path) = &options.json {
        corpus::write(path, &(serde_json::to_string_pretty(report)? + "\n"))?;
    }
    if let Some(path) = &options.markdown {
        corpus::write(path, &markdown::page(report, ledger))?;
    }
    if let Some(path) = &options.html {
        corpus::write(path, &html::page(report, ledger))?;
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    /// All addresses that do not answer are reported before the run.
    #[tokio::test]
    async fn silent_addresses_are_reported() {
        let options = parsed("--only leases --target http://127.0.0.1:1").unwrap();
        let error = run_command(&options).await.unwrap_err().to_string();
        for (service, port) in [("blob", 1), ("queue", 2), ("table", 3)] {
            let named = format!("{service} at http://127.0.0.1:{port}/devstoreaccount1");
            assert!(error.contains(&named), "{error}");
        }
    }
}
