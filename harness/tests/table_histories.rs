//! Random histories of tables, every answer judged by the model.
#![expect(clippy::panic, reason = "a panic is how a test fails")]

use smalt_harness::histories::campaign::{About, Campaign, Outcome};

const OPERATIONS: usize = 40;

fn judge(histories: u32, restarts: bool) -> Outcome {
    let campaign = Campaign {
        about: About::Tables,
        seed: 1,
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

/// Every outcome that the model declares is reached: a generator that reaches less proves too
/// little.
#[test]
fn answers_are_the_models() {
    let coverage = judge(300, false).coverage;
    let mut unreached = coverage.unreached();
    unreached.retain(smalt_model::outcomes::Cell::is_of_tables);
    assert!(unreached.is_empty(), "{unreached:?}");
    let done = coverage.actual().valid;
    assert!(done > 55.0, "{done} % were done");
}

#[test]
fn answers_are_the_models_across_restarts() {
    let coverage = judge(15, true).coverage;
    assert!(coverage.steps() > 150, "only {} steps", coverage.steps());
}
