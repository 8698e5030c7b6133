//! One round: start, work, kill, start, start again, verify.

use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::content::{below, stream};
use super::model::{Model, Unique};
use super::property::{Flaw, Property};
use super::verify::{self, Verified};
use super::verify_lease;
use super::verify_queue;
use super::wire::Client;
use super::worker::{self, Work};
use crate::servers::ServerError;
use crate::servers::smalt::{self, Launch, Smalt};

/// Work before the kill, in milliseconds.
const WORK_MS: std::ops::Range<u64> = 20..1_500;
/// Every so many rounds the work lasts until the server's background work is under way too.
const LONG_ROUND: u64 = 4;
/// The background work comes every 5 s; the kill falls around it.
const LONG_WORK_MS: std::ops::Range<u64> = 4_950..5_400;
/// C6: within this time it is ready again, start of the process included. A store of these sizes
/// takes a twentieth of it.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// The stream that chooses the moments, beside those of the connections.
const MOMENTS: u64 = u64::MAX;

/// What came of a round.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Round {
    /// Its number, from 1.
    pub number: u64,
    /// When the server was killed, after the work had begun.
    pub killed_after_ms: u64,
    /// Operations acknowledged in this round.
    pub acknowledged: u64,
    /// Operations that were under way.
    pub in_flight: u64,
    /// From the start of the process to its announcement.
    pub ready_ms: u64,
    /// Blobs and free names that were looked at.
    pub blobs: u64,
    /// Messages that were looked at.
    pub messages: u64,
    /// What does not hold.
    pub flaws: Vec<Flaw>,
}

impl Round {
    /// Flaws by which something acknowledged is not there, and all others.
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

fn name(worker: usize) -> String {
    format!("crash-{worker}")
}

impl Run {
    /// A run on a fresh store with so many connections.
    ///
    /// # Errors
    /// When the server does not start.
    pub async fn begin(launch: Launch, seed: u64, connections: usize) -> Result<Self, ServerError> {
        let server = launch.start().await?;
        for worker in 0..connections {
            let mut client = Client::open(&server, &name(worker)).await?;
            client.create().await?;
        }
        server.kill().await?;
        Ok(Run {
            launch,
            seed,
            models: vec![Model::default(); connections],
            unique: Unique::default(),
        })
    }

    /// One round.
    ///
    /// # Errors
    /// When the server does not start again, or does not answer then.
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
        server.kill().await?;
        Ok(round)
    }

    async fn work_and_kill(&mut self, round: &mut Round) -> Result<(), ServerError> {
        let server = self.launch.start().await?;
        let mut workers = JoinSet::new();
        for (worker, mut model) in std::mem::take(&mut self.models).into_iter().enumerate() {
            let mut client = Client::open(&server, &name(worker)).await?;
            let random = stream(self.seed, round.number, worker as u64);
            let (unique, number) = (self.unique.clone(), round.number);
            workers.spawn(async move {
                let work = worker::work(&mut client, &mut model, &unique, random, number).await;
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
        server.kill().await?;
        let mut done: Vec<(usize, Model, Work)> = workers.join_all().await;
        done.sort_by_key(|(worker, ..)| *worker);
        for (_, model, work) in done {
            self.models.push(model);
            round.acknowledged += work.acknowledged;
            round.flaws.extend(work.flaws);
        }
        Ok(())
    }

    /// C6 and C7: it opens, and opening once more changes nothing.
    async fn start_twice(&mut self, round: &mut Round) -> Result<Smalt, ServerError> {
        let begun = Instant::now();
        let server = self.launch.start().await?;
        if begun.elapsed() > OPEN_MAX {
            let text = format!("opening took {:?}", begun.elapsed());
            round.flaws.push(Flaw::new(Property::C6, text));
        }
        round.ready_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let first = smalt::state(server.control).await?;
        server.kill().await?;
        let server = self.launch.start().await?;
        if smalt::state(server.control).await? != first {
            let text = "opening the store once more changed it".to_owned();
            round.flaws.push(Flaw::new(Property::C7, text));
        }
        Ok(server)
    }

    async fn verify(&mut self, server: &Smalt, round: &mut Round) -> Result<(), ServerError> {
        let mut checks = JoinSet::new();
        for (worker, mut model) in std::mem::take(&mut self.models).into_iter().enumerate() {
            let mut client = Client::open(server, &name(worker)).await?;
            let unique = self.unique.clone();
            checks.spawn(async move {
                let mut verified = Verified::default();
                let (c, m, v) = (&mut client, &mut model, &mut verified);
                let mut checked = verify::blobs(c, m, &unique, v).await;
                if checked.is_ok() {
                    checked = verify_lease::lease(c, m, v).await;
                }
                if checked.is_ok() {
                    checked = verify_queue::messages(c, m, &unique, v).await;
                }
                if let Err(error) = checked {
                    // What was found before the server stopped answering counts all the same.
                    let text = format!("{} cannot be checked: {error}", name(worker));
                    verified.flaws.push(Flaw::new(Property::C1, text));
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
