//! The workers among rivals, faults and crashes: a fixed set of seeds, each run twice.
//!
//! `SMALT_SEED=N` starts elsewhere, `SMALT_SEED=random` anywhere; `SMALT_CASES=N` runs more.

use smalt_harness::scenario::bent::Bend;
use smalt_harness::scenario::campaign::{self, Scenario, Summary};
use smalt_harness::scenario::listen::Listen;
use smalt_harness::scenario::sweep::Sweep;

/// Cases per worker of an ordinary test run.
const CASES: u64 = 200;
/// Cases within which a mistake must be caught.
const CASES_TO_CATCH: u64 = 60;

fn first_seed() -> u64 {
    match std::env::var("SMALT_SEED").as_deref() {
        Ok("random") => {
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
            println!("SMALT_SEED={}", now.as_secs());
            now.as_secs()
        }
        Ok(text) => text.parse().expect("SMALT_SEED is a number or `random`"),
        Err(_) => 0,
    }
}

fn cases() -> u64 {
    let given = std::env::var("SMALT_CASES").ok();
    given.map_or(CASES, |text| text.parse().expect("SMALT_CASES is a number"))
}

fn campaign<S: Scenario>(seen: &[&str]) -> Summary {
    let summary = campaign::run_cases::<S>(first_seed(), cases(), |_, _| {});
    let summary = summary.unwrap_or_else(|failure| panic!("{}", failure.story));
    println!("{}: {summary}", S::NAME);
    if cases() >= CASES {
        for mark in seen {
            assert!(summary.marks.contains_key(mark), "never seen: {mark}");
        }
    }
    summary
}

fn assert_caught<S: Scenario>(bends: &[Bend]) {
    for bend in bends {
        match campaign::cases_to_catch::<S>(*bend, 0, CASES_TO_CATCH).unwrap() {
            Some((cases, violation)) => println!("{bend:?}: case {cases}, {violation}"),
            None => panic!("{bend:?} is not caught in {CASES_TO_CATCH} cases"),
        }
    }
}

/// LS1 to LS7 and LL2 under any trouble; equal histories from equal seeds.
#[test]
fn the_listener_keeps_its_promises() {
    campaign::<Listen>(&[
        "worker died",
        "answer lost: delete",
        "answer lost: get",
        "answer lost: update",
        "receipt mismatch",
        "503",
        "connection reset",
        "handler panicked",
        "copy in the poison queue",
    ]);
}

#[test]
fn a_listener_with_a_mistake_is_caught() {
    assert_caught::<Listen>(&Bend::OF_THE_LISTENER);
}

/// SS1 to SS9 and SL1 under any trouble; equal histories from equal seeds.
#[test]
fn the_sweeper_keeps_its_promises() {
    campaign::<Sweep>(&[
        "worker died",
        "answer lost: delete",
        "answer lost: copy",
        "answer lost: state",
        "412 on delete",
        "lease taken",
        "503",
        "connection reset",
        "deleted",
        "moved",
        "destination taken",
        "cycle completed",
    ]);
}

#[test]
fn a_sweeper_with_a_mistake_is_caught() {
    assert_caught::<Sweep>(&Bend::OF_THE_SWEEPER);
    assert_caught::<Sweep>(&Bend::OF_THE_MOVER);
}
