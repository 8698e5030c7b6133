//! Clients at once: there is an order of their calls that the model agrees to.

use smalt_harness::bursts::options::campaign;

const OPERATIONS: usize = 4;

/// A burst in which nobody meets anybody proves nothing.
fn judge(seeds: std::ops::Range<u64>, durable: bool) {
    let bursts = seeds.end - seeds.start;
    let judged = campaign(seeds, None, OPERATIONS, durable, &|| ());
    let sum = judged.unwrap_or_else(|report| unreachable!("{report}"));
    let met = sum.overlaps as u64 / bursts;
    assert!(met >= 4, "only {met} overlaps in a burst");
    assert!(sum.lost > 0, "no answer was lost");
}

#[test]
fn calls_at_once_are_linearizable() {
    judge(0..400, false);
}

#[test]
fn calls_at_once_are_linearizable_when_answers_wait_for_the_disk() {
    judge(1_000..1_040, true);
}
