//! Every case of the emulator in this process, each with its own emulator, and the malformed
//! requests over a socket. A case is a test: `cargo test -p smalt-harness --test cases -- leases`.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use libtest_mimic::{Arguments, Failed, Trial};
use smalt::Service;
use smalt::cli::Cli;
use smalt::server::{self, Server};
use smalt_harness::cases::case::Case;
use smalt_harness::cases::checks::Outcome;
use smalt_harness::cases::malformed::Runner;
use smalt_harness::cases::{file, suite};
use smalt_harness::target::in_process::InProcess;

/// The prefix of the names of containers, queues and tables.
const PREFIX: &str = "case";
/// Timeout for all malformed requests together.
const MALFORMED_TIMEOUT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = file::read(&folder("emulator")).unwrap();
    let mut trials: Vec<Trial> = cases.into_iter().map(trial).collect();
    let malformed = || block_on(malformed());
    trials.push(Trial::test(
        "malformed: every request gets its answer",
        malformed,
    ));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn folder(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../fixtures/cases").join(name)
}

fn trial(case: Case) -> Trial {
    let name = format!("{}: {}", case.area, case.name);
    Trial::test(name, move || block_on(play(&case)))
}

fn block_on(test: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test)
}

async fn play(case: &Case) -> Result<(), Failed> {
    let target = InProcess::open()?;
    let played = suite::play(&target, case, PREFIX).await;
    if let Some(reason) = played.skipped {
        return Err(reason.into());
    }
    let mut unmet = String::new();
    for (call, check) in played.checks() {
        if check.outcome != Outcome::Passed {
            unmet += &format!("{}\n    {}", call.request, check.text);
            let got = check.got.as_deref();
            unmet += &got.map_or("\n".to_owned(), |got| format!("\n    but got: {got}\n"));
        }
    }
    if unmet.is_empty() {
        Ok(())
    } else {
        Err(unmet.into())
    }
}

/// Sends all malformed requests to a server in this process.
async fn malformed() -> Result<(), Failed> {
    let cases = file::read(&folder("malformed"))?;
    assert!(cases.len() >= 500, "{} cases", cases.len());
    let ports = ["blob", "queue", "table", "control"]
        .map(|service| [format!("--{service}Port"), "0".to_owned()])
        .concat();
    let flags = ["smalt", "--silent", "--stallTimeoutMs", "200"].map(str::to_owned);
    let cli = Cli::try_parse_from(flags.into_iter().chain(ports))?;
    let emulator = server::builder(&cli.flags)?.open()?;
    let server = Server::bind(&cli.flags, emulator).await?;
    let address = |service| server.address(service).unwrap();
    let [blob, queue, table] = [Service::Blob, Service::Queue, Service::Table].map(address);
    let addresses = [blob, queue, table, server.control_address()];
    let serving = tokio::spawn(server.run(std::future::pending()));
    let mut runner = Runner::begin(addresses).await?;
    let mut wrong = Vec::new();
    let all = async {
        for case in &cases {
            assert!(!case.source.is_empty(), "{} has no source", case.name);
            if let Err(what) = runner.run(case).await {
                wrong.push(format!("{}: {}: {what}", case.area, case.name));
            }
        }
    };
    tokio::time::timeout(MALFORMED_TIMEOUT, all).await?;
    serving.abort();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}
