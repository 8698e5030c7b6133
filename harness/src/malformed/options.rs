//! The command `harness malformed`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::ProgressBar;

use super::runner::Runner;
use super::subject::Addresses;
use super::table;
use crate::servers::smalt::{Launch, Smalt, binary};

/// Options of `harness malformed`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// `spawn`: the `smalt` beside this binary, as a child; or the blob address of a fresh server
    /// (`127.0.0.1:10000`; queue, table and control on the next ports).
    #[arg(long, default_value = "spawn")]
    pub target: String,
    /// Directory of the cases.
    #[arg(long, default_value = "fixtures/malformed", value_name = "DIR")]
    pub cases: PathBuf,
    /// Only cases whose area or name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// The binary to spawn; without it the `smalt` beside this one.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// Print every case.
    #[arg(long)]
    pub verbose: bool,
}

/// Stalled requests end after this time in a spawned server; the default is 30 s.
const STALL_TIMEOUT_MS: u64 = 400;

/// The addresses of a server whose ports follow each other.
fn consecutive(target: &str) -> anyhow::Result<Addresses> {
    let blob: SocketAddr = target.trim_start_matches("http://").parse()?;
    let next = |n: u16| SocketAddr::new(blob.ip(), blob.port().saturating_add(n));
    Ok(Addresses {
        blob,
        queue: next(1),
        table: next(2),
        control: next(3),
    })
}

async fn spawn(options: &Options, dir: &std::path::Path) -> anyhow::Result<Smalt> {
    let launch = Launch {
        binary: binary(options.smalt.as_deref())?,
        location: dir.join("store"),
        flags: vec!["--stallTimeoutMs".to_owned(), STALL_TIMEOUT_MS.to_string()],
    };
    Ok(launch.start().await?)
}

/// The command: sends every case, prints those that were answered otherwise.
///
/// # Errors
/// When the table cannot be read or the server cannot be prepared.
#[expect(clippy::print_stdout, reason = "a command talks to its caller")]
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let mut cases = table::read(&options.cases)?;
    if let Some(only) = &options.only {
        cases.retain(|(area, case)| area.contains(only) || case.name.contains(only));
    }
    let temporary = tempfile::tempdir()?;
    let server = match options.target.as_str() {
        "spawn" => Some(spawn(options, temporary.path()).await?),
        _ => None,
    };
    let addresses = match &server {
        Some(server) => Addresses {
            blob: server.blob,
            queue: server.queue,
            table: server.table,
            control: server.control,
        },
        None => consecutive(&options.target)?,
    };
    let mut runner = Runner::begin(addresses).await?;
    let bar = ProgressBar::new(cases.len() as u64);
    let mut wrong = 0;
    for (area, case) in &cases {
        let outcome = runner.run(case).await;
        bar.inc(1);
        let (sign, detail) = match &outcome {
            Ok(()) if !options.verbose => continue,
            Ok(()) => ("ok   ", String::new()),
            Err(what) => ("WRONG", format!(": {what}")),
        };
        bar.suspend(|| println!("{sign} {area}: {}{detail}", case.name));
        wrong += usize::from(outcome.is_err());
    }
    bar.finish_and_clear();
    let right = cases.len() - wrong;
    println!(
        "{right} of {} malformed requests answered as Azure does",
        cases.len()
    );
    if let Some(mut server) = server {
        anyhow::ensure!(server.process.is_running(), "the server has ended");
        server.kill().await?;
    }
    Ok(if wrong == 0 && !cases.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
