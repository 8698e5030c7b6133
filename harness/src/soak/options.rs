//! The command `harness check soak`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;

use super::account::Account;
use super::events::{Event, lines};
use super::loopback::{self, Until};
use super::memory;
use crate::bursts::report::save_lines;
use crate::check::Cases;

/// Puts, gets, updates and deletes messages of one queue for a long time, and accounts for all of
/// them.
///
/// At the end it fetches everything that is left. No message may be lost, delivered while it is
/// invisible, unexpected, or present after its delete. Only the newest pop receipt of a message
/// may work, and it must. In memory the clients run on one thread, in an order that the seed
/// determines, and time is virtual; with `--http` each client has its own thread and connection.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// The runs, 1 by default. In memory the same seed produces the same history.
    #[command(flatten)]
    cases: Cases,
    /// Calls of all clients together.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Number of concurrent clients.
    #[arg(long, default_value_t = 8)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    clients: usize,
    /// In memory: deliver messages that become visible at the same time in an order that the seed
    /// determines.
    #[arg(long, conflicts_with = "http")]
    shuffle: bool,
    /// Call over HTTP on the loopback interface; each client has its own connection and thread.
    #[arg(long)]
    http: bool,
    /// With `--http`: run for this many seconds, regardless of `--operations`.
    #[arg(long, requires = "http", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// With `--http`: keep the store in this new directory and sync every write to disk before it
    /// is answered.
    #[arg(long, requires = "http")]
    durable: Option<PathBuf>,
}

/// Longest duration of a run without `--seconds`; a run that takes longer hangs.
const UNTIMED: Duration = Duration::from_secs(3_600);

/// Runs `harness check soak`.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    /// A run without calls must not succeed.
    #[test]
    fn an_empty_run_is_rejected() {
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
