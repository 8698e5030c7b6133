//! Reduces a failing burst: leaves out operations as long as some schedule still fails.

use super::burst::Failure;
use super::plan::{Plan, SOLO};
use super::schedule::Order;

/// Number of schedules to try before an operation counts as needed.
const SCHEDULES: u64 = 40;

/// A failing burst, with its failure.
pub type Failed = (Plan, Box<Failure>);

/// Leaves out operations that the failure does not need. `run` runs a burst.
pub fn shrink(failed: Failed, run: &mut dyn FnMut(&Plan) -> Option<Box<Failure>>) -> Failed {
    let mut smallest = failed;
    loop {
        let size = smallest.0.left_out.len();
        for candidate in candidates(&smallest.0) {
            if let Some(smaller) = fails(&smallest.0, &candidate, run) {
                smallest = smaller;
            }
        }
        if smallest.0.left_out.len() == size {
            return smallest;
        }
    }
}

/// Returns what could be left out: whole clients first, then operations, from the last.
fn candidates(plan: &Plan) -> Vec<Vec<(usize, usize)>> {
    let of = |client: usize| {
        let operations = match client {
            SOLO => plan.prelude(),
            _ => plan.operations,
        };
        (0..operations).map(move |index| (client, index))
    };
    let clients = SOLO..=SOLO + plan.clients;
    let whole = clients.clone().skip(1).map(|client| of(client).collect());
    let single = clients.rev().flat_map(|client| of(client).rev());
    whole.chain(single.map(|one| vec![one])).collect()
}

fn fails(
    plan: &Plan,
    without: &[(usize, usize)],
    run: &mut dyn FnMut(&Plan) -> Option<Box<Failure>>,
) -> Option<Failed> {
    if without.iter().all(|one| plan.left_out.contains(one)) {
        return None;
    }
    let mut smaller = plan.clone();
    smaller.left_out.extend(without);
    let schedules = (plan.seed..plan.seed + SCHEDULES).map(Order::Seeded);
    // The order that failed before is the most likely to fail again.
    for order in [plan.order].into_iter().chain(schedules) {
        smaller.order = order;
        if let Some(failure) = run(&smaller) {
            return Some((smaller, failure));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bursts::burst::History;

    fn failure() -> Box<Failure> {
        Box::new(Failure {
            reason: "wrong".to_owned(),
            history: History::default(),
        })
    }

    #[test]
    fn only_needed_operations_remain() {
        let plan = Plan::of(5, None, Some(4), Some(6));
        // Two operations of two clients fail, and only in some schedules.
        let needed = [(2, 1), (4, 5)];
        let mut run = |plan: &Plan| {
            let is_there = needed
                .iter()
                .all(|(client, index)| plan.keeps(*client, *index));
            let Order::Seeded(order) = plan.order else {
                return None;
            };
            (is_there && order.is_multiple_of(7)).then(failure)
        };
        let (smallest, _) = shrink((plan, failure()), &mut run);
        let kept: Vec<_> = (0..=4)
            .flat_map(|client| (0..6).map(move |index| (client, index)))
            .filter(|(client, index)| *client != SOLO || *index < 4)
            .filter(|(client, index)| smallest.keeps(*client, *index))
            .collect();
        assert_eq!(kept, needed);
    }
}
