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
use crate::replay::corpus;
use crate::replay::recording::Recording;

/// Histories of a full run: what makes an entry of the ledger stale.
const HISTORIES: u32 = 1_000;
/// Histories of tables besides: one to four others, as `harness check histories` has them.
const TABLES: u32 = 125;
/// Operations in each of them.
const OPERATIONS: usize = 30;

/// Options of `harness diff`.
///
/// Both sides are asked the same: generated histories, and the traces of a directory. Answers are
/// compared as `harness replay` compares them. Between smalt and Azurite every difference must be
/// explained by the ledger, and every entry of the ledger must explain one.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// `inproc`, `smalt` and `azurite` (started), the address of a running server's blob service
    /// (queue and table on the next ports), or a directory of traces: what a service answered once.
    #[arg(long, default_value = "inproc", value_name = "SIDE", value_parser = Side::parse)]
    pub left: Side,
    /// The same, but a directory.
    #[arg(long, default_value = "azurite", value_name = "SIDE", value_parser = Side::parse)]
    pub right: Side,
    /// The binary of the side `smalt`; the one beside this executable unless it is named.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// The command of the side `azurite`, as npm installs it.
    #[arg(long, env = "AZURITE", value_name = "FILE")]
    pub azurite: Option<PathBuf>,
    /// How many generated histories of blobs and queues.
    #[arg(long, default_value_t = HISTORIES)]
    pub histories: u32,
    /// How many of tables besides.
    #[arg(long, default_value_t = TABLES, value_name = "HISTORIES")]
    pub tables: u32,
    /// Operations in each history.
    #[arg(long, default_value_t = OPERATIONS)]
    pub operations: usize,
    /// The seed of the first history.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Keep steps of time up to so many seconds: a server without a clock to set waits for them.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub wait_s_max: u64,
    /// Ask the requests of these traces as well.
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Only scripts whose name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// The ledger of differences between smalt and Azurite.
    #[arg(long, default_value = "fixtures/differences.toml", value_name = "FILE")]
    pub ledger: PathBuf,
    /// Write what the right side answered as traces into this directory.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Make the ledger's section of this document anew, and stop.
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
}

/// What a run has seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Each script with what came out.
    pub scripts: Vec<(Script, Compared)>,
}

impl Seen {
    /// Judges all findings by a ledger.
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
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its caller"
)]
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
    Ok(if is_clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Lanes that are run in full, so that entries can be stale.
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

/// Asks both sides everything.
async fn ask(options: &Options, ledger: &Ledger) -> anyhow::Result<(BTreeSet<String>, Seen)> {
    let binaries = Binaries {
        smalt: options.smalt.clone(),
        azurite: options.azurite.clone(),
    };
    let right = Standing::up(&options.right, &binaries).await?;
    let (left, mut asked) = match &options.left {
        Side::Recorded(dir) => (None, scripts::traces(dir)?),
        side => (
            Some(Standing::up(side, &binaries).await?),
            made(options).await?,
        ),
    };
    if options.right == Side::Azurite {
        asked.retain(|script| !ledger.leaves_out(&script.name));
    }
    if let Some(part) = &options.only {
        asked.retain(|script| script.name.contains(part));
    }
    anyhow::ensure!(!asked.is_empty(), "there is nothing to ask");
    let bar = ProgressBar::new(asked.len() as u64);
    let mut names = BTreeSet::from([right.name.clone()]);
    let mut seen = Seen::default();
    for script in asked {
        let (name, recording) = match &left {
            // What a directory holds says itself who answered.
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

/// The right side's answers against the left's. A side whose clock goes by itself is asked once
/// more where something is unexplained: on a machine that stood still for a moment dates say
/// something else than they were made to say, and hardly so twice.
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

/// The scripts that are asked on both sides.
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
///
/// # Errors
/// When it cannot be read or is wrong.
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
