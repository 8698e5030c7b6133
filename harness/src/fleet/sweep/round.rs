//! One run: fills its own service, sweeps it, and checks it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use smalt_protocol::Service;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_sleeve::port::Storage;
use tokio::time::Instant;

use super::blobs::{Blobs, DEAD_CONTAINER, Number};
use super::judge::Evidence;
use super::{ask, crew};
use crate::bench::servers::Start;
use crate::fleet::herd::Plan;
use crate::fleet::place::Address;
use crate::servers::{Running, ServerError};

/// Environment variable from which a sweeper reads its account.
const ACCOUNT_VARIABLE: &str = "SWEEPER_CONNECTION_STRING";
/// Length of the lease on the state document: a killed worker's lease hinders the others until it
/// expires.
const LEASE: (&str, &str) = ("SWEEPER_LEASE", "15s");
/// Time after which others take over the page of a killed worker.
const PAGE_DEADLINE: &str = "20s";

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Round {
    /// The blobs; their time is the service's.
    pub blobs: Blobs,
    /// The service to start.
    pub service: Start,
    /// Path of the binary `smalt-sweeper`.
    pub sweeper: PathBuf,
    /// Further options of the sweepers.
    pub flags: Vec<String>,
    /// Number of concurrent sweepers.
    pub workers: usize,
    /// Mean time between two kills; `None` kills no process.
    pub kill_every: Option<Duration>,
    /// Seed that determines which process is killed when.
    pub kill_seed: u64,
    /// Number of sweeps after which every due blob must be gone.
    pub sweeps: u32,
    /// Longest duration of a sweep.
    pub patience: Duration,
}

/// Durations of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Number of blobs that were put.
    pub put: u64,
    /// Duration of the puts, in seconds.
    pub fill_s: f64,
    /// Duration of the first sweep in seconds, from the start of the processes.
    pub sweep_s: f64,
    /// Processor time of the service during all sweeps, in seconds.
    pub service_cpu_s: f64,
}

/// A service that contains the blobs.
pub struct Filled {
    server: Running,
    place: Address,
    storage: Arc<dyn Storage>,
    put: u64,
    fill_s: f64,
}

impl Filled {
    /// Puts the blobs again that the last sweeps removed, and deletes their copies; everything else
    /// stays.
    pub async fn refill(&mut self, blobs: &Blobs, bar: &ProgressBar) -> Result<(), ServerError> {
        let begun = Instant::now();
        ask::clear_dead(self.storage.as_ref()).await?;
        let due: Vec<Number> = (0..blobs.count)
            .filter(|n| blobs.fate(*n).is_due())
            .collect();
        self.put = due.len() as u64;
        ask::fill(self.server.address(Service::Blob), blobs, due, bar).await?;
        self.fill_s = begun.elapsed().as_secs_f64();
        Ok(())
    }

    /// Ends the service.
    pub async fn end(self) -> Result<(), ServerError> {
        self.server.process.kill().await
    }
}

impl Round {
    /// Starts the service in this directory, and puts all blobs.
    pub async fn begin(&mut self, dir: &Path, bar: &ProgressBar) -> Result<Filled, ServerError> {
        let (server, _) = self.service.start(dir).await?;
        let address = server.address(Service::Blob);
        let place = Address::of_emulator(address);
        let storage = place.open()?;
        self.blobs.now = ask::prepare(storage.as_ref(), self.blobs.containers()).await?;
        let begun = Instant::now();
        ask::fill(address, &self.blobs, (0..self.blobs.count).collect(), bar).await?;
        Ok(Filled {
            server,
            place,
            storage,
            put: self.blobs.count,
            fill_s: begun.elapsed().as_secs_f64(),
        })
    }

    /// Sweeps, and reads what exists afterwards.
    pub async fn run(&self, filled: &Filled) -> Result<(Evidence, Times), ServerError> {
        let Filled {
            server, storage, ..
        } = filled;
        let mut times = Times {
            put: filled.put,
            fill_s: filled.fill_s,
            ..Times::default()
        };
        let (before, _) = ask::versions(storage.as_ref(), &self.blobs).await?;
        let mut evidence = Evidence {
            before,
            endpoint: filled.place.endpoint.clone(),
            ..Evidence::default()
        };
        let spent = server.process.cpu_time().unwrap_or_default();
        for number in 0..self.sweeps {
            let swept = crew::sweep(self.plan(&evidence.endpoint, number), self.patience).await?;
            if number == 0 {
                times.sweep_s = swept.seconds;
            }
            evidence.killed += swept.killed;
            evidence.stuck += u64::from(swept.is_stuck);
            evidence.workers.extend(swept.workers);
        }
        let spent = server
            .process
            .cpu_time()
            .unwrap_or_default()
            .saturating_sub(spent);
        times.service_cpu_s = spent.as_secs_f64();
        let (after, foreign) = ask::versions(storage.as_ref(), &self.blobs).await?;
        let (dead, dead_foreign) = ask::copies(storage, &self.blobs).await?;
        evidence.after = after;
        evidence.dead = dead;
        evidence.foreign = foreign.into_iter().chain(dead_foreign).collect();
        Ok((evidence, times))
    }

    fn plan(&self, endpoint: &str, number: u32) -> Plan {
        let mut arguments: Vec<String> = [
            "once",
            "--dead-allow",
            DEAD_CONTAINER,
            "--page-deadline",
            PAGE_DEADLINE,
            "--log-level",
            "error",
        ]
        .map(str::to_owned)
        .into();
        for container in self.blobs.containers() {
            arguments.extend(["--container".to_owned(), container]);
        }
        arguments.extend(self.flags.iter().cloned());
        let connection = format!(
            "DefaultEndpointsProtocol=http;AccountName={EMULATOR_ACCOUNT_NAME};\
             AccountKey={EMULATOR_ACCOUNT_KEY};BlobEndpoint={endpoint};"
        );
        Plan {
            binary: self.sweeper.clone(),
            arguments,
            environment: vec![
                (ACCOUNT_VARIABLE, connection),
                (LEASE.0, LEASE.1.to_owned()),
            ],
            processes: self.workers,
            kill_every: self.kill_every,
            // Each sweep has its own kills.
            seed: self
                .kill_seed
                .wrapping_mul(1_000)
                .wrapping_add(u64::from(number)),
        }
    }
}
