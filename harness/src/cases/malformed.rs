//! The command `harness malformed`: sends requests that no client should send, and checks each
//! answer (`fixtures/cases/malformed`).
//!
//! Each case is sent on its own TCP connection. Besides the answer, the runner checks that
//! - nothing was stored: the dump of the control endpoint is the same before and after;
//! - the server still answers, and the existing blob, message and entity are unchanged
//!   (`fixtures/cases/subject.case` creates and reads them).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use indicatif::ProgressBar;
use serde_json::Value;

use super::case::Case;
use super::checks::{Called, Outcome};
use super::file;
use super::play::Player;
use super::values::Values;
use crate::check::exit_code;
use crate::servers::Running;
use crate::servers::smalt::{Launch, binary};
use crate::target::About;
use crate::target::server::Server;

/// Creates the entities that the cases refer to, in one case, and reads them in another.
const SUBJECT: &str = include_str!("../../../fixtures/cases/subject.case");
/// Name of the container, of the queue and of the table.
const NAME: &str = "malformed";
/// Time limit for stalled requests in a spawned server; the default is 30 s.
const STALL_TIMEOUT_MS: u64 = 400;

/// Options of `harness malformed`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Server to test: `spawn` starts the `smalt` next to this executable; otherwise the blob
    /// address of a fresh server (`127.0.0.1:10000`; queue, table and control on the next three
    /// ports).
    #[arg(long, default_value = "spawn")]
    pub target: String,
    /// Directory of the cases.
    #[arg(long, default_value = "fixtures/cases/malformed", value_name = "DIR")]
    pub cases: PathBuf,
    /// Run only cases whose area or name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// The `smalt` binary to spawn; by default the one next to this executable.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// Print every case, not only failing ones.
    #[arg(long)]
    pub verbose: bool,
}

/// Blob, queue, table and control endpoint of a server.
pub type Addresses = [SocketAddr; 4];

/// Runs cases against a server.
pub struct Runner {
    target: Server,
    values: Values,
    /// Reads what the cases must not change.
    untouched: Case,
    stored: Value,
}

impl Runner {
    /// Creates the entities that the cases refer to.
    pub async fn begin([blob, queue, table, control]: Addresses) -> anyhow::Result<Self> {
        let authorities = [blob, queue, table].map(|address| address.to_string());
        let about = About::by_path("smalt", "http", authorities);
        let mut cases = file::parse("subject", SUBJECT)?.into_iter();
        let (Some(made), Some(untouched)) = (cases.next(), cases.next()) else {
            anyhow::bail!("subject.case must have two cases");
        };
        let mut runner = Runner {
            target: Server::at(about).controlled(&control.to_string())?,
            values: Values::default(),
            untouched,
            stored: Value::Null,
        };
        let mut player = Player::new(&runner.target, &made, NAME);
        for place in ["c", "q", "t"] {
            player.values.keep(place, NAME);
        }
        unmet(player.steps().await).map_err(anyhow::Error::msg)?;
        runner.values = player.values;
        runner.stored = runner.state().await?;
        Ok(runner)
    }

    /// Runs one case, and checks that the server is unharmed.
    pub async fn run(&mut self, case: &Case) -> Result<(), String> {
        self.play(case).await?;
        let harmed = |problem: String| format!("afterwards: {problem}");
        self.play(&self.untouched).await.map_err(harmed)?;
        let stored = self.state().await;
        let stored = stored.map_err(|error| harmed(error.to_string()))?;
        if stored != self.stored {
            // Reported once: later cases compare with the new state.
            self.stored = stored;
            return Err(harmed("something was stored".to_owned()));
        }
        Ok(())
    }

    async fn state(&self) -> anyhow::Result<Value> {
        let control = self.target.control().context("no control endpoint")?;
        Ok(control.state().await?)
    }

    async fn play(&self, case: &Case) -> Result<(), String> {
        let mut player = Player::new(&self.target, case, NAME);
        player.values = self.values.clone();
        unmet(player.steps().await)
    }
}

/// Describes the failed checks.
fn unmet(calls: Vec<Called>) -> Result<(), String> {
    let mut unmet = Vec::new();
    for call in calls {
        let failed = call
            .checks
            .iter()
            .filter(|check| check.outcome != Outcome::Passed);
        let failed: Vec<&str> = failed.map(|check| check.text.as_str()).collect();
        if !failed.is_empty() {
            unmet.push(format!("{} in place of {}", call.answer, failed.join(", ")));
        }
    }
    if unmet.is_empty() {
        Ok(())
    } else {
        Err(unmet.join("; "))
    }
}

/// Returns the addresses of a server with consecutive ports.
fn consecutive(target: &str) -> anyhow::Result<Addresses> {
    let blob: SocketAddr = target.trim_start_matches("http://").parse()?;
    let next = |n: u16| SocketAddr::new(blob.ip(), blob.port().saturating_add(n));
    Ok([0, 1, 2, 3].map(next))
}

async fn spawn(options: &Options, dir: &std::path::Path) -> anyhow::Result<Running> {
    let launch = Launch {
        binary: binary(options.smalt.as_deref())?,
        location: dir.join("store"),
        flags: vec!["--stallTimeoutMs".to_owned(), STALL_TIMEOUT_MS.to_string()],
    };
    Ok(launch.start().await?)
}

/// Runs the command: sends every case and prints those with a wrong answer.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let mut cases = file::read(&options.cases)?;
    if let Some(only) = &options.only {
        cases.retain(|case| case.area.contains(only) || case.name.contains(only));
    }
    let temporary = tempfile::tempdir()?;
    let server = match options.target.as_str() {
        "spawn" => Some(spawn(options, temporary.path()).await?),
        _ => None,
    };
    let addresses = match &server {
        Some(server) => {
            let [blob, queue, table] = server.addresses;
            [blob, queue, table, server.control()?]
        }
        None => consecutive(&options.target)?,
    };
    let mut runner = Runner::begin(addresses).await?;
    let bar = ProgressBar::new(cases.len() as u64);
    let mut wrong = 0;
    for case in &cases {
        let outcome = runner.run(case).await;
        bar.inc(1);
        let (sign, detail) = match &outcome {
            Ok(()) if !options.verbose => continue,
            Ok(()) => ("ok   ", String::new()),
            Err(what) => ("WRONG", format!(": {what}")),
        };
        bar.suspend(|| println!("{sign} {}: {}{detail}", case.area, case.name));
        wrong += usize::from(outcome.is_err());
    }
    bar.finish_and_clear();
    println!(
        "{} of {} malformed requests got the expected answer",
        cases.len() - wrong,
        cases.len()
    );
    if let Some(mut server) = server {
        anyhow::ensure!(server.process.is_running(), "the server process has ended");
        server.process.kill().await?;
    }
    Ok(exit_code(wrong == 0 && !cases.is_empty()))
}
