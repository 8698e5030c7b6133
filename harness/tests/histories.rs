//! Random histories of one client, every answer judged by the model.

use smalt_harness::histories::coverage::Coverage;
use smalt_harness::histories::options::campaign;

const OPERATIONS: usize = 50;

fn judge(seed: u64, histories: u32, restarts: bool) -> Coverage {
    let mut coverage = Coverage::default();
    let judged = campaign(seed, histories, OPERATIONS, restarts, &mut coverage, &|| ());
    assert_eq!(judged.err().unwrap_or_default(), "");
    coverage
}

/// The generator has to reach far: an empty campaign proves nothing.
#[test]
fn answers_are_the_models() {
    let coverage = judge(1, 2_000, false);
    assert!(coverage.cells() > 450, "only {} cells", coverage.cells());
    assert!(coverage.done_percent() > 45, "{coverage}");
}

#[test]
fn answers_are_the_models_across_restarts() {
    let coverage = judge(2, 40, true);
    assert!(coverage.steps() > 500, "only {} steps", coverage.steps());
}
