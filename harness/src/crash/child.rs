//! The process that dies: an emulator on a directory, and connections to it without sockets.
//!
//! The crash test starts `harness crash-child` itself. It opens the store, works, and logs every
//! beginning and end of an operation ([`super::events`]). It dies at a named step of the store, or
//! is killed from outside, or runs to its end under the shim.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use smalt::store::CUT_OFF;
use smalt::{AccountSettings, Clock, Emulator, Timestamp};
use tokio::task::JoinSet;

use super::content::stream;
use super::events::{Event, Log};
use super::files;
use super::mode::Mode;
use super::model::{Model, Op, Unique};
use super::property::{Flaw, Property, Verified};
use super::wire::Client;
use super::{compare, survey, worker};
use crate::servers::ServerError;
use crate::testing::Served;
use crate::wire::access::ACCOUNT;

/// Clock at the start of the first round, in seconds since 1970; each later round begins
/// [`ROUND_S`] later.
const START_UNIX_S: u64 = 1_800_000_000;
/// Seconds between the starts of two rounds: more than all waits of a check together.
const ROUND_S: u64 = 1_000;
/// Seconds from the start of the work to that of the check: leases of a minute still exist.
const CHECK_AFTER_S: u64 = 30;
/// Step of the clock for each operation.
const OPERATION: Duration = Duration::from_millis(1);
/// Size of a segment: small enough that segments roll, fill up with garbage and are compacted
/// within a few operations.
pub const SEGMENT_BYTES: u64 = 128 * 1024;
/// Steps of maintenance at a time.
const MAINTENANCE_BUDGET: usize = 20;

/// Options of `harness crash-child`, as its parent writes them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChildOptions {
    /// Directory of the store.
    pub location: PathBuf,
    /// Append the events to this file.
    pub events: PathBuf,
    /// File with the expected contents of the store so far; none for a new store.
    pub models: Option<PathBuf>,
    /// Seed that determines the operations.
    pub seed: u64,
    /// Number of the round, which determines the clock.
    pub round: u64,
    /// Number of concurrent connections.
    pub connections: usize,
    /// Operations of each connection; by default it continues until the process is killed.
    pub operations: Option<u64>,
    /// Run maintenance after this many operations of a connection.
    pub maintain_every: u64,
    /// Reset the service after this many operations of the first connection.
    pub reset_after: Option<u64>,
    /// Call over sockets within this process, to check what a client sees of a failure.
    pub sockets: bool,
    /// Reading payloads may fail: answers may then be missing, but not wrong.
    pub reads_fail: bool,
    /// Storage mode.
    pub mode: Mode,
    /// Close the store at the end instead of dying with it open.
    pub close: bool,
    /// Die at this step of the store: `name:nth`. Needs the feature `failpoints`.
    pub failpoint: Option<String>,
}

/// Returns the time at which the work of a round begins.
pub fn work_time(round: u64) -> Timestamp {
    Timestamp::from_unix_s(START_UNIX_S + round * ROUND_S)
}

/// Returns the time at which the check of a round begins.
pub fn check_time(round: u64) -> Timestamp {
    work_time(round).plus_s(CHECK_AFTER_S)
}

/// Returns the name of a connection's container and queue.
pub fn name(worker: usize) -> String {
    format!("crash-{worker}")
}

/// Arms the step at which the process must die.
fn arm(failpoint: Option<&str>) -> anyhow::Result<()> {
    let Some(text) = failpoint else {
        return Ok(());
    };
    let (name, nth) = text.rsplit_once(':').context("a failpoint is name:nth")?;
    let nth: u64 = nth.parse().context("a failpoint is name:nth")?;
    smalt::store::failpoint::arm(name, nth);
    Ok(())
}

/// Runs `harness crash-child`.
///
/// # Errors
/// When its files cannot be read or written. Errors of the store are logged, not returned.
pub async fn run_child(options: &str) -> anyhow::Result<ExitCode> {
    let options: ChildOptions = serde_json::from_str(options)?;
    arm(options.failpoint.as_deref())?;
    let log = Arc::new(Log::open(&options.events).context("events")?);
    let mut models: Vec<Model> = match &options.models {
        Some(path) => serde_json::from_slice(&files::read(path)?).context("models")?,
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
    let served = match options.sockets {
        true => Some(Served::of(&emulator).await?),
        false => None,
    };
    let way = served.as_ref().map(Served::addresses);
    let way = way.map_or(Way::InProcess, Way::Sockets);
    make_namespaces(&emulator, way, &options).await?;
    let mut workers = JoinSet::new();
    for (worker, mut model) in models.into_iter().enumerate() {
        model.is_lake = is_lake(worker, options.seed);
        let one = Worker {
            worker,
            client: way.client(&emulator, &name(worker)).await?,
            way,
            emulator: emulator.clone(),
            log: Arc::clone(&log),
            model,
            reads_fail: options.reads_fail,
        };
        workers.spawn(one.run(options.clone()));
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    if options.close {
        // A read-only store reports its failure once more.
        let _ = emulator.close();
    }
    log.tell(&Event::End)?;
    // The store is left as it is, open or not: nobody closes it.
    std::process::exit(0)
}

/// Whether a connection's container has a hierarchical namespace.
pub fn is_lake(worker: usize, seed: u64) -> bool {
    (worker as u64).wrapping_add(seed) % 2 == 1
}

/// Lets containers that are made from now on have a hierarchical namespace, or a flat one. The
/// others keep theirs.
pub fn set_namespace(emulator: &Emulator, hierarchical_namespace: bool) {
    let settings = AccountSettings {
        hierarchical_namespace,
        ..AccountSettings::default()
    };
    emulator.change_settings(ACCOUNT, settings);
}

/// Makes the flat containers, and lets all others be hierarchical from then on.
async fn make_namespaces(
    emulator: &Emulator,
    way: Way,
    options: &ChildOptions,
) -> anyhow::Result<()> {
    let flat = (0..options.connections).filter(|worker| !is_lake(*worker, options.seed));
    for worker in flat {
        // On a failing disk, the connection reports the failure.
        let _ = way.client(emulator, &name(worker)).await?.create().await;
    }
    set_namespace(emulator, true);
    Ok(())
}

/// How the connections reach the emulator.
#[derive(Clone, Copy)]
enum Way {
    InProcess,
    Sockets([SocketAddr; 3]),
}

impl Way {
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
    model: Model,
    reads_fail: bool,
}

impl Worker {
    async fn run(mut self, options: ChildOptions) -> anyhow::Result<()> {
        let worker = self.worker;
        // The parent, which knows all rounds, checks for values that are given twice.
        let unique = Unique::default();
        let mut random = stream(options.seed, options.round, worker as u64);
        if let Err(error) = self.client.create().await {
            // Without a container there is nothing to work on.
            return self.judge_refusal(&error);
        }
        let mut is_writable = true;
        let mut done = 0;
        while options.operations.is_none_or(|most| done < most) {
            done += 1;
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
                    };
                    self.log.tell(&told)?;
                    self.model.acknowledge(op, outcome, &unique);
                }
                Err(error) if is_writable => {
                    is_writable = self.refused(&op, &error).await?;
                    self.look().await?;
                }
                // The failure stays, and every later operation reports it.
                Err(error) => {
                    self.judge_refusal(&error)?;
                    self.client.reconnect().await?;
                }
            }
            if done.is_multiple_of(options.maintain_every) {
                let emulator = self.emulator.clone();
                let run = move || emulator.maintain(MAINTENANCE_BUDGET);
                // A read-only store gets no maintenance either.
                let _ = tokio::task::spawn_blocking(run).await?;
            }
        }
        Ok(())
    }

    /// Checks that an error is a 5xx, and that a store that has failed accepts no other write.
    /// Returns whether it has not failed: it may lack room, and then accepts what needs none.
    async fn refused(&mut self, op: &Op, error: &ServerError) -> anyhow::Result<bool> {
        let (worker, text) = (self.worker, error.to_string());
        self.judge_refusal(error)?;
        // The service may close a connection whose body it did not read.
        self.client.reconnect().await?;
        let beside = format!("probe-{worker}");
        let mut beside = self.way.client(&self.emulator, &beside).await?;
        let failure = self.emulator.store_failure();
        let is_writable = failure.is_none();
        if beside.create().await.is_ok() && !is_writable {
            let flaw = Flaw::new(Property::C1, "a failed store accepted a write");
            self.log.tell(&Event::Wrong(flaw))?;
        }
        let cut_off = failure.is_some_and(|cause| cause.contains(CUT_OFF));
        self.reads_fail |= cut_off;
        // Messages are taken before their texts are read.
        let is_uncertain = self.reads_fail && *op == Op::GetMessages;
        if is_uncertain {
            // They have receipts that nobody got. The parent still expects them.
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
            let text = format!("an error must be a 5xx in Azure's form: {error}");
            let flaw = Flaw::new(Property::C1, text);
            self.log.tell(&Event::Wrong(flaw))?;
        }
        Ok(())
    }

    /// Checks that reads still work and show what was acknowledged.
    async fn look(&mut self) -> anyhow::Result<()> {
        let mut verified = Verified::default();
        match survey::look(&mut self.client, &self.model, &mut verified).await {
            Ok(seen) => verified
                .flaws
                .extend(compare::differences(&self.model, &seen)),
            Err(error) if self.reads_fail && worker::refusal(&error).is_some() => {}
            Err(error) => {
                let text = format!("reads fail after the error: {error}");
                let flaw = Flaw::new(Property::C1, text);
                verified.flaws.push(flaw);
            }
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
        self.model = Model {
            is_lake: self.model.is_lake,
            ..Model::default()
        };
        self.client.create().await?;
        Ok(())
    }
}

/// Whether an error is a 5xx in Azure's form: with the code in a header and in XML or, from the
/// Data Lake interface, in JSON; from the Table service only in JSON.
fn is_of_azures_form(text: &str) -> bool {
    [("500", "InternalError"), ("503", "ServerBusy")]
        .iter()
        .any(|(status, code)| {
            let in_lake = format!("{{\"error\":{{\"code\":\"{code}\"");
            let in_table = format!("{{\"odata.error\":{{\"code\":\"{code}\"");
            let in_header = text.starts_with(&format!("{status} {code} "));
            in_header && (text.contains("<Code>") || text.contains(&in_lake))
                || text.starts_with(&format!("{status} ")) && text.contains(&in_table)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_5xx_are_recognised() {
        let xml = "500 InternalError in place of 201: <Error><Code>InternalError</Code></Error>";
        let json = r#"500  in place of 204: {"odata.error":{"code":"InternalError","message":{}}}"#;
        let lake =
            r#"503 ServerBusy in place of 201: {"error":{"code":"ServerBusy","message":""}}"#;
        assert!([xml, json, lake].into_iter().all(is_of_azures_form));
        assert!(!is_of_azures_form(&lake.replace("ServerBusy in", "in")));
        assert!(!is_of_azures_form(
            &json.replace("InternalError", "ResourceNotFound")
        ));
        assert!(!is_of_azures_form(&json.replace("500", "409")));
        assert!(!is_of_azures_form("500  in place of 204: "));
    }
}
