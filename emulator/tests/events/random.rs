//! Random histories: every change that was committed is delivered or among the dead letters,
//! nothing else is, and the events of one blob come in their order; also over restarts.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use serde_json::{Value, json};
use smalt::Clock;
use smalt::faults::{Fault, Rule};
use tempfile::TempDir;

use super::world::{blob, short, with_boxes};
use crate::support::{BLOCK, Client, START};

const SEEDS: u64 = 500;
const STEPS: usize = 20;
/// Every so many seeds have a store on disk, and restart on the way.
const RESTARTED: u64 = 20;
const BLOBS: [&str; 3] = ["a", "b", "c"];

struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0.next_u32() as usize % most
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What a run was expected to deliver, and what it delivered.
#[derive(Debug, PartialEq)]
struct History {
    expected: Vec<String>,
    delivered: Vec<Value>,
    dead: Vec<Value>,
}

/// Changes a blob in a random way. Returns the event that the change must raise.
async fn change(
    world: &Client,
    dice: &mut Dice,
    tiers: &mut BTreeMap<&str, &str>,
) -> Option<String> {
    let name = dice.of(&BLOBS);
    let (path, other) = (format!("/box/{name}"), dice.of(&BLOBS));
    let is_there = tiers.contains_key(name);
    match dice.below(7) {
        0 | 1 => {
            world.put_blob(name).await;
            tiers.insert(name, "Hot");
            Some(format!("BlobCreated PutBlob {name}"))
        }
        2 => {
            let answer = world.send("DELETE", &path, &[], "").await;
            assert_eq!(answer.status, if is_there { 202 } else { 404 });
            let old = tiers.remove(name);
            old.map(|_| format!("BlobDeleted DeleteBlob {name}"))
        }
        3 => {
            let tier = dice.of(&["Hot", "Cool", "Cold"]);
            let path = format!("{path}?comp=tier");
            let answer = world
                .send("PUT", &path, &[("x-ms-access-tier", tier)], "")
                .await;
            assert_eq!(answer.status, if is_there { 200 } else { 404 });
            let old = tiers.get_mut(name)?;
            let is_changed = std::mem::replace(old, tier) != tier;
            is_changed.then(|| format!("BlobTierChanged SetBlobTier {name}"))
        }
        4 => {
            let source = world.url(&format!("/box/{other}"));
            let has_source = tiers.contains_key(other);
            let answer = world
                .send("PUT", &path, &[("x-ms-copy-source", &source)], "")
                .await;
            assert_eq!(answer.status, if has_source { 202 } else { 404 });
            has_source.then(|| {
                tiers.insert(name, "Hot");
                format!("BlobCreated CopyBlob {name}")
            })
        }
        5 => {
            let absent = [BLOCK, ("if-none-match", "*")];
            let answer = world.send("PUT", &path, &absent, "new").await;
            assert_eq!(answer.status, if is_there { 409 } else { 201 });
            (!is_there).then(|| {
                tiers.insert(name, "Hot");
                format!("BlobCreated PutBlob {name}")
            })
        }
        _ => {
            let path = format!("{path}?comp=metadata");
            let answer = world.send("PUT", &path, &[("x-ms-meta-a", "b")], "").await;
            assert_eq!(answer.status, if is_there { 200 } else { 404 });
            None
        }
    }
}

async fn disturb(world: &Client, dice: &mut Dice) {
    let refuse = |status| Fault::Refuse {
        status,
        retry_after_s: None,
    };
    match dice.below(6) {
        0 => {
            world.deliver().await;
        }
        1 => world.advance_s(dice.of(&[1, 10, 60, 600])),
        2 => world.emulator().faults().add(Rule {
            operation: "Messages_Enqueue".to_owned(),
            resource: String::new(),
            nth: 1 + dice.below(3) as u64,
            times: 1 + dice.below(3) as u64,
            fault: match dice.below(4) {
                0 => Fault::AnswerLost,
                1 => Fault::Reset,
                2 => refuse(500),
                _ => refuse(503),
            },
        }),
        _ => {}
    }
}

async fn open(dir: Option<&TempDir>, clock: &Clock) -> Client {
    let client = Client::of(|builder| match dir {
        Some(dir) => builder.fast(dir.path()).clock(clock.clone()),
        None => builder.clock(clock.clone()),
    });
    with_boxes(client).await
}

async fn run(seed: u64) -> History {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
    let restarts = seed.is_multiple_of(RESTARTED);
    let dir = restarts.then(|| tempfile::tempdir().unwrap());
    let clock = Clock::manual(START);
    let mut world = open(dir.as_ref(), &clock).await;
    let settings = json!({
        "max_delivery_attempts": 1 + dice.below(4),
        "event_ttl_minutes": dice.of(&[1, 10, 1440]),
        "dead_letter": { "account": "devstoreaccount1", "container": "dead" },
    });
    world.subscribe("all", settings).await;
    let (mut tiers, mut expected) = (BTreeMap::new(), Vec::new());
    for step in 0..STEPS {
        expected.extend(change(&world, &mut dice, &mut tiers).await);
        disturb(&world, &mut dice).await;
        if restarts && step % 7 == 6 {
            world.emulator().close().unwrap();
            world = open(dir.as_ref(), &clock).await;
        }
    }
    world.deliver_all().await;
    History {
        expected,
        delivered: world.events("all").await,
        dead: world.dead_letters().await,
    }
}

/// Returns the events without repetitions, each as (sequencer, text), in the order of arrival.
fn first_arrivals(events: &[Value]) -> Vec<(&str, &Value)> {
    let mut seen = BTreeSet::new();
    let is_first = |event: &&Value| seen.insert(event["id"].to_string());
    let all = events.iter().filter(is_first);
    all.map(|event| (event["data"]["sequencer"].as_str().unwrap(), event))
        .collect()
}

fn judge(seed: u64, history: &History) {
    let delivered = first_arrivals(&history.delivered);
    for name in BLOBS {
        let of_blob = delivered.iter().filter(|(_, event)| blob(event) == name);
        let sequencers: Vec<_> = of_blob.map(|(sequencer, _)| *sequencer).collect();
        assert!(sequencers.is_sorted_by(|a, b| a < b), "seed {seed}: {name}");
    }
    let buried = first_arrivals(&history.dead);
    let all: BTreeMap<_, _> = delivered.into_iter().chain(buried).collect();
    let found: Vec<_> = all.into_values().map(short).collect();
    assert_eq!(found, history.expected, "seed {seed}");
}

#[tokio::test]
async fn every_committed_change_is_delivered_in_order_and_nothing_else() {
    let (mut repeated, mut buried) = (0, 0);
    for seed in 0..SEEDS {
        let history = run(seed).await;
        assert_eq!(history, run(seed).await, "seed {seed} differs from itself");
        judge(seed, &history);
        repeated += usize::from(first_arrivals(&history.delivered).len() < history.delivered.len());
        buried += usize::from(!history.dead.is_empty());
    }
    // The seeds reach what they are for.
    assert!(repeated > 10 && buried > 10, "{repeated} {buried}");
}
