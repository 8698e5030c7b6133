//! The workers with rivals, faults and crashes: a fixed set of seeds, each run twice.
//!
//! `SMALT_SEED=N` starts at another seed, `SMALT_SEED=random` at a random one; `SMALT_CASES=N` runs
//! that many cases.
#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use smalt_harness::check::Seeds;
use smalt_harness::scenario::campaign::{self, Scenario, Summary};
use smalt_harness::scenario::faults::{Aim, Fault, Mishap, Operation};
use smalt_harness::scenario::history::Happening;
use smalt_harness::scenario::listen::{Listen, ListenPlan};
use smalt_harness::scenario::sweep::{Sweep, SweepPlan};
use smalt_harness::scenario::world::Engine;

/// Cases per worker of an ordinary test run.
const CASES: u64 = 200;
/// Cases per worker on sled.
const CASES_ON_SLED: u64 = 20;

fn first_seed() -> u64 {
    match std::env::var("SMALT_SEED").as_deref() {
        Ok("random") => {
            // A random key of the standard library's hashing is random enough for a first seed.
            let seed = u64::from(RandomState::new().build_hasher().finish() as u32);
            println!("SMALT_SEED={seed}");
            seed
        }
        Ok(text) => text.parse().expect("SMALT_SEED is a number or `random`"),
        Err(_) => 0,
    }
}

fn cases() -> u64 {
    let given = std::env::var("SMALT_CASES").ok();
    given.map_or(CASES, |text| text.parse().expect("SMALT_CASES is a number"))
}

/// Runs all cases on two threads: all must pass, and all required events must occur.
fn campaign<S: Scenario>(engine: Engine, cases: u64) {
    let seeds = Seeds {
        first: first_seed(),
        count: cases,
        jobs: 2,
    };
    let summary = campaign::run_cases::<S>(&seeds, engine, |_| {});
    let summary = summary.unwrap_or_else(|(_, failure)| panic!("{}", failure.story));
    println!("{}", summary.table::<S>());
    assert_eq!(summary.missing::<S>(), Vec::<String>::new());
}

/// LS1 to LS7 and LL2 under all faults; equal seeds give equal histories.
#[test]
fn the_listener_keeps_its_promises() {
    campaign::<Listen>(Engine::Memory, cases());
}

/// The same on the engine that stores its state on disk; `harness check listen --engine sled` runs
/// more cases.
#[test]
fn the_listener_keeps_its_promises_on_sled() {
    campaign::<Listen>(Engine::Sled, CASES_ON_SLED);
}

/// SS1 to SS9 and SL1 under all faults; equal seeds give equal histories.
#[test]
fn the_sweeper_keeps_its_promises() {
    campaign::<Sweep>(Engine::Memory, cases());
}

/// The same on the engine that stores its state on disk; `harness check sweep --engine sled` runs
/// more cases.
#[test]
fn the_sweeper_keeps_its_promises_on_sled() {
    campaign::<Sweep>(Engine::Sled, CASES_ON_SLED);
}

/// Requests of the workers within which the first sweep of [`SweepPlan::of_fault`] ends.
const REQUESTS: u16 = 64;

/// Wherever a worker stops, dies or loses an answer within its pages, nothing is lost, and all that
/// is due goes.
#[test]
fn fault_at_every_request_of_a_sweep_loses_nothing() {
    let wanted = [
        "died between copy and delete",
        "page reclaimed",
        "answer lost: delete",
        "answer lost: copy",
        "answer lost: state",
    ];
    at_every_request::<Sweep>(SweepPlan::of_fault, REQUESTS, &wanted);
}

/// Wherever a listener stops, dies or loses an answer, it or the one after it brings every message
/// to its end.
#[test]
fn fault_at_every_request_of_a_listener_loses_nothing() {
    // A fault that never happens: the run counts the requests.
    let plan = ListenPlan::of_fault(fault_at(u16::MAX, Mishap::Stop));
    let whole = Listen::run(&plan, Engine::Memory);
    assert_eq!(whole.violations, []);
    let trouble = (whole.history.iter()).take_while(|event| event.what != Happening::Calm);
    let sent = trouble.filter(|event| {
        event.actor.starts_with("listener") && matches!(event.what, Happening::Exchange(_))
    });
    let requests = u16::try_from(sent.count()).expect("few requests");
    let wanted = [
        "answer lost: delete",
        "answer lost: get",
        "answer lost: put",
        "answer lost: update",
        "handled again after it was done",
        "payload kept for the poison queue",
        "payload swept",
        "poisoned after a crash",
        "told to stop with work in flight",
    ];
    at_every_request::<Listen>(ListenPlan::of_fault, requests, &wanted);
}

/// Runs a plan with a stop, a death before and after, and a lost answer at each of the first
/// requests: every run must pass, and all of them together must show the wanted marks.
fn at_every_request<S: Scenario>(plan: fn(Fault) -> S::Plan, requests: u16, wanted: &[&str]) {
    let mishaps = [
        Mishap::Stop,
        Mishap::CrashBefore,
        Mishap::CrashAfter,
        Mishap::AnswerLost,
    ];
    let mut all = Summary::default();
    for mishap in mishaps {
        for nth in 1..=requests {
            let run = S::run(&plan(fault_at(nth, mishap)), Engine::Memory);
            assert_eq!(run.violations, [], "{mishap:?} at request {nth}");
            assert!(run.faults.never_fired().is_empty(), "{mishap:?} {nth}");
            all.count(&run);
        }
    }
    println!("{}: {} runs, {} events", S::NAME, all.cases, all.events);
    assert!(all.cases > 0, "no requests, so no runs");
    for wanted in wanted {
        assert!(all.marks.contains_key(wanted), "never seen: {wanted}");
    }
}

fn fault_at(nth: u16, mishap: Mishap) -> Fault {
    let aim = Aim {
        operation: Operation::Any,
        resource: "",
        nth,
    };
    Fault { aim, mishap }
}

#[derive(serde::Deserialize)]
struct Kept {
    seed: Vec<KeptSeed>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptSeed {
    scenario: String,
    seed: u64,
    found: String,
    /// The commit on which the seed failed; recorded by `ci/soak.sh`.
    commit: Option<String>,
}

/// Seeds that once failed run in every test run.
#[test]
fn recorded_seeds_pass() {
    let kept: Kept = toml::from_str(include_str!("../../fixtures/seeds.toml")).unwrap();
    for kept in kept.seed {
        let run = match kept.scenario.as_str() {
            Listen::NAME => campaign::run_seed::<Listen>(kept.seed, Engine::Memory, true),
            Sweep::NAME => campaign::run_seed::<Sweep>(kept.seed, Engine::Memory, true),
            other => panic!("unknown scenario `{other}`"),
        };
        let on = kept
            .commit
            .map_or_else(String::new, |commit| format!(" (on {commit})"));
        run.unwrap_or_else(|failure| panic!("{}{on}: {}", kept.found, failure.story));
    }
}
