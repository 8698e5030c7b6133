//! Very many of something beside a thousand of it: what an operation costs in each.
//!
//! Two servers of the same kind run at the same time, one with few things and one with very many,
//! and take turns: whatever else the machine does meets both. In a turn every connection goes
//! round, and leaves as much behind as it found.

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
use super::servers::{PeerOptions, Server, Start};
use crate::servers::ServerError;
use crate::servers::smalt::binary;
use crate::wire::access::Access;

/// Things on the server that has few.
pub const FEW: u64 = 1_000;
/// Connections that go round.
const ROUNDERS: usize = 8;
/// Turns of each server.
const TURNS: u32 = 12;
/// An operation among many costs at most so many times one among few ("the same", and what the
/// noise of a shared machine adds).
const COST_MAX: f64 = 1.3;
/// Most resident memory (architecture, *Numbers*).
const MEMORY_MIB_MAX: f64 = 150.0;

/// Options that every such measurement has.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Time that each server is measured for, in seconds.
    #[arg(long, default_value_t = 12.0)]
    pub seconds: f64,
    /// The binary to measure, durable; without it the `smalt` beside this one.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// What is measured beside smalt, with as many.
    #[command(flatten)]
    pub peer: PeerOptions,
}

/// What there are many of.
pub trait Many: Sync {
    /// Whose address is asked.
    const SERVICE: Service;
    /// What they are called.
    const NAME: &'static str;
    /// How many times as many as the peer it puts a second, where that is a target.
    const PEER_MIN: Option<f64>;
    /// The steps of a round. There are as many of the last as things that went through.
    const STEPS: &'static [&'static str];

    /// Puts so many there.
    fn fill(
        address: SocketAddr,
        count: u64,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// Goes round on a connection of its own until the time is over.
    fn rounds(
        rounder: Rounder,
        spent: &mut Spent,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;
}

/// A connection that goes round.
#[derive(Clone, Debug)]
pub struct Rounder {
    /// Its number.
    pub number: usize,
    /// The turn.
    pub turn: u32,
    /// Where it connects to.
    pub address: SocketAddr,
    /// What it signs with.
    pub access: Arc<Access>,
    /// How many things there are.
    pub count: u64,
    /// When it stops.
    pub end: Instant,
}

/// Times of each step, and what the server's processor had to do.
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

    /// Notes a step that began then and is over.
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

    /// Median of a step in milliseconds: what else the machine does shows in few of them.
    fn median_ms(&self, step: usize) -> f64 {
        let mut times = self.steps.get(step).cloned().unwrap_or_default();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        median.as_secs_f64() * 1_000.0
    }

    /// The server's processor time for one thing through all steps, in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn cpu_us(&self) -> Option<f64> {
        let things = self.steps.last().map_or(1, |last| last.len().max(1));
        Some(self.cpu?.as_secs_f64() * 1_000_000.0 / things as f64)
    }
}

/// What was found of a server with many things.
struct Found {
    count: u64,
    /// How long it took to put them there, in seconds.
    filled_s: f64,
    spent: Spent,
    /// The most that was seen.
    memory_mib: Option<f64>,
}

impl Found {
    /// What was put a second.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn filled_per_second(&self) -> f64 {
        self.count as f64 / self.filled_s
    }
}

/// A server with many things.
struct Loaded {
    server: Server,
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

    /// Keeps the most memory that was seen.
    fn look(&mut self) {
        let seen = self.server.resident_mib();
        self.found.memory_mib = match (self.found.memory_mib, seen) {
            (Some(most), Some(seen)) => Some(most.max(seen)),
            (most, seen) => most.or(seen),
        };
    }

    async fn turn<M: Many>(&mut self, turn: u32, seconds: f64) -> Result<(), ServerError> {
        let access = Arc::new(Access::full(ApiVersion::V2021_12_02));
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let before = self.server.cpu_time();
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
        let now = self.server.cpu_time();
        let cpu = now.zip(before).map(|(now, then)| now - then);
        let spent = &mut self.found.spent;
        spent.cpu = cpu.map(|cpu| cpu + spent.cpu.unwrap_or_default());
        self.look();
        Ok(())
    }
}

/// A value among many that may be at most so many times that among few.
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

/// How fast they were put there, by many connections.
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

/// Measures, and prints the lines. Exit 1 when a target is missed.
///
/// # Errors
/// When a server does not start, or refuses.
#[expect(clippy::print_stdout, reason = "a command talks to its caller")]
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
        loaded.server.kill().await?;
    }
    print!("{}", report::heading().replace("hyper*", "of few"));
    rows.iter().for_each(|row| print!("{}", report::line(row)));
    let missed = rows.iter().any(|row| row.reached == Some(false));
    Ok(if missed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
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

    /// Medians are of all turns together; one slow answer does not move them.
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
    fn what_costs_more_among_many_is_told() {
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
