//! The process that dies: an emulator on a directory, and connections to it without sockets.
//!
//! `harness crash-child` is started by the crash test itself. It opens the store, works, and tells
//! every beginning and end of an operation ([`super::events`]). It may be told to die at a named
//! step of the store, or is killed from outside, or runs to its end under the shim.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use smalt::http::{Listener, Patience};
use smalt::store::CUT_OFF;
use smalt::{Clock, Emulator, Service, Timestamp};
use tokio::task::JoinSet;

use super::beat::Beat;
use super::content::{below, stream};
use super::events::{Event, Log};
use super::files;
use super::model::{Model, Op, Unique};
use super::promise::Promise;
use super::property::{Flaw, Property};
use super::wire::Client;
use super::{verify, verify_entities, worker};
use crate::servers::ServerError;

/// The clock of the first round, in seconds since 1970; round `n` begins [`ROUND_S`] later each.
const START_UNIX_S: u64 = 1_800_000_000;
/// More than all waiting of a check comes to.
const ROUND_S: u64 = 1_000;
/// The check begins so much later than the work: leases of a minute are still there.
const CHECK_AFTER_S: u64 = 30;
/// The clock moves on by so much with each operation.
const OPERATION: Duration = Duration::from_millis(1);
/// Segments of this size roll, fill up with garbage and are compacted within a few operations.
pub const SEGMENT_BYTES: u64 = 128 * 1024;
/// Between two lines of a connection that has nothing to do.
const IDLE: Duration = Duration::from_millis(4);
/// Steps of maintenance at a time.
const MAINTENANCE_BUDGET: usize = 20;

/// Options of `harness crash-child`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ChildOptions {
    /// Directory of the store.
    #[arg(long)]
    pub location: PathBuf,
    /// File that the events are appended to.
    #[arg(long)]
    pub events: PathBuf,
    /// File with what is expected of the store so far; none for a fresh one.
    #[arg(long)]
    pub models: Option<PathBuf>,
    /// What is written.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The round, which moves the clock on.
    #[arg(long, default_value_t = 1)]
    pub round: u64,
    /// Connections at once.
    #[arg(long, default_value_t = 1)]
    pub connections: usize,
    /// Operations of each connection; without it they go on until the process is killed.
    #[arg(long)]
    pub operations: Option<u64>,
    /// Maintenance comes after so many operations of a connection.
    #[arg(long, default_value_t = 8)]
    pub maintain_every: u64,
    /// A reset comes after so many operations of the first connection.
    #[arg(long)]
    pub reset_after: Option<u64>,
    /// Call over sockets, within this process: what a client sees of a failure counts, too.
    #[arg(long)]
    pub sockets: bool,
    /// Payloads cannot always be read: then an answer may be missing, not wrong.
    #[arg(long)]
    pub reads_fail: bool,
    /// What the store promises.
    #[arg(long, default_value = "durable")]
    pub mode: Promise,
    /// Wait up to so many milliseconds of real time between two operations of a connection.
    #[arg(long, default_value_t = 0)]
    pub pause_ms: u64,
    /// Wait at the end until the process is killed.
    #[arg(long)]
    pub idle: bool,
    /// Close the store at the end, instead of dying with it open.
    #[arg(long)]
    pub close: bool,
    /// Die at this step of the store: `name:nth`. Needs the feature `failpoints`.
    #[arg(long)]
    pub failpoint: Option<String>,
}

/// When the work of a round begins.
pub fn work_time(round: u64) -> Timestamp {
    Timestamp::from_unix_s(START_UNIX_S + round * ROUND_S)
}

/// When its check begins.
pub fn check_time(round: u64) -> Timestamp {
    work_time(round).plus_s(CHECK_AFTER_S)
}

/// The name of a connection's container and queue.
pub fn name(worker: usize) -> String {
    format!("crash-{worker}")
}

/// Arms the step that the process is to die at.
///
/// # Errors
/// When it is no `name:nth`, or this binary has no such steps.
fn arm(failpoint: Option<&str>) -> anyhow::Result<()> {
    let Some(text) = failpoint else {
        return Ok(());
    };
    let (name, nth) = text.rsplit_once(':').context("--failpoint is `name:nth`")?;
    let nth: u64 = nth.parse().context("--failpoint is `name:nth`")?;
    #[cfg(feature = "failpoints")]
    {
        smalt::store::failpoint::arm(name, nth);
        Ok(())
    }
    #[cfg(not(feature = "failpoints"))]
    anyhow::bail!("{name}:{nth}: build with `--features failpoints`")
}

/// The command.
///
/// # Errors
/// When its files cannot be read or written. What the store refuses is told, not returned.
pub async fn run_child(options: &ChildOptions) -> anyhow::Result<ExitCode> {
    arm(options.failpoint.as_deref())?;
    let log = Arc::new(Log::open(&options.events).context("--events")?);
    let mut models: Vec<Model> = match &options.models {
        Some(path) => serde_json::from_slice(&files::read(path)?).context("--models")?,
        None => Vec::new(),
    };
    models.resize(options.connections, Model::default());
    let builder = Emulator::builder()
        .clock(Clock::manual(work_time(options.round)))
        .seed(options.seed ^ (options.round << 32))
        .segment_bytes(SEGMENT_BYTES);
    let builder = options.mode.emulator(builder, &options.location);
    let emulator = match builder.open() {
        Ok(emulator) => emulator,
        Err(error) => {
            log.tell(&Event::CannotOpen(error.to_string()))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    log.tell(&Event::Opened)?;
    let beat = Beat::start()?;
    let way = Way::open(&emulator, options.sockets).await?;
    let mut workers = JoinSet::new();
    for (worker, model) in models.into_iter().enumerate() {
        let one = Worker {
            worker,
            client: way.client(&emulator, &name(worker)).await?,
            way,
            emulator: emulator.clone(),
            log: Arc::clone(&log),
            beat: beat.clone(),
            model,
            reads_fail: options.reads_fail,
        };
        workers.spawn(one.run(options.clone()));
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    if options.close {
        // A store that takes no more writes says so once more.
        let _ = emulator.close();
    }
    log.tell(&Event::End)?;
    // Open or not, the store is left as it is: nobody closes it.
    std::process::exit(0)
}

/// How the connections reach the emulator.
#[derive(Clone, Copy)]
enum Way {
    InProcess,
    Sockets([SocketAddr; 3]),
}

impl Way {
    async fn open(emulator: &Emulator, sockets: bool) -> anyhow::Result<Self> {
        if !sockets {
            return Ok(Way::InProcess);
        }
        let mut addresses = Vec::new();
        for service in [Service::Blob, Service::Queue, Service::Table] {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = Listener::bind(service, any, None, Patience::default()).await?;
            addresses.push(listener.address()?);
            tokio::spawn(listener.serve(emulator.clone(), std::future::pending()));
        }
        match <[SocketAddr; 3]>::try_from(addresses) {
            Ok(addresses) => Ok(Way::Sockets(addresses)),
            Err(_) => anyhow::bail!("three services have three addresses"),
        }
    }

    async fn client(self, emulator: &Emulator, name: &str) -> Result<Client, ServerError> {
        match self {
            Way::InProcess => Ok(Client::within(emulator, name)),
            Way::Sockets(addresses) => Client::connect(addresses, name).await,
        }
    }
}

struct Worker {
    worker: usize,
    way: Way,
    emulator: Emulator,
    client: Client,
    log: Arc<Log>,
    beat: Beat,
    model: Model,
    reads_fail: bool,
}

impl Worker {
    async fn run(mut self, options: ChildOptions) -> anyhow::Result<()> {
        let worker = self.worker;
        // What the child sees twice is for the parent to say, who knows all rounds.
        let unique = Unique::default();
        let mut random = stream(options.seed, options.round, worker as u64);
        if let Err(error) = self.client.create().await {
            // There is nothing to work on.
            return self.judge_refusal(&error);
        }
        let mut is_writable = true;
        let mut done = 0;
        while options.operations.is_none_or(|most| done < most) {
            done += 1;
            if options.pause_ms > 0 {
                let pause_ms = below(&mut random, options.pause_ms + 1);
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
            if options.reset_after == Some(done) && worker == 0 {
                self.reset().await?;
            }
            let op = worker::choose(&self.model, &mut random, options.round);
            self.log.tell(&Event::Begin {
                worker,
                op: op.clone(),
            })?;
            self.emulator.clock().advance(OPERATION);
            match worker::perform(&mut self.client, &self.model, &op).await {
                Ok(outcome) => {
                    let told = Event::Done {
                        worker,
                        outcome: outcome.clone(),
                        at_ms: self.beat.ms(),
                    };
                    self.log.tell(&told)?;
                    self.model.acknowledge(op, outcome, &unique);
                }
                Err(error) if is_writable => {
                    is_writable = self.refused(&op, &error).await?;
                    self.look().await?;
                }
                // It stays so, and says it each time.
                Err(error) => {
                    self.judge_refusal(&error)?;
                    self.client.reconnect().await?;
                }
            }
            if done.is_multiple_of(options.maintain_every) {
                let emulator = self.emulator.clone();
                let run = move || emulator.maintain(MAINTENANCE_BUDGET);
                // A store that takes no more writes is not maintained either.
                let _ = tokio::task::spawn_blocking(run).await?;
            }
        }
        if options.idle {
            self.idle().await?;
        }
        Ok(())
    }

    /// Says now and then what time it is, until it is killed.
    async fn idle(&self) -> anyhow::Result<()> {
        loop {
            let at_ms = self.beat.ms();
            self.log.tell(&Event::Idle { at_ms })?;
            tokio::time::sleep(IDLE).await;
        }
    }

    /// After a refusal: it must be a 5xx. Whether the store still takes writes, by a write beside.
    async fn refused(&mut self, op: &Op, error: &ServerError) -> anyhow::Result<bool> {
        let (worker, text) = (self.worker, error.to_string());
        self.judge_refusal(error)?;
        // The service may close a connection whose body it did not read.
        self.client.reconnect().await?;
        let beside = format!("probe-{worker}");
        let mut beside = self.way.client(&self.emulator, &beside).await?;
        let is_writable = beside.create().await.is_ok();
        let failure = self.emulator.store_failure();
        let cut_off = failure.is_some_and(|cause| cause.contains(CUT_OFF));
        self.reads_fail |= cut_off;
        // Messages are taken first, and their texts are read then.
        let is_uncertain = self.reads_fail && *op == Op::GetMessages;
        if is_uncertain {
            // With receipts that nobody was told. The parent goes on expecting them.
            self.model.messages.clear();
        }
        self.log.tell(&if is_writable {
            Event::Refused {
                worker,
                text,
                is_uncertain,
            }
        } else {
            Event::ReadOnly {
                worker,
                text,
                cut_off,
            }
        })?;
        Ok(is_writable)
    }

    fn judge_refusal(&self, error: &ServerError) -> anyhow::Result<()> {
        let is_clean = worker::refusal(error).is_some_and(is_of_azures_form);
        if !is_clean {
            let text = format!("a refusal must be a 5xx of Azure's form: {error}");
            let flaw = Flaw::new(Property::C1, text);
            self.log.tell(&Event::Wrong(flaw))?;
        }
        Ok(())
    }

    /// Reads go on, and show what was acknowledged.
    async fn look(&mut self) -> anyhow::Result<()> {
        let mut verified = verify::Verified::default();
        let mut seen = self.model.clone();
        let unique = Unique::default();
        let (client, found) = (&mut self.client, &mut verified);
        let mut looked = verify::blobs(client, &mut seen, &unique, found).await;
        if looked.is_ok() {
            looked = verify_entities::entities(client, &mut seen, &unique, found).await;
        }
        let is_refused = |error: &ServerError| worker::refusal(error).is_some();
        if let Err(error) = looked
            && !(self.reads_fail && is_refused(&error))
        {
            let text = format!("reads do not go on: {error}");
            let flaw = Flaw::new(Property::C1, text);
            verified.flaws.push(flaw);
        }
        let flaws: Vec<Flaw> = match self.reads_fail {
            true => verified.flaws,
            false => verified.all_flaws().collect(),
        };
        for flaw in flaws {
            self.log.tell(&Event::Wrong(flaw))?;
        }
        Ok(())
    }

    async fn reset(&mut self) -> anyhow::Result<()> {
        self.log.tell(&Event::Reset { done: false })?;
        self.emulator.reset()?;
        self.log.tell(&Event::Reset { done: true })?;
        self.model = Model::default();
        self.client.create().await?;
        Ok(())
    }
}

/// Whether a refusal is a 5xx as Azure words it: with the code in a header and in XML, or, of the
/// Table service, in JSON.
fn is_of_azures_form(text: &str) -> bool {
    [("500", "InternalError"), ("503", "ServerBusy")]
        .iter()
        .any(|(status, code)| {
            let in_xml = text.starts_with(&format!("{status} {code} ")) && text.contains("<Code>");
            let in_json = format!("{{\"odata.error\":{{\"code\":\"{code}\"");
            in_xml || text.starts_with(&format!("{status} ")) && text.contains(&in_json)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_5xx_are_known() {
        let xml = "500 InternalError in place of 201: <Error><Code>InternalError</Code></Error>";
        let json = r#"500  in place of 204: {"odata.error":{"code":"InternalError","message":{}}}"#;
        assert!(is_of_azures_form(xml) && is_of_azures_form(json));
        assert!(!is_of_azures_form(
            &json.replace("InternalError", "ResourceNotFound")
        ));
        assert!(!is_of_azures_form(&json.replace("500", "409")));
        assert!(!is_of_azures_form("500  in place of 204: "));
    }
}
