//! Compares the cost of an operation among very many items with that among a thousand.
//!
//! Two servers of the same kind run at the same time, one with few items and one with very many,
//! and take turns, so that other load on the machine affects both. In a turn every connection
//! repeats a round of steps that leaves the number of items unchanged.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use smalt_protocol::{ApiVersion, Service};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::lines::CONNECTIONS;
use super::report::{self, Row};
use super::servers::{PeerOptions, Start};
use crate::check::exit_code;
use crate::servers::smalt::binary;
use crate::servers::{Running, ServerError};
use crate::wire::access::Access;

/// Number of items on the small server.
pub const FEW: u64 = 1_000;
/// Number of connections.
const ROUNDERS: usize = 8;
/// Number of turns of each server.
const TURNS: u32 = 12;
/// Largest ratio of the cost among many items to that among few: "the same", plus noise of a shared
/// machine.
const COST_MAX: f64 = 1.3;
/// Largest resident memory (architecture, *Numbers*).
const MEMORY_MIB_MAX: f64 = 150.0;

/// Options that all these measurements share.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Time to measure each server, in seconds.
    #[arg(long, default_value_t = 12.0)]
    pub seconds: f64,
    /// The `smalt` binary, run in durable mode; by default the one next to this executable.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// Server to measure beside smalt, with the same lengths.
    #[command(flatten)]
    pub peer: PeerOptions,
}

/// A kind of item to measure.
pub trait Many: Sync {
    /// The service that stores the items.
    const SERVICE: Service;
    /// Plural name of the items.
    const NAME: &'static str;
    /// Target ratio of smalt's fill rate to the peer's; `None` without a target.
    const PEER_MIN: Option<f64>;
    /// The steps of a round. The last one counts the items that passed through all steps.
    const STEPS: &'static [&'static str];

    /// Creates `count` items.
    fn fill(
        address: SocketAddr,
        count: u64,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// Repeats rounds on one connection until the end time.
    fn rounds(
        rounder: Rounder,
        spent: &mut Spent,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;
}

/// A connection that repeats rounds.
#[derive(Clone, Debug)]
pub struct Rounder {
    /// Index of the connection.
    pub number: usize,
    /// Index of the turn.
    pub turn: u32,
    /// Address of the server.
    pub address: SocketAddr,
    /// Signature of the requests.
    pub access: Arc<Access>,
    /// Number of items on the server.
    pub count: u64,
    /// Time at which to stop.
    pub end: Instant,
}

/// Times of each step, and the server's processor time.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    steps: Vec<Vec<Duration>>,
    cpu: Option<Duration>,
}

impl Spent {
    fn of(steps: usize) -> Self {
        Spent {
            steps: vec![Vec::new(); steps],
            cpu: None,
        }
    }

    /// Records the time since `begun` for a step.
    pub fn note(&mut self, step: usize, begun: Instant) {
        self.took(step, begun.elapsed());
    }

    fn took(&mut self, step: usize, took: Duration) {
        if let Some(times) = self.steps.get_mut(step) {
            times.push(took);
        }
    }

    fn add(&mut self, other: Spent) {
        for (own, more) in self.steps.iter_mut().zip(other.steps) {
            own.extend(more);
        }
    }

    /// Returns the median of a step in milliseconds, which outliers from other load do not move.
    fn median_ms(&self, step: usize) -> f64 {
        let mut times = self.steps.get(step).cloned().unwrap_or_default();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        median.as_secs_f64() * 1_000.0
    }

    /// Returns the server's processor time per item through all steps, in microseconds.
    fn cpu_us(&self) -> Option<f64> {
        let things = self.steps.last().map_or(1, |last| last.len().max(1));
        Some(self.cpu?.as_secs_f64() * 1_000_000.0 / things as f64)
    }
}

/// Measurements of one server.
struct Found {
    count: u64,
    /// Time to create the items, in seconds.
    filled_s: f64,
    spent: Spent,
    /// Peak resident memory.
    memory_mib: Option<f64>,
}

impl Found {
    fn filled_per_second(&self) -> f64 {
        self.count as f64 / self.filled_s
    }
}

/// A server with its items.
struct Loaded {
    server: Running,
    found: Found,
}

impl Loaded {
    async fn start<M: Many>(start: &Start, dir: &Path, count: u64) -> Result<Self, ServerError> {
        let (server, _) = start.start(dir).await?;
        let begun = Instant::now();
        M::fill(server.address(M::SERVICE), count).await?;
        let found = Found {
            count,
            filled_s: begun.elapsed().as_secs_f64(),
            spent: Spent::of(M::STEPS.len()),
            memory_mib: None,
        };
        let mut loaded = Loaded { server, found };
        loaded.look();
        Ok(loaded)
    }

    /// Updates the peak memory.
    fn look(&mut self) {
        let seen = self.server.process.resident_mib();
        self.found.memory_mib = match (self.found.memory_mib, seen) {
            (Some(most), Some(seen)) => Some(most.max(seen)),
            (most, seen) => most.or(seen),
        };
    }

    async fn turn<M: Many>(&mut self, turn: u32, seconds: f64) -> Result<(), ServerError> {
        let access = Arc::new(Access::full(ApiVersion::V2021_12_02));
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let before = self.server.process.cpu_time();
        let mut rounders = JoinSet::new();
        for number in 0..ROUNDERS {
            let rounder = Rounder {
                number,
                turn,
                address: self.server.address(M::SERVICE),
                access: Arc::clone(&access),
                count: self.found.count,
                end,
            };
            rounders.spawn(async move {
                let mut spent = Spent::of(M::STEPS.len());
                M::rounds(rounder, &mut spent).await.map(|()| spent)
            });
        }
        while let Some(done) = rounders.join_next().await {
            self.found.spent.add(done.map_err(ServerError::call)??);
        }
        let now = self.server.process.cpu_time();
        let cpu = now.zip(before).map(|(now, then)| now - then);
        let spent = &mut self.found.spent;
        spent.cpu = cpu.map(|cpu| cpu + spent.cpu.unwrap_or_default());
        self.look();
        Ok(())
    }
}

/// Returns a row whose value among many items is limited to [`COST_MAX`] times that among few.
fn cost(line: String, unit: &'static str, few: f64, many: f64) -> Row {
    Row {
        line,
        unit,
        smalt: Some(many),
        reference: Some(few),
        target: format!("<= {COST_MAX} x that of {FEW}"),
        reached: Some(many <= COST_MAX * few),
        ..Row::default()
    }
}

fn judged<M: Many>(few: &Found, many: &Found, peer: Option<&Found>) -> Vec<Row> {
    let count = many.count;
    let mut rows = vec![filled::<M>(many, peer)];
    rows.extend(M::STEPS.iter().enumerate().map(|(step, name)| Row {
        azurite: peer.map(|peer| peer.spent.median_ms(step)),
        ..cost(
            format!("{name} of {count}, median"),
            "ms",
            few.spent.median_ms(step),
            many.spent.median_ms(step),
        )
    }));
    if let (Some(few), Some(many)) = (few.spent.cpu_us(), many.spent.cpu_us()) {
        let line = format!("CPU for one through all, of {count}");
        rows.push(Row {
            azurite: peer.and_then(|peer| peer.spent.cpu_us()),
            ..cost(line, "us", few, many)
        });
    }
    rows.push(Row {
        line: format!("memory, {count} {}, at most", M::NAME),
        unit: "MiB",
        smalt: many.memory_mib,
        reference: few.memory_mib,
        azurite: peer.and_then(|peer| peer.memory_mib),
        target: format!("< {MEMORY_MIB_MAX} MiB"),
        reached: many.memory_mib.map(|mib| mib < MEMORY_MIB_MAX),
        ..Row::default()
    });
    rows
}

/// Returns the row about the fill rate.
fn filled<M: Many>(many: &Found, peer: Option<&Found>) -> Row {
    let (own, peer) = (many.filled_per_second(), peer.map(Found::filled_per_second));
    let least = M::PEER_MIN.zip(peer);
    Row {
        line: format!("{} {}, {CONNECTIONS} at a time", many.count, M::NAME),
        unit: "op/s",
        smalt: Some(own),
        azurite: peer,
        target: M::PEER_MIN.map_or_else(|| "-".to_owned(), |times| format!(">= {times} x Azurite")),
        reached: least.map(|(times, peer)| own >= times * peer),
        ..Row::default()
    }
}

/// Measures and prints the rows; exits with code 1 when a target is missed.
pub async fn run<M: Many>(options: &Options, count: u64) -> anyhow::Result<ExitCode> {
    let temporary = tempfile::tempdir()?;
    let start = Start::Smalt(binary(options.smalt.as_deref())?);
    let peer = options.peer.start()?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message(format!("putting {count} {}", M::NAME));
    let dir = |name: &str| temporary.path().join(name);
    let mut few = Loaded::start::<M>(&start, &dir("few"), FEW.min(count)).await?;
    let mut many = Loaded::start::<M>(&start, &dir("many"), count).await?;
    let mut peer = match &peer {
        Some(peer) => {
            bar.set_message(format!("putting {count} {} to the peer", M::NAME));
            Some(Loaded::start::<M>(peer, &dir("peer"), count).await?)
        }
        None => None,
    };
    for turn in 1..=TURNS {
        bar.set_message(format!("turn {turn} of {TURNS}"));
        let seconds = options.seconds / f64::from(TURNS);
        let loaded = [Some(&mut few), Some(&mut many), peer.as_mut()];
        for loaded in loaded.into_iter().flatten() {
            loaded.turn::<M>(turn, seconds).await?;
        }
    }
    bar.finish_and_clear();
    let of_peer = peer.as_ref().map(|peer| &peer.found);
    let rows = judged::<M>(&few.found, &many.found, of_peer);
    for loaded in [Some(few), Some(many), peer].into_iter().flatten() {
        loaded.server.process.kill().await?;
    }
    print!("{}", report::heading().replace("hyper*", "of few"));
    rows.iter().for_each(|row| print!("{}", report::line(row)));
    let missed = rows.iter().any(|row| row.reached == Some(false));
    Ok(exit_code(!missed))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Things;

    impl Many for Things {
        const SERVICE: Service = Service::Queue;
        const NAME: &'static str = "things";
        const PEER_MIN: Option<f64> = Some(20.0);
        const STEPS: &'static [&'static str] = &["put", "delete"];

        async fn fill(_: SocketAddr, _: u64) -> Result<(), ServerError> {
            Ok(())
        }

        async fn rounds(_: Rounder, _: &mut Spent) -> Result<(), ServerError> {
            Ok(())
        }
    }

    /// Medians cover all turns, so one slow answer does not move them.
    #[test]
    fn times_of_all_turns_count() {
        let ms = Duration::from_millis;
        let (mut all, mut more) = (Spent::of(2), Spent::of(2));
        for n in [2, 3] {
            all.took(0, ms(n));
        }
        for n in [4, 5, 1_000] {
            more.took(0, ms(n));
        }
        for n in [1, 1, 1, 1] {
            more.took(1, ms(n));
        }
        all.add(more);
        all.cpu = Some(ms(2));
        assert!((all.median_ms(0) - 4.0).abs() < 1e-9);
        assert!((all.cpu_us().unwrap() - 500.0).abs() < 1e-9);
        assert!(all.median_ms(7).abs() < 1e-9);
    }

    #[test]
    fn higher_cost_among_many_is_reported() {
        let found = |put_ms: u64, mib: f64, filled_s: f64| {
            let mut spent = Spent::of(2);
            spent.took(0, Duration::from_millis(put_ms));
            Found {
                count: 1_000_000,
                filled_s,
                spent,
                memory_mib: Some(mib),
            }
        };
        let missed = |few: &Found, many: &Found, peer: Option<&Found>| {
            let rows = judged::<Things>(few, many, peer);
            let missed = rows.iter().filter(|row| row.reached == Some(false));
            missed.count()
        };
        let (few, many) = (found(10, 20.0, 10.0), found(14, 151.0, 10.0));
        assert_eq!(missed(&few, &many, None), 2);
        assert_eq!(missed(&few, &few, None), 0);
        assert_eq!(missed(&few, &few, Some(&found(99, 999.0, 200.0))), 0);
        assert_eq!(missed(&few, &few, Some(&found(99, 999.0, 199.0))), 1);
    }
}
