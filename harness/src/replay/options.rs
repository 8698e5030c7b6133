//! The command `harness replay`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use indicatif::ProgressBar;
use smalt_protocol::Service;

use super::accepted::{self, Accepted};
use super::chosen::{Chosen, Name};
use super::compare::Aspect;
use super::corpus::{self, CorpusError};
use super::hosts::{Addressing, Hosts, account_key_base64};
use super::player;
use super::report::{Collector, Report, percent};
use super::text;
use crate::check::exit_code;

/// Options of `harness replay`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the recordings.
    #[arg(long, env = "SMALT_CORPUS", value_name = "DIR")]
    pub corpus: PathBuf,
    /// What to play the recordings against: `inproc`, the emulator in this process; `azurite`,
    /// which is started; `mirror`, which answers as recorded and must pass completely; or the blob
    /// endpoint of a server, `http://host:port`, with queue, table and smalt's control endpoint on
    /// the next ports. Start the server with the accounts of `--print-accounts`, and smalt with
    /// `--strictSkew` too.
    #[arg(long, default_value = "inproc")]
    pub target: String,
    /// The clock of the server at the URL cannot be set: shift the recordings to now. Everything in
    /// its accounts is deleted before each recording, so the server must be on this machine.
    #[arg(long)]
    pub live: bool,
    /// Wait at most this many seconds in each recording where the clock cannot be set; interactions
    /// that were recorded later than that are excused.
    #[arg(long, value_name = "SECONDS", default_value_t = player::WAIT_MAX.as_secs())]
    pub wait_s_max: u64,
    /// Also play recordings that need account settings which a server without the control endpoint
    /// cannot be given (versioning, encryption scopes and the like) instead of excusing them.
    #[arg(long)]
    pub any_settings: bool,
    /// The command that starts Azurite for the target `azurite`, as npm installs it.
    #[arg(long, env = "AZURITE", value_name = "FILE")]
    pub azurite: Option<PathBuf>,
    /// Play only recordings of this service: blob, queue or table.
    #[arg(long, value_parser = corpus::service)]
    pub service: Option<Service>,
    /// Play only recordings whose path contains this string.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// Which recordings count: `slice`, those whose operations are all implemented, or `all`.
    #[arg(long, value_enum, default_value = "slice")]
    pub operations: Operations,
    /// Write the complete report to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print the accounts and keys that a server needs, as a value of `AZURITE_ACCOUNTS`, and stop.
    #[arg(long)]
    pub print_accounts: bool,
    /// Print this many failing interactions in full.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub show: usize,
    /// Fail when a rate is below this percentage, such as `interactions=97.5`, `recordings=90` or
    /// `status=99`; also `code`, `header-names`, `header-values`, `body` and `relations`.
    /// `rules=100` requires that every relaxed comparison was used, as a replay of the complete
    /// corpus must. May be repeated; without it every recording must pass completely.
    #[arg(long, value_name = "RATE=PERCENT", value_parser = threshold)]
    pub require: Vec<Threshold>,
    /// Name the recordings that differ in a way that this file does not name, and fail if there are
    /// any. The file must exist.
    #[arg(long, value_name = "FILE")]
    pub accepted: Option<PathBuf>,
    /// Write what differs now to the file of `--accepted`.
    #[arg(long, requires = "accepted")]
    pub accept: bool,
}

/// Which recordings count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Operations {
    /// Recordings whose operations are all implemented.
    Slice,
    /// All recordings; those that need a missing operation are counted with the others.
    All,
}

/// The rate that a threshold limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Interactions without a difference.
    Interactions,
    /// Recordings without a difference.
    Recordings,
    /// Interactions that agree in one aspect.
    Aspect(Aspect),
    /// Relaxed comparisons that at least one interaction used.
    Rules,
}

/// A rate that the report must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The rate.
    pub rate: Rate,
    /// Lowest accepted rate, in percent.
    pub percent_min: f64,
}

/// The thresholds without `--require`.
const EVERYTHING: [Threshold; 1] = [Threshold {
    rate: Rate::Recordings,
    percent_min: 100.0,
}];

fn threshold(text: &str) -> Result<Threshold, String> {
    let (name, percent) = text.split_once('=').ok_or("RATE=PERCENT")?;
    let rate = match name {
        "interactions" => Rate::Interactions,
        "recordings" => Rate::Recordings,
        "rules" => Rate::Rules,
        aspect => {
            let aspect: Option<Aspect> = serde_json::from_value(aspect.into()).ok();
            let aspect = aspect.filter(|aspect| *aspect != Aspect::Call);
            let unknown = || format!("unknown rate `{name}`: see `harness replay --help`");
            Rate::Aspect(aspect.ok_or_else(unknown)?)
        }
    };
    let percent_min = percent
        .parse()
        .map_err(|_| format!("`{percent}` is not a percentage: use a number such as `97.5`"))?;
    Ok(Threshold { rate, percent_min })
}

/// Plays the selected recordings.
///
/// # Errors
/// When the corpus cannot be read or is malformed, when no recording is selected, or when the
/// target is unknown.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let names = selected(options)?;
    anyhow::ensure!(
        !names.is_empty(),
        "no recording in {} matches --service and --only",
        options.corpus.display()
    );
    let bar = ProgressBar::new(names.len() as u64);
    let name = Name {
        target: &options.target,
        is_live: options.live,
        any_settings: options.any_settings,
        azurite: options.azurite.as_deref(),
    };
    let chosen = Chosen::of(name, || accounts(options)).await?;
    let wait_max = Duration::from_secs(options.wait_s_max);
    let mut played = futures_util::stream::iter(names)
        .map(|name| {
            let (chosen, dir) = (chosen.clone(), options.corpus.clone());
            tokio::spawn(async move {
                let recording = corpus::load(&dir, &name)?;
                let target = chosen.target(&recording).await?;
                let played = player::play_waiting(target, &recording, wait_max).await;
                Ok::<_, anyhow::Error>((recording, played))
            })
        })
        .buffer_unordered(chosen.tasks());
    let slice_only = options.operations == Operations::Slice;
    let mut collector = Collector::new(&options.target, slice_only);
    while let Some(done) = played.next().await {
        let (recording, played) = done??;
        collector.add(&recording, &played);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut report = collector.finish();
    report.silenced_by = chosen.silenced_by().await;
    Ok(report)
}

fn selected(options: &Options) -> Result<Vec<String>, CorpusError> {
    let mut names = corpus::names(&options.corpus)?;
    if let Some(service) = options.service {
        let prefix = format!("{}/", service.as_str());
        names.retain(|name| name.starts_with(&prefix));
    }
    if let Some(part) = &options.only {
        names.retain(|name| name.contains(part));
    }
    Ok(names)
}

/// Returns the accounts of the selected recordings with their keys, as `name:key;name:key`.
fn accounts(options: &Options) -> Result<String, CorpusError> {
    let mut names = BTreeSet::new();
    for name in selected(options)? {
        let recording = corpus::load(&options.corpus, &name)?;
        names.extend(Hosts::of(&recording, Addressing::Host).accounts());
    }
    let pairs: Vec<String> = names
        .iter()
        .map(|name| format!("{name}:{}", account_key_base64(name)))
        .collect();
    Ok(pairs.join(";"))
}

/// Describes the thresholds that a report misses.
pub fn missed(report: &Report, required: &[Threshold]) -> Vec<String> {
    let reached = |rate| match rate {
        Rate::Interactions => report.total.pass_rate(),
        Rate::Recordings => percent(report.recordings_passed, report.recordings),
        Rate::Aspect(aspect) => report.total.rate(aspect),
        Rate::Rules => report.rules_used(),
    };
    let misses = required.iter().filter(|t| reached(t.rate) < t.percent_min);
    misses
        .map(|t| {
            format!(
                "{:?}: {:.2} %, but {} % is required",
                t.rate,
                reached(t.rate),
                t.percent_min
            )
        })
        .collect()
}

/// Runs `harness replay`: plays the recordings, prints and writes the report, and checks the
/// thresholds.
///
/// # Errors
/// Those of [`run`], and when the report cannot be written.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    if options.print_accounts {
        println!("{}", accounts(options)?);
        return Ok(ExitCode::SUCCESS);
    }
    let begun = tokio::time::Instant::now();
    let report = run(options).await?;
    print!(
        "{}{}",
        text::failures(&report, options.show),
        text::table(&report)
    );
    println!("took {:.1} s", begun.elapsed().as_secs_f64());
    if let Some(path) = &options.json {
        corpus::write(path, &serde_json::to_string_pretty(&report)?)?;
    }
    anyhow::ensure!(report.recordings > 0, "no recording could be compared");
    let worse = match &options.accepted {
        Some(path) => judge(&report, path, options.accept)?,
        None => Vec::new(),
    };
    for line in &worse {
        eprintln!("{line}");
    }
    let misses = match &options.require[..] {
        [] => missed(&report, &EVERYTHING),
        required => missed(&report, required),
    };
    for miss in &misses {
        eprintln!("{miss}");
    }
    Ok(exit_code(misses.is_empty() && worse.is_empty()))
}

/// Returns what differs and is not accepted, after it was accepted if `accepts`.
fn judge(report: &Report, path: &Path, accepts: bool) -> anyhow::Result<Vec<String>> {
    let known = match accepts && !path.exists() {
        true => Accepted::new(),
        false => accepted::read(&corpus::read(path)?).map_err(anyhow::Error::msg)?,
    };
    for line in accepted::better(report, &known) {
        println!("{line}");
    }
    if accepts {
        let now = accepted::replaced(known, report);
        corpus::write(path, &accepted::write(&now))?;
        return Ok(Vec::new());
    }
    Ok(accepted::worse(report, &known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::report::RuleRow;

    #[test]
    fn reads_thresholds_and_finds_those_missed() {
        assert!(threshold("interactions").is_err() && threshold("other=1").is_err());
        let required = ["interactions=50", "header-names=100", "recordings=0"];
        let required: Vec<Threshold> = required.iter().map(|t| threshold(t).unwrap()).collect();
        let mut report = Report {
            recordings: 2,
            recordings_passed: 1,
            ..Report::default()
        };
        report.total.compared = 4;
        report.total.passed = 2;
        report.total.failed.insert(Aspect::HeaderNames, 1);
        let misses = missed(&report, &required);
        assert_eq!(misses.len(), 1);
        assert!(
            misses[0].contains("75.00 %, but 100 % is required"),
            "{misses:?}"
        );
        assert_eq!(missed(&report, &EVERYTHING).len(), 1);
        assert_eq!(
            missed(
                &Report {
                    recordings: 1,
                    ..report.clone()
                },
                &EVERYTHING
            ),
            [""; 0]
        );
        // A call without an answer agrees in no aspect.
        report.total.failed.insert(Aspect::Call, 1);
        assert!((report.total.rate(Aspect::Status) - 75.0).abs() < 1e-9);
    }

    /// Unused rules appear in the table, and `rules=100` fails because of them.
    #[test]
    fn unused_rules_are_named_and_missed() {
        let rule = |name: &str, uses, elsewhere| RuleRow {
            rule: name.to_owned(),
            reason: "",
            uses,
            elsewhere,
        };
        let required = [threshold("rules=100").unwrap()];
        let rules = vec![
            rule("Header server: Exists", 7, None),
            rule("Header keep-alive: Ignore", 0, Some("Azurite")),
        ];
        let mut report = Report {
            rules,
            ..Report::default()
        };
        assert_eq!(missed(&report, &required), [""; 0]);
        assert!(!text::table(&report).contains("unused relaxed"));
        report.rules.push(rule("Element id: Url", 0, None));
        report.rules.push(rule("Element marker: Url", 0, None));
        let misses = missed(&report, &required);
        assert_eq!(misses, ["Rules: 50.00 %, but 100 % is required"]);
        let table = text::table(&report);
        let named = "unused relaxed comparisons: Element id: Url, Element marker: Url\n";
        assert!(table.contains(named), "{table}");
        let more = (0..10).map(|_| rule("Element copyid: Bound(CopyId)", 0, None));
        report.rules.extend(more);
        let table = text::table(&report);
        assert!(
            table.contains("unused relaxed comparisons: 12 (--json names them)\n"),
            "{table}"
        );
    }
}
