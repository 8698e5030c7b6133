//! The command `harness diff`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use indicatif::ProgressBar;

use super::document;
use super::finding::Lane;
use super::ledger::{Ledger, Verdict};
use super::run::{self, Compared};
use super::scripts::{self, Histories, Script};
use super::side::{AZURITE, Binaries, SMALT, Side, Standing};
use super::triage::{self, Triage};
use crate::check::exit_code;
use crate::replay::corpus;
use crate::replay::recording::Recording;

/// Number of histories in a full run; only a full run finds stale entries of the ledger.
const HISTORIES: u32 = 1_000;
/// Number of histories of tables in a full run: one for eight others.
const TABLES: u32 = 125;
/// Number of operations in each history.
const OPERATIONS: usize = 30;

/// Sends the same requests to two services and compares the answers.
///
/// The requests are generated histories, and the traces of a directory. Answers are compared as in
/// `harness replay`. Between smalt and Azurite the ledger must explain every difference, and every
/// entry of the ledger must explain one.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Left side: `inproc` (the emulator in this process), `smalt` or `azurite` (started), the blob
    /// endpoint of a running server (`http://127.0.0.1:10000`; queue and table on the next two
    /// ports), or a directory of traces with recorded answers.
    #[arg(long, default_value = "inproc", value_name = "SIDE", value_parser = Side::parse)]
    pub left: Side,
    /// Right side; the same values except a directory.
    #[arg(long, default_value = "azurite", value_name = "SIDE", value_parser = Side::parse)]
    pub right: Side,
    /// The binaries for `smalt` and `azurite`.
    #[command(flatten)]
    pub binaries: Binaries,
    /// Number of generated histories of blobs and queues.
    #[arg(long, default_value_t = HISTORIES)]
    pub histories: u32,
    /// Number of additional generated histories of tables.
    #[arg(long, default_value_t = TABLES, value_name = "HISTORIES")]
    pub tables: u32,
    /// Operations in each history.
    #[arg(long, default_value_t = OPERATIONS)]
    pub operations: usize,
    /// Seed of the first history.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Maximum time step to keep in a history, in seconds; a server whose clock cannot be set waits
    /// for it in real time.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub wait_s_max: u64,
    /// Directory of traces whose requests are sent as well.
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Run only scripts whose name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// Ledger of known differences between smalt and Azurite.
    #[arg(long, default_value = "fixtures/differences.toml", value_name = "FILE")]
    pub ledger: PathBuf,
    /// Write the answers of the right side as traces to this directory.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Regenerate the ledger's section of this document and exit.
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Seen {
    /// Scripts with their results.
    pub scripts: Vec<(Script, Compared)>,
}

impl Seen {
    /// Matches all findings with a ledger.
    pub fn triage(&self, ledger: &Ledger, whole: &BTreeSet<Lane>) -> Triage {
        let findings = self.scripts.iter().flat_map(|(_, c)| c.findings.clone());
        let findings: Vec<_> = findings.collect();
        triage::judge(ledger, &findings, whole)
    }

    fn sum(&self, of: impl Fn(&Compared) -> usize) -> usize {
        self.scripts.iter().map(|(_, compared)| of(compared)).sum()
    }
}

/// Runs the command.
///
/// # Errors
/// When a side does not start, a file cannot be read, or smalt contradicts the model.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let ledger = load(&options.ledger)?;
    if let Some(path) = &options.document {
        renew(path, &ledger)?;
        return Ok(ExitCode::SUCCESS);
    }
    let begun = tokio::time::Instant::now();
    let (names, seen) = ask(options, &ledger).await?;
    if let Some(dir) = &options.keep {
        keep(dir, &seen)?;
    }
    let both = names.contains(SMALT) && names.contains(AZURITE);
    let ledger = if both { ledger } else { Ledger::default() };
    let triage = seen.triage(&ledger, &whole_lanes(options));
    let today: String = smalt::Clock::system()
        .now()
        .iso_s()
        .chars()
        .take(10)
        .collect();
    print!("{}", triage.report(&today));
    let explained = |verdict| triage.explained(&ledger, verdict);
    println!(
        "{} scripts, {} of {} exchanges compared, {} differences: {} azurite-wrong, {} ambiguous, \
         {} ours-wrong, {} kinds unexplained, {} entries stale; took {:.1} s",
        seen.scripts.len(),
        seen.sum(|c| c.compared),
        seen.sum(|c| c.exchanges),
        seen.sum(|c| c.findings.len()),
        explained(Verdict::AzuriteWrong),
        explained(Verdict::Ambiguous),
        explained(Verdict::OursWrong),
        triage.unexplained.len(),
        triage.stale.len(),
        begun.elapsed().as_secs_f64()
    );
    let mut is_clean = triage.is_clean() && !seen.scripts.is_empty();
    for (script, compared) in &seen.scripts {
        for problem in &compared.problems {
            eprintln!("{}: {problem}", script.name);
            is_clean = false;
        }
    }
    Ok(exit_code(is_clean))
}

/// Returns the lanes that run in full, in which entries can be stale.
fn whole_lanes(options: &Options) -> BTreeSet<Lane> {
    let mut lanes = BTreeSet::new();
    if options.only.is_some() {
        return lanes;
    }
    if options.traces.is_some() || matches!(options.left, Side::Recorded(_)) {
        lanes.insert(Lane::Traces);
    }
    let usual = options.seed == 0
        && options.histories == HISTORIES
        && options.tables == TABLES
        && options.operations == OPERATIONS
        && options.wait_s_max == 0;
    if usual && !matches!(options.left, Side::Recorded(_)) {
        lanes.insert(Lane::Histories);
    }
    lanes
}

/// Sends all scripts to both sides.
async fn ask(options: &Options, ledger: &Ledger) -> anyhow::Result<(BTreeSet<String>, Seen)> {
    let binaries = &options.binaries;
    let right = Standing::up(&options.right, binaries).await?;
    let (left, mut asked) = match &options.left {
        Side::Recorded(dir) => (None, scripts::traces(dir)?),
        side => (
            Some(Standing::up(side, binaries).await?),
            made(options).await?,
        ),
    };
    if options.right == Side::Azurite {
        asked.retain(|script| !ledger.leaves_out(&script.name));
    }
    if let Some(part) = &options.only {
        asked.retain(|script| script.name.contains(part));
    }
    anyhow::ensure!(
        !asked.is_empty(),
        "there are no scripts to run; check --histories, --tables, --traces and --only"
    );
    let bar = ProgressBar::new(asked.len() as u64);
    let mut names = BTreeSet::from([right.name.clone()]);
    let mut seen = Seen::default();
    for script in asked {
        let (name, recording) = match &left {
            // A recording names the service that answered.
            None => (script.recording.sdk.clone(), script.recording.clone()),
            Some(side) => {
                let answered = run::left(&script, side).await;
                (side.name.clone(), answered.map_err(anyhow::Error::msg)?)
            }
        };
        let compared = settled(&script, &name, &recording, &right, ledger).await;
        names.insert(name);
        seen.scripts.push((script, compared));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((names, seen))
}

/// Compares the right side's answers with the left's. A side with a running clock is asked once
/// more when a finding is unexplained: if the machine stalls for a moment, dates differ, which is
/// unlikely to happen twice.
async fn settled(
    script: &Script,
    left: &str,
    recording: &Recording,
    right: &Standing,
    ledger: &Ledger,
) -> Compared {
    let compared = run::compare(script, left, recording, right).await;
    let is_explained = |finding| ledger.explains(finding).is_some();
    if right.keeps_time() || compared.findings.iter().all(is_explained) {
        return compared;
    }
    run::compare(script, left, recording, right).await
}

/// Returns the scripts to run on both sides.
async fn made(options: &Options) -> anyhow::Result<Vec<Script>> {
    let which = Histories {
        seed: options.seed,
        count: options.histories,
        tables: options.tables,
        operations: options.operations,
        wait_s_max: options.wait_s_max,
    };
    let mut made = scripts::histories(&which)
        .await
        .map_err(anyhow::Error::msg)?;
    if let Some(dir) = &options.traces {
        made.extend(scripts::traces(dir)?);
    }
    Ok(made)
}

/// Reads the ledger.
pub fn load(path: &Path) -> anyhow::Result<Ledger> {
    let name = path.display().to_string();
    let text = corpus::read(path).with_context(|| format!("{name} cannot be read"))?;
    Ok(Ledger::parse(&name, &text)?)
}

fn renew(path: &Path, ledger: &Ledger) -> anyhow::Result<()> {
    let text = corpus::read(path)?;
    let renewed = document::renewed(&text, ledger);
    let renewed = renewed.with_context(|| {
        format!(
            "{} has no lines {}and {}",
            path.display(),
            document::BEGIN,
            document::END
        )
    })?;
    Ok(corpus::write(path, &renewed)?)
}

fn keep(dir: &Path, seen: &Seen) -> anyhow::Result<()> {
    for (script, compared) in &seen.scripts {
        let path = dir.join(format!("{}.ndjson", script.name));
        corpus::write(&path, &compared.answered.write()?)?;
    }
    Ok(())
}
