//! Bursts on disk: clients on threads that run in parallel, with the real committer. The machine
//! determines the order, so a failing burst may not fail again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::Model;
use smalt_model::vocabulary::Operation;
use tokio::runtime::Runtime;

use super::burst::{Failure, History, any};
use super::judge::{self, Verdict};
use super::linear::Call;
use super::plan::{Kind, Plan};
use super::state::State;
use crate::histories::names::Names;
use crate::histories::run::{Answered, Player};
use crate::histories::server::Server;

/// Number of worker threads, which limits the clients that run in parallel.
const WORKER_THREADS: usize = 4;
/// Number of operations in the prelude.
const PRELUDE: usize = 12;
/// Percentage of operations that lose their answer.
const LOST_PERCENT: u32 = 8;

/// Creates a runtime for these bursts.
pub fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
}

/// Runs a burst of [`Kind::All`]; with `durable`, answers wait for the disk.
///
/// # Errors
/// Why no order of the calls explains the answers, with the history.
pub async fn burst(plan: &Plan, durable: bool) -> Result<(Verdict, History), Box<Failure>> {
    let mut history = History::default();
    let told = play(plan, durable, &mut history).await;
    match told.and_then(|()| judge::judge(Kind::All, &history)) {
        Ok(verdict) => Ok((verdict, history)),
        Err(reason) => Err(Box::new(Failure { reason, history })),
    }
}

async fn play(plan: &Plan, durable: bool, history: &mut History) -> Result<(), String> {
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    let server = Server::on_disk(durable)?;
    let mut start = State::default();
    let mut player = Player::new(Arc::new(server));
    for _ in 0..PRELUDE {
        let operation = any(&start.model, &mut random);
        let expected = start.model.step(&operation);
        let played = player.play(&operation, &expected, &mut start.names);
        played.await?;
    }
    player.transcript().clone_into(&mut history.before);
    history.calls = at_once(plan, &start.model, &start.names, &player, &mut random).await?;
    history.start = start;
    player.server().audit()
}

async fn at_once(
    plan: &Plan,
    known: &Model,
    names: &Names,
    player: &Player,
    random: &mut ChaCha8Rng,
) -> Result<Vec<Call>, String> {
    let clock = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for client in 0..plan.clients {
        // Clients choose operations for the state after the prelude.
        let program: Vec<(Operation, bool)> = (0..plan.operations)
            .map(|_| {
                let is_lost = random.next_u32() % 100 < LOST_PERCENT;
                (any(known, random), is_lost)
            })
            .collect();
        let (clock, names, server) = (clock.clone(), names.clone(), player.server());
        clients.push(tokio::spawn(async move {
            let mut calls = Vec::new();
            for (operation, is_lost) in program {
                let called = clock.fetch_add(1, Ordering::SeqCst);
                let answered = Answered::to(&server, &operation, &names).await?;
                let returned = clock.fetch_add(1, Ordering::SeqCst);
                calls.push(Call {
                    client,
                    operation,
                    called,
                    // A client that does not see the answer does not know when it arrived.
                    returned: (!is_lost).then_some((returned, answered)),
                });
                tokio::task::yield_now().await;
            }
            Ok::<_, String>(calls)
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.map_err(|error| error.to_string())??);
    }
    Ok(all)
}
