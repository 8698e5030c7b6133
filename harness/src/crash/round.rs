//! One round: start, work, kill, start, start again, verify.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::child::name;
use super::content::{below, stream};
use super::mode::Mode;
use super::model::{Model, Unique};
use super::property::{Flaw, Property, Verified};
use super::survey;
use super::wire::Client;
use super::worker::{self, Work};
use crate::servers::smalt::Launch;
use crate::servers::{Running, ServerError};
use crate::target::control::Control;

/// Duration of the work before the kill, in milliseconds.
const WORK_MS: std::ops::Range<u64> = 20..1_500;
/// In one of so many rounds the work lasts until the server's background work runs too.
const LONG_ROUND: u64 = 4;
/// Duration of that work in milliseconds: the background work comes every 5 s, and the kill is near
/// it.
const LONG_WORK_MS: std::ops::Range<u64> = 4_950..5_400;
/// C6: longest time until the server is ready again, including the start of the process. A store of
/// this size takes a twentieth of it.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// Random stream that chooses the moments, beside those of the connections.
const MOMENTS: u64 = u64::MAX;

/// Results of a round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Number of the round, from 1.
    pub number: u64,
    /// Milliseconds from the beginning of the work to the kill.
    pub killed_after_ms: u64,
    /// Number of operations acknowledged in this round.
    pub acknowledged: u64,
    /// Number of operations in flight.
    pub in_flight: u64,
    /// Milliseconds from the start of the process to its announcement.
    pub ready_ms: u64,
    /// Number of blobs and free names that were examined.
    pub blobs: u64,
    /// Number of messages that were examined.
    pub messages: u64,
    /// Properties that do not hold.
    pub flaws: Vec<Flaw>,
}

impl Round {
    /// Returns the number of flaws about missing acknowledged data, and of all others.
    pub fn lost_and_corrupt(&self) -> (usize, usize) {
        let lost = self.flaws.iter().filter(|f| f.property == Property::C1);
        let lost = lost.count();
        (lost, self.flaws.len() - lost)
    }
}

/// A run in progress: the store, and what every connection expects of it.
pub struct Run {
    launch: Launch,
    seed: u64,
    models: Vec<Model>,
    unique: Unique,
}

impl Run {
    /// Starts a run on a new store with this many connections.
    pub async fn begin(
        mut launch: Launch,
        mode: Mode,
        seed: u64,
        connections: usize,
    ) -> Result<Self, ServerError> {
        launch.flags.push("--mode".to_owned());
        launch.flags.push(mode.name().to_owned());
        let server = launch.start().await?;
        for worker in 0..connections {
            let mut client = Client::connect(server.addresses, &name(worker)).await?;
            client.create().await?;
        }
        server.process.kill().await?;
        Ok(Run {
            launch,
            seed,
            models: vec![Model::default(); connections],
            unique: Unique::default(),
        })
    }

    /// Runs one round.
    pub async fn round(&mut self, number: u64) -> Result<Round, ServerError> {
        let mut round = Round {
            number,
            ..Round::default()
        };
        self.work_and_kill(&mut round).await?;
        let in_flight = self.models.iter().filter(|model| model.pending.is_some());
        round.in_flight = in_flight.count() as u64;
        let server = self.start_twice(&mut round).await?;
        self.verify(&server, &mut round).await?;
        server.process.kill().await?;
        Ok(round)
    }

    async fn work_and_kill(&mut self, round: &mut Round) -> Result<(), ServerError> {
        let server = self.launch.start().await?;
        let mut workers = JoinSet::new();
        for (worker, mut model) in std::mem::take(&mut self.models).into_iter().enumerate() {
            let mut client = Client::connect(server.addresses, &name(worker)).await?;
            let random = stream(self.seed, round.number, worker as u64);
            let (unique, number) = (self.unique.clone(), round.number);
            workers.spawn(async move {
                let (client, random) = (&mut client, (random, number));
                let work = worker::work(client, &mut model, &unique, random).await;
                (worker, model, work)
            });
        }
        let mut moments = stream(self.seed, round.number, MOMENTS);
        let range = if round.number.is_multiple_of(LONG_ROUND) {
            LONG_WORK_MS
        } else {
            WORK_MS
        };
        round.killed_after_ms = range.start + below(&mut moments, range.end - range.start);
        tokio::time::sleep(Duration::from_millis(round.killed_after_ms)).await;
        server.process.kill().await?;
        let mut done: Vec<(usize, Model, Work)> = workers.join_all().await;
        done.sort_by_key(|(worker, ..)| *worker);
        for (_, model, work) in done {
            round.acknowledged += work.acknowledged;
            round.flaws.extend(work.flaws);
            self.models.push(model);
        }
        Ok(())
    }

    /// C6 and C7: checks that the store opens, and that opening it once more changes nothing.
    async fn start_twice(&mut self, round: &mut Round) -> Result<Running, ServerError> {
        let begun = Instant::now();
        let server = self.launch.start().await?;
        if begun.elapsed() > OPEN_MAX {
            let text = format!("opening took {:?}", begun.elapsed());
            round.flaws.push(Flaw::new(Property::C6, text));
        }
        round.ready_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let first = state(&server).await?;
        server.process.kill().await?;
        let server = self.launch.start().await?;
        if state(&server).await? != first {
            let text = "opening the store once more changed it".to_owned();
            round.flaws.push(Flaw::new(Property::C7, text));
        }
        Ok(server)
    }

    async fn verify(&mut self, server: &Running, round: &mut Round) -> Result<(), ServerError> {
        let mut checks = JoinSet::new();
        for (worker, mut model) in std::mem::take(&mut self.models).into_iter().enumerate() {
            let mut client = Client::connect(server.addresses, &name(worker)).await?;
            let unique = self.unique.clone();
            checks.spawn(async move {
                let mut verified = Verified::default();
                let (client, all) = (&mut client, &mut verified);
                match survey::connection(client, &model, false, &unique, all).await {
                    Ok(found) => model = found,
                    // Flaws that were found before the server stopped answering still count.
                    Err(error) => {
                        let text = format!("{} cannot be checked: {error}", name(worker));
                        verified.flaws.push(Flaw::new(Property::C1, text));
                    }
                }
                model.pending = None;
                (worker, model, verified)
            });
        }
        let mut done: Vec<(usize, Model, Verified)> = checks.join_all().await;
        done.sort_by_key(|(worker, ..)| *worker);
        for (_, model, verified) in done {
            self.models.push(model);
            round.blobs += verified.blobs;
            round.messages += verified.messages;
            round.flaws.extend(verified.all_flaws());
        }
        Ok(())
    }
}

/// Returns the state of a server.
async fn state(server: &Running) -> Result<serde_json::Value, ServerError> {
    let control = Control::at(&server.control()?.to_string())?;
    Ok(control.state().await?)
}
