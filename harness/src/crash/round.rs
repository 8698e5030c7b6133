//! One round: start, work, kill, start, start again, verify.

use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::content::{below, stream};
use super::history::{Cut, History};
use super::model::{Model, Unique};
use super::promise::{Lost, Promise};
use super::property::{Flaw, Property};
use super::survey;
use super::verify::{self, Verified};
use super::verify_entities;
use super::verify_lease;
use super::verify_queue;
use super::wire::Client;
use super::worker::{self, Order, Work};
use crate::servers::ServerError;
use crate::servers::smalt::{Launch, Smalt};
use crate::target::control::Control;

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
    /// Entities and free rows that were looked at.
    pub entities: u64,
    /// What the kill took of what had been acknowledged, where it may.
    pub taken: Lost,
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
    promise: Promise,
    seed: u64,
    models: Vec<Model>,
    /// What each did in this round.
    histories: Vec<History>,
    order: Order,
    unique: Unique,
}

/// Waits until nothing of what was acknowledged so far may be lost.
async fn settle(promise: Promise) {
    tokio::time::sleep(Duration::from_millis(promise.loss_ms_max())).await;
}

fn name(worker: usize) -> String {
    format!("crash-{worker}")
}

impl Run {
    /// A run on a fresh store with so many connections.
    ///
    /// # Errors
    /// When the server does not start.
    pub async fn begin(
        mut launch: Launch,
        promise: Promise,
        seed: u64,
        connections: usize,
    ) -> Result<Self, ServerError> {
        launch.flags.push("--mode".to_owned());
        launch.flags.push(promise.mode().to_owned());
        let server = launch.start().await?;
        for worker in 0..connections {
            let mut client = Client::open(&server, &name(worker)).await?;
            client.create().await?;
        }
        settle(promise).await;
        server.kill().await?;
        Ok(Run {
            launch,
            promise,
            seed,
            models: vec![Model::default(); connections],
            histories: Vec::new(),
            order: Order::start().map_err(ServerError::call)?,
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
        settle(self.promise).await;
        server.kill().await?;
        Ok(round)
    }

    async fn work_and_kill(&mut self, round: &mut Round) -> Result<(), ServerError> {
        let server = self.launch.start().await?;
        let mut workers = JoinSet::new();
        for (worker, mut model) in std::mem::take(&mut self.models).into_iter().enumerate() {
            let mut client = Client::open(&server, &name(worker)).await?;
            let random = stream(self.seed, round.number, worker as u64);
            let (unique, order, number) = (self.unique.clone(), self.order.clone(), round.number);
            workers.spawn(async move {
                let (client, random) = (&mut client, (random, number));
                let work = worker::work(client, &mut model, &unique, random, &order).await;
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
        let until_ms = self.order.ms();
        server.kill().await?;
        let mut done: Vec<(usize, Model, Work)> = workers.join_all().await;
        done.sort_by_key(|(worker, ..)| *worker);
        for (_, model, work) in done {
            self.models.push(model);
            round.acknowledged += work.acknowledged;
            round.flaws.extend(work.flaws);
            self.histories.push(History {
                until_ms,
                ..work.history
            });
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
        let first = state(&server).await?;
        server.kill().await?;
        let server = self.launch.start().await?;
        if state(&server).await? != first {
            let text = "opening the store once more changed it".to_owned();
            round.flaws.push(Flaw::new(Property::C7, text));
        }
        Ok(server)
    }

    async fn verify(&mut self, server: &Smalt, round: &mut Round) -> Result<(), ServerError> {
        let mut checks = JoinSet::new();
        let histories = std::mem::take(&mut self.histories);
        let all = std::mem::take(&mut self.models).into_iter().zip(histories);
        for (worker, (model, history)) in all.enumerate() {
            let check = Check {
                client: Client::open(server, &name(worker)).await?,
                promise: self.promise,
                unique: self.unique.clone(),
                worker,
                model,
                history,
                cut: None,
                verified: Verified::default(),
            };
            checks.spawn(check.done());
        }
        let mut done: Vec<Check> = checks.join_all().await;
        done.sort_by_key(|check| check.worker);
        let mut cuts = Vec::new();
        for check in &mut done {
            self.models.push(std::mem::take(&mut check.model));
            let verified = std::mem::take(&mut check.verified);
            round.blobs += verified.blobs;
            round.messages += verified.messages;
            round.entities += verified.entities;
            round.flaws.extend(verified.all_flaws());
            cuts.extend(check.cut.map(|cut| (&check.history, cut)));
        }
        round.taken = self.promise.lost(&cuts, &mut round.flaws);
        Ok(())
    }
}

/// The check of one connection.
struct Check {
    worker: usize,
    client: Client,
    promise: Promise,
    model: Model,
    history: History,
    unique: Unique,
    /// How much of its history is there, if its end may be lost.
    cut: Option<Cut>,
    verified: Verified,
}

impl Check {
    async fn done(mut self) -> Self {
        if let Err(error) = self.run().await {
            // What was found before the server stopped answering counts all the same.
            let text = format!("{} cannot be checked: {error}", name(self.worker));
            self.verified.flaws.push(Flaw::new(Property::C1, text));
        }
        self.model.pending = None;
        self
    }

    async fn run(&mut self) -> Result<(), ServerError> {
        let (client, unique, verified) = (&mut self.client, &self.unique, &mut self.verified);
        if self.promise == Promise::Fast {
            let found = survey::connection(client, &self.history, false, unique, verified).await?;
            (self.model, self.cut) = (found.model, Some(found.cut));
            return Ok(());
        }
        let model = &mut self.model;
        verify::blobs(client, model, unique, verified).await?;
        verify_entities::entities(client, model, unique, verified).await?;
        verify_lease::lease(client, model, verified).await?;
        verify_queue::messages(client, model, unique, verified).await
    }
}

/// What a server holds.
async fn state(server: &Smalt) -> Result<serde_json::Value, ServerError> {
    let control = Control::at(&server.control.to_string())?;
    Ok(control.state().await?)
}
