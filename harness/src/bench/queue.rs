//! Queues of a million messages beside queues of a thousand: what a message costs in each.
//!
//! Two servers of the same kind run at the same time, one with few messages and one with very many,
//! and take turns: whatever else the machine does meets both. In a turn every connection goes
//! round: it puts 32 messages, gets 32, deletes each of them. So the queues keep their length.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use indicatif::{ProgressBar, ProgressDrawTarget};
use smalt_protocol::{ApiVersion, Service, uri};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::lines::CONNECTIONS;
use super::load;
use super::report::{self, Row};
use super::requests::Requests;
use super::servers::{Server, Start};
use crate::histories::documents;
use crate::servers::ServerError;
use crate::servers::access::Access;
use crate::servers::connection::Connection;
use crate::servers::smalt::binary;

/// The queue.
const NAME: &str = "many";
/// Messages of the short queue.
const FEW: u64 = 1_000;
/// Connections that go round.
const ROUNDERS: usize = 8;
/// Messages of one round.
const BATCH: usize = 32;
/// Turns of each server.
const TURNS: u32 = 12;
/// A message of a long queue costs at most so many times that of a short one ("the same", and what
/// the noise of a shared machine adds).
const COST_MAX: f64 = 1.3;
/// Most resident memory (architecture, *Numbers*).
const MEMORY_MIB_MAX: f64 = 150.0;
/// Longer than any run: what is got and not deleted does not come back.
const HIDDEN_S: u64 = 3_600;

/// Options of `harness bench queue`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Messages of the long queue.
    #[arg(long, default_value_t = 100_000)]
    messages: u64,
    /// Time that each server is measured for, in seconds.
    #[arg(long, default_value_t = 12.0)]
    seconds: f64,
    /// The binary to measure, durable; without it the `smalt` beside this one.
    #[arg(long, value_name = "FILE")]
    smalt: Option<PathBuf>,
}

/// What is done in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Put,
    Get,
    Delete,
}

impl Step {
    const ALL: [Step; 3] = [Step::Put, Step::Get, Step::Delete];

    const fn name(self) -> &'static str {
        match self {
            Step::Put => "put",
            Step::Get => "get 32",
            Step::Delete => "delete",
        }
    }
}

/// Times of each step, and what the server's processor had to do.
#[derive(Clone, Debug, Default)]
struct Spent {
    steps: [Vec<Duration>; 3],
    cpu: Option<Duration>,
}

impl Spent {
    fn note(&mut self, step: Step, took: Duration) {
        self.steps[step as usize].push(took);
    }

    fn add(&mut self, other: Spent) {
        for (own, more) in self.steps.iter_mut().zip(other.steps) {
            own.extend(more);
        }
    }

    /// Median of a step in milliseconds: what else the machine does shows in few of them.
    fn median_ms(&self, step: Step) -> f64 {
        let mut times = self.steps[step as usize].clone();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        median.as_secs_f64() * 1_000.0
    }

    /// The server's processor time for a message through all three steps, in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn cpu_us(&self) -> Option<f64> {
        let messages = self.steps[Step::Delete as usize].len().max(1);
        Some(self.cpu?.as_secs_f64() * 1_000_000.0 / messages as f64)
    }
}

/// A server with a queue.
struct Loaded {
    server: Server,
    spent: Spent,
    memory_mib: Option<f64>,
}

impl Loaded {
    async fn start(start: &Start, dir: &Path, messages: u64) -> Result<Self, ServerError> {
        let (server, _) = start.start(dir).await?;
        let address = server.address(Service::Queue);
        load::once(address, &Requests::default().queue(NAME)?).await?;
        let requests = Requests::default();
        load::send_all(address, CONNECTIONS, messages, move |_| {
            requests.tiny_message(NAME)
        })
        .await?;
        let mut loaded = Loaded {
            server,
            spent: Spent::default(),
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

    async fn turn(&mut self, seconds: f64) -> Result<(), ServerError> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let address = self.server.address(Service::Queue);
        let before = self.server.cpu_time();
        let access = Arc::new(Access::full(ApiVersion::V2021_12_02));
        let mut rounders = JoinSet::new();
        for _ in 0..ROUNDERS {
            rounders.spawn(rounds(address, access.clone(), end));
        }
        while let Some(done) = rounders.join_next().await {
            self.spent.add(done.map_err(ServerError::call)??);
        }
        let cpu = self
            .server
            .cpu_time()
            .zip(before)
            .map(|(now, then)| now - then);
        self.spent.cpu = cpu.map(|cpu| cpu + self.spent.cpu.unwrap_or_default());
        self.look();
        Ok(())
    }
}

async fn rounds(
    address: SocketAddr,
    access: Arc<Access>,
    end: Instant,
) -> Result<Spent, ServerError> {
    let mut connection = Connection::open(address).await?;
    let mut spent = Spent::default();
    let put = access.path(&format!("{NAME}/messages"));
    let body = "<QueueMessage><MessageText>One of very many.</MessageText></QueueMessage>";
    let get = format!("{NAME}/messages?numofmessages={BATCH}&visibilitytimeout={HIDDEN_S}");
    let get = access.path(&get);
    while Instant::now() < end {
        for _ in 0..BATCH {
            let begun = Instant::now();
            connection
                .send(Method::POST, &put, &[], body)
                .await?
                .expect(201)?;
            spent.note(Step::Put, begun.elapsed());
        }
        let begun = Instant::now();
        let got = connection
            .send(Method::GET, &get, &[], "")
            .await?
            .expect(200)?;
        spent.note(Step::Get, begun.elapsed());
        let messages = documents::messages(&got.body).map_err(ServerError::call)?;
        if messages.len() != BATCH {
            let count = messages.len();
            return Err(ServerError::Call(format!(
                "{count} messages in place of {BATCH}"
            )));
        }
        for message in messages {
            let receipt = uri::encode_query(&message.receipt.unwrap_or_default());
            let path = format!("{NAME}/messages/{}?popreceipt={receipt}", message.id);
            let path = access.path(&path);
            let begun = Instant::now();
            let deleted = connection.send(Method::DELETE, &path, &[], "").await?;
            deleted.expect(204)?;
            spent.note(Step::Delete, begun.elapsed());
        }
    }
    Ok(spent)
}

type Found<'a> = (&'a Spent, Option<f64>);

/// A value of the long queue that may be at most so many times that of the short one.
fn cost(line: String, (unit, most): (&'static str, f64), few: f64, many: f64) -> Row {
    Row {
        line,
        unit,
        smalt: Some(many),
        reference: Some(few),
        target: format!("<= {most} x that of {FEW}"),
        reached: Some(many <= most * few),
        ..Row::default()
    }
}

/// The lines of a short and a long queue: times, and the most memory in MiB.
fn judged(messages: u64, few: Found<'_>, many: Found<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = Step::ALL
        .into_iter()
        .map(|step| {
            let line = format!("{} of {messages}, median", step.name());
            let (few, many) = (few.0.median_ms(step), many.0.median_ms(step));
            cost(line, ("ms", COST_MAX), few, many)
        })
        .collect();
    if let (Some(few), Some(many)) = (few.0.cpu_us(), many.0.cpu_us()) {
        let line = format!("CPU per message through, of {messages}");
        rows.push(cost(line, ("us", COST_MAX), few, many));
    }
    rows.push(Row {
        line: format!("memory, {messages} messages, at most"),
        unit: "MiB",
        smalt: many.1,
        reference: few.1,
        target: format!("< {MEMORY_MIB_MAX} MiB"),
        reached: many.1.map(|mib| mib < MEMORY_MIB_MAX),
        ..Row::default()
    });
    rows
}

/// The command: measures, and prints the lines. Exit 1 when a target is missed.
///
/// # Errors
/// When a server does not start, or refuses.
#[expect(clippy::print_stdout, reason = "a command talks to its caller")]
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let temporary = tempfile::tempdir()?;
    let start = Start::Smalt(binary(options.smalt.as_deref())?);
    let bar = ProgressBar::new_spinner();
    if !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message(format!("putting {} messages", options.messages));
    let begun = Instant::now();
    let few = temporary.path().join("few");
    let mut few = Loaded::start(&start, &few, FEW.min(options.messages)).await?;
    let many = temporary.path().join("many");
    let mut many = Loaded::start(&start, &many, options.messages).await?;
    let filled_s = begun.elapsed().as_secs_f64();
    for turn in 1..=TURNS {
        bar.set_message(format!("turn {turn} of {TURNS}"));
        let seconds = options.seconds / f64::from(TURNS);
        few.turn(seconds).await?;
        many.turn(seconds).await?;
    }
    bar.finish_and_clear();
    let of_few = (&few.spent, few.memory_mib);
    let rows = judged(options.messages, of_few, (&many.spent, many.memory_mib));
    few.server.kill().await?;
    many.server.kill().await?;
    print!("{}", report::heading().replace("hyper*", "of few"));
    rows.iter().for_each(|row| print!("{}", report::line(row)));
    println!("{} messages were put in {filled_s:.0} s", options.messages);
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

    /// Medians are of all turns together; one slow answer does not move them.
    #[test]
    fn times_of_all_turns_count() {
        let ms = Duration::from_millis;
        let (mut all, mut more) = (Spent::default(), Spent::default());
        for n in [2, 3] {
            all.note(Step::Put, ms(n));
        }
        for n in [4, 5, 1_000] {
            more.note(Step::Put, ms(n));
        }
        for n in [1, 1, 1, 1] {
            more.note(Step::Delete, ms(n));
        }
        all.add(more);
        all.cpu = Some(ms(2));
        assert!((all.median_ms(Step::Put) - 4.0).abs() < 1e-9);
        assert!((all.cpu_us().unwrap() - 500.0).abs() < 1e-9);
        assert!(all.median_ms(Step::Get).abs() < 1e-9);
    }

    #[test]
    fn a_long_queue_that_costs_more_is_told() {
        let loaded = |put_ms: u64, mib: f64| {
            let mut spent = Spent::default();
            spent.note(Step::Put, Duration::from_millis(put_ms));
            (spent, Some(mib))
        };
        let (few, many) = (loaded(10, 20.0), loaded(14, 151.0));
        let found = judged(1_000_000, (&few.0, few.1), (&many.0, many.1));
        let missed: Vec<_> = found
            .iter()
            .filter(|row| row.reached == Some(false))
            .collect();
        assert_eq!(missed.len(), 2, "{found:?}");
        let same = judged(1_000_000, (&few.0, few.1), (&few.0, few.1));
        assert!(same.iter().all(|row| row.reached != Some(false)));
    }
}
