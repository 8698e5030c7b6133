//! The command `harness check soak`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::RangedU64ValueParser;

use super::account::Account;
use super::events::{Event, lines, read};
use super::loopback::{self, Until};
use super::memory;
use crate::bursts::report::save_lines;
use crate::check::Cases;

/// Puts, gets, updates and deletes messages of one queue for long, and accounts for all of them.
///
/// At the end everything that is left is fetched. Nothing may be lost, given out while it is
/// invisible, unexpected, there again after its delete; of a message at most one receipt works,
/// and that one does. In memory the clients run on one thread, by seed, and time is virtual;
/// with `--http` each has a thread and a connection of its own.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Runs, one if it is not given how many. In memory the same seed gives the same history.
    #[command(flatten)]
    cases: Cases,
    /// Calls of all clients together.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Clients at once.
    #[arg(long, default_value_t = 8)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    clients: usize,
    /// In memory: messages that become visible at the same time come in any order, by seed.
    #[arg(long, conflicts_with = "http")]
    shuffle: bool,
    /// Over loopback HTTP, each client on a connection and a thread of its own.
    #[arg(long)]
    http: bool,
    /// With `--http`: for so many seconds, whatever the number of calls.
    #[arg(long, requires = "http", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// With `--http`: every answer waits for the disk, in this new directory.
    #[arg(long, requires = "http")]
    durable: Option<PathBuf>,
    /// Make the account of this saved history, and run nothing.
    #[arg(long)]
    check: Option<PathBuf>,
}

/// Longest run that is not timed: what takes longer hangs.
const UNTIMED: Duration = Duration::from_secs(3_600);

/// Runs the command.
///
/// # Errors
/// When the service does not answer, or a file cannot be read or written.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(path) = &options.check {
        let is_clean = tell(&load(path)?).is_clean();
        return Ok(ExitCode::from(u8::from(!is_clean)));
    }
    let one = |(): &(), seed| {
        let events = run(options, seed).map_err(anyhow::Error::msg)?;
        if tell(&events).is_clean() {
            return Ok(());
        }
        let path = options.cases.file("soak", seed);
        save_lines(&path, &lines(&events)?)?;
        Err(anyhow::anyhow!("seed {seed}; saved: {}", path.display()))
    };
    match options.cases.seeds(1).each(|| (), one, |(), ()| ()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err((_, error)) => {
            eprintln!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn tell(events: &[Event]) -> Account {
    let account = Account::of(events);
    println!("{} calls: {account}", events.len());
    account
        .findings
        .iter()
        .for_each(|finding| eprintln!("{finding}"));
    account
}

fn run(options: &Options, seed: u64) -> Result<Vec<Event>, String> {
    if !options.http {
        return memory::run(seed, options.operations, options.clients, options.shuffle);
    }
    let until = match options.seconds {
        Some(seconds) => Until {
            calls: u64::MAX,
            time: Duration::from_secs(seconds),
        },
        None => Until {
            calls: options.operations,
            time: UNTIMED,
        },
    };
    loopback::run(seed, until, options.clients, options.durable.as_deref())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a saved history is read from where the command line says"
)]
fn load(path: &Path) -> anyhow::Result<Vec<Event>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let event = |(at, line): (usize, &str)| {
        read(line).with_context(|| format!("{}, line {}", path.display(), at + 1))
    };
    text.lines().enumerate().map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    /// What calls nothing has nothing to account for, and must not end as if all were well.
    #[test]
    fn an_empty_run_is_refused() {
        let parsed = |arguments: &str| parsed::<Options>(arguments);
        for empty in ["--operations 0", "--clients 0", "--http --seconds 0"] {
            let error = parsed(empty).unwrap_err().to_string();
            assert!(error.contains("0 is not in 1.."), "{empty}: {error}");
        }
        for whole in ["", "--operations 1 --clients 1", "--http --seconds 1"] {
            assert!(parsed(whole).is_ok(), "{whole}");
        }
    }
}
