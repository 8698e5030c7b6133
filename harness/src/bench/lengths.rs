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

use indicatif::{ProgressBar, ProgressDrawTarget};
use smalt_protocol::{ApiVersion, Service};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::report::{self, Row};
use super::servers::{Server, Start};
use crate::servers::ServerError;
use crate::servers::access::Access;
use crate::servers::smalt::binary;

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
}

/// What there are many of.
pub trait Many: Sync {
    /// Whose address is asked.
    const SERVICE: Service;
    /// What they are called.
    const NAME: &'static str;
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

/// A server with many things.
struct Loaded {
    server: Server,
    count: u64,
    spent: Spent,
    memory_mib: Option<f64>,
}

impl Loaded {
    async fn start<M: Many>(start: &Start, dir: &Path, count: u64) -> Result<Self, ServerError> {
        let (server, _) = start.start(dir).await?;
        M::fill(server.address(M::SERVICE), count).await?;
        let mut loaded = Loaded {
            server,
            count,
            spent: Spent::of(M::STEPS.len()),
            memory_mib: None,
        };
        loaded.look();
        Ok(loaded)
    }

    /// Keeps the most memory that was seen.
    fn look(&mut self) {
        let seen = self.server.resident_mib();
        self.memory_mib = match (self.memory_mib, seen) {
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
                count: self.count,
                end,
            };
            rounders.spawn(async move {
                let mut spent = Spent::of(M::STEPS.len());
                M::rounds(rounder, &mut spent).await.map(|()| spent)
            });
        }
        while let Some(done) = rounders.join_next().await {
            self.spent.add(done.map_err(ServerError::call)??);
        }
        let now = self.server.cpu_time();
        let cpu = now.zip(before).map(|(now, then)| now - then);
        self.spent.cpu = cpu.map(|cpu| cpu + self.spent.cpu.unwrap_or_default());
        self.look();
        Ok(())
    }
}

/// What was found of one server: times, and the most memory in MiB.
type Found<'a> = (&'a Spent, Option<f64>);

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

fn judged<M: Many>(count: u64, few: Found<'_>, many: Found<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = M::STEPS
        .iter()
        .enumerate()
        .map(|(step, name)| {
            let line = format!("{name} of {count}, median");
            cost(line, "ms", few.0.median_ms(step), many.0.median_ms(step))
        })
        .collect();
    if let (Some(few), Some(many)) = (few.0.cpu_us(), many.0.cpu_us()) {
        let line = format!("CPU for one through all, of {count}");
        rows.push(cost(line, "us", few, many));
    }
    rows.push(Row {
        line: format!("memory, {count} {}, at most", M::NAME),
        unit: "MiB",
        smalt: many.1,
        reference: few.1,
        target: format!("< {MEMORY_MIB_MAX} MiB"),
        reached: many.1.map(|mib| mib < MEMORY_MIB_MAX),
        ..Row::default()
    });
    rows
}

/// Measures, and prints the lines. Exit 1 when a target is missed.
///
/// # Errors
/// When a server does not start, or refuses.
#[expect(clippy::print_stdout, reason = "a command talks to its caller")]
pub async fn run<M: Many>(options: &Options, count: u64) -> anyhow::Result<ExitCode> {
    let temporary = tempfile::tempdir()?;
    let start = Start::Smalt(binary(options.smalt.as_deref())?);
    let bar = ProgressBar::new_spinner();
    if !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message(format!("putting {count} {}", M::NAME));
    let begun = Instant::now();
    let dir = |name: &str| temporary.path().join(name);
    let mut few = Loaded::start::<M>(&start, &dir("few"), FEW.min(count)).await?;
    let mut many = Loaded::start::<M>(&start, &dir("many"), count).await?;
    let filled_s = begun.elapsed().as_secs_f64();
    for turn in 1..=TURNS {
        bar.set_message(format!("turn {turn} of {TURNS}"));
        let seconds = options.seconds / f64::from(TURNS);
        few.turn::<M>(turn, seconds).await?;
        many.turn::<M>(turn, seconds).await?;
    }
    bar.finish_and_clear();
    let of_few = (&few.spent, few.memory_mib);
    let rows = judged::<M>(count, of_few, (&many.spent, many.memory_mib));
    few.server.kill().await?;
    many.server.kill().await?;
    print!("{}", report::heading().replace("hyper*", "of few"));
    rows.iter().for_each(|row| print!("{}", report::line(row)));
    println!("{count} {} were put in {filled_s:.0} s", M::NAME);
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
        let loaded = |put_ms: u64, mib: f64| {
            let mut spent = Spent::of(2);
            spent.took(0, Duration::from_millis(put_ms));
            (spent, Some(mib))
        };
        let (few, many) = (loaded(10, 20.0), loaded(14, 151.0));
        let found = judged::<Things>(1_000_000, (&few.0, few.1), (&many.0, many.1));
        let missed = found.iter().filter(|row| row.reached == Some(false));
        assert_eq!(missed.count(), 2, "{found:?}");
        let same = judged::<Things>(1_000_000, (&few.0, few.1), (&few.0, few.1));
        assert!(same.iter().all(|row| row.reached != Some(false)));
    }
}
