//! Random histories of one client, every answer judged by the model.
#![expect(clippy::panic, reason = "a panic is how a test fails")]

use smalt_harness::histories::campaign::{About, Campaign, Outcome};

const OPERATIONS: usize = 50;

fn judge(seed: u64, histories: u32, restarts: bool) -> Outcome {
    let campaign = Campaign {
        about: About::Account,
        seed,
        histories,
        operations: OPERATIONS,
        restarts,
        invariants_every: 10,
        dry: false,
    };
    let outcome = campaign.run(&|| ());
    if let Some(failed) = &outcome.failed {
        panic!("{failed}");
    }
    outcome
}

/// The generator has to reach far, and to keep to its shares: an empty campaign proves nothing.
#[test]
fn answers_are_the_models() {
    let coverage = judge(1, 2_000, false).coverage;
    assert!(
        coverage.reached() > 700,
        "only {} cells",
        coverage.reached()
    );
    for mix in [coverage.intended(), coverage.actual()] {
        assert!((65.0..75.0).contains(&mix.valid), "{mix}");
        assert!((20.0..30.0).contains(&mix.near), "{mix}");
        assert!((3.0..8.0).contains(&mix.malformed), "{mix}");
    }
}

#[test]
fn answers_are_the_models_across_restarts() {
    let coverage = judge(2, 40, true).coverage;
    assert!(coverage.steps() > 500, "only {} steps", coverage.steps());
}
