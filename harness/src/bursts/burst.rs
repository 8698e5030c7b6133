//! One burst against an emulator in this process.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::Model;
use smalt_model::vocabulary::{ContainerOperation, Operation};

use super::linear::{Call, Refuted, State, linearize};
use crate::histories::generate::{DICE, Space, choose};
use crate::histories::names::Names;
use crate::histories::run::{Answered, Player};
use crate::histories::server::{START_S, Server};

/// Operations of the prelude.
const PRELUDE: usize = 12;
/// Of a hundred operations, so many lose their answer.
const LOST_PERCENT: u32 = 8;
/// More numbers than an operation can name by chance.
const SKIPPED: u32 = 1_000;
/// A page that holds every blob there is: several pages are several moments.
const ONE_PAGE: u32 = 5_000;

/// How a burst is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Clients at once.
    pub clients: usize,
    /// Operations of each.
    pub operations: usize,
    /// An answer waits for the disk.
    pub durable: bool,
}

/// What came of a burst.
#[derive(Debug)]
pub struct Outcome {
    /// Calls, answered or not.
    pub calls: usize,
    /// Calls whose answer was lost.
    pub lost: usize,
    /// Pairs of calls that overlapped.
    pub overlaps: usize,
}

/// Runs the burst of a seed.
///
/// # Errors
/// A report of calls that no order explains, or what kept the burst from running.
pub async fn burst(seed: u64, shape: Shape) -> Result<Outcome, String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // In memory a call never waits, and so never meets another.
    let server = Server::on_disk(shape.durable)?;
    let mut start = State {
        model: Model::new(START_S),
        names: Names::default(),
    };
    let mut player = Player::new(Arc::new(server));
    for _ in 0..PRELUDE {
        let operation = next(&start.model, &mut random);
        let expected = start.model.step(&operation);
        player.play(&operation, &expected, &mut start.names).await?;
    }
    // What the burst names is what the prelude made, or never was.
    let known = start.model.clone();
    start.model.skip_numbers(SKIPPED);
    let calls = run(seed, &known, &start.names, &player, shape, &mut random).await?;
    match linearize(&start, &calls) {
        Ok(_) => Ok(Outcome {
            calls: calls.len(),
            lost: calls.iter().filter(|call| call.returned.is_none()).count(),
            overlaps: overlaps(&calls),
        }),
        Err(refuted) => Err(report(seed, &player, &calls, &refuted)),
    }
}

fn next(model: &Model, random: &mut ChaCha8Rng) -> Operation {
    let mut dice = [0; DICE];
    random.fill_bytes(&mut dice);
    let mut operation = choose(model, Space::BURST, &dice);
    if let Operation::Container(_, ContainerOperation::List { page, .. }) = &mut operation {
        *page = ONE_PAGE;
    }
    operation
}

async fn run(
    seed: u64,
    known: &Model,
    names: &Names,
    player: &Player,
    shape: Shape,
    random: &mut ChaCha8Rng,
) -> Result<Vec<Call>, String> {
    let clock = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for client in 0..shape.clients {
        // Each client plans for the state that it found.
        let plan: Vec<(Operation, bool)> = (0..shape.operations)
            .map(|_| {
                let is_lost = random.next_u32() % 100 < LOST_PERCENT;
                (next(known, random), is_lost)
            })
            .collect();
        let (clock, names, server) = (clock.clone(), names.clone(), player.server());
        clients.push(tokio::spawn(async move {
            let mut calls = Vec::new();
            for (operation, is_lost) in plan {
                let called = clock.fetch_add(1, Ordering::SeqCst);
                let answered = Answered::to(&server, &operation, &names).await?;
                let returned = clock.fetch_add(1, Ordering::SeqCst);
                calls.push(Call {
                    client,
                    operation,
                    called,
                    // Who does not see the answer does not know when it came either.
                    returned: (!is_lost).then_some((returned, answered)),
                });
                tokio::task::yield_now().await;
            }
            Ok::<_, String>(calls)
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        let calls = client
            .await
            .map_err(|error| format!("seed {seed}: {error}"))?;
        all.extend(calls?);
    }
    Ok(all)
}

fn overlaps(calls: &[Call]) -> usize {
    let end = |call: &Call| call.returned.as_ref().map_or(u64::MAX, |(at, _)| *at);
    let pairs = calls.iter().enumerate().flat_map(|(place, one)| {
        let later = calls[place + 1..].iter();
        later.filter(move |other| one.called < end(other) && other.called < end(one))
    });
    pairs.count()
}

fn report(seed: u64, player: &Player, calls: &[Call], refuted: &Refuted) -> String {
    let mut text = format!(
        "seed {seed}: no order of these calls is the model's ({} states)\n\nbefore:\n{}\ncalls:\n",
        refuted.states,
        player.transcript()
    );
    for (place, call) in calls.iter().enumerate() {
        let told = match &call.returned {
            Some((at, answered)) => format!("{:>3} {}", at, answered.answer.summary()),
            None => "    (lost)".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{place:>3} client {} {:>3}-{told}  {:?}",
            call.client, call.called, call.operation
        );
    }
    let _ = writeln!(text, "\nthe model agrees up to {:?}, then", refuted.longest);
    for (place, reason) in &refuted.reasons {
        let _ = writeln!(text, "{place:>3} {reason}");
    }
    text
}
