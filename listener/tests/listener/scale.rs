//! Row 47: the example `fleet` at a small size, so that its figures stay true.

use clap::ValueEnum;

use crate::simulation::{Mode, Plan, measure};
use crate::support::s;

const PLAN: Plan = Plan {
    listeners: 20,
    queues: 1,
    idle: s(1_200),
    steady: (2, s(60)),
    burst: 300,
};

/// Requests of an idle hour are those of the formula, except a tenth: a request takes time, and
/// leases and subscriptions have a few requests of their own. Only a sentinel polls for others,
/// every message is handled once, and nobody is refused.
#[tokio::test(start_paused = true)]
async fn row_47_a_fleet_costs_what_the_formulas_say() {
    for mode in Mode::value_variants() {
        let fleet = measure(*mode, &PLAN).await.unwrap();
        let (found, wanted) = (fleet.idle.requests_per_hour(), mode.idle_requests(&PLAN));
        let ratio = found / wanted;
        assert!(
            (0.9..1.1).contains(&ratio),
            "{mode:?}: {found} for {wanted}"
        );
        let (pollers, takes_leases) = match mode {
            Mode::Poll | Mode::PollFast => (20..=20, false),
            Mode::Sentinel => (1..=2, true),
            // Only watchdogs look, those of many in the same minute.
            Mode::Topic | Mode::Webhook => (0..=20, false),
        };
        assert!(
            pollers.contains(&fleet.idle.pollers),
            "{mode:?}: {}",
            fleet.idle.pollers
        );
        assert_eq!(fleet.idle.leases.1 > 0, takes_leases, "{mode:?}");
        let longest = mode.config("queue").longest_sleep().max(s(1));
        for load in [&fleet.steady, &fleet.burst] {
            assert_eq!(load.waits.len() as u64, load.messages, "{mode:?}");
            assert_eq!((load.repeated, load.busy), (0, 0), "{mode:?}");
            assert!(
                load.wait(1.0) <= longest * 2,
                "{mode:?}: {:?}",
                load.wait(1.0)
            );
        }
    }
}

/// One queue refuses what it cannot carry, and the messages of a burst wait for it; with more
/// queues fewer requests are refused, and the burst ends sooner.
#[tokio::test(start_paused = true)]
async fn row_47_more_queues_carry_a_burst_sooner() {
    let mut bursts = Vec::new();
    for queues in [1, 4] {
        let plan = Plan {
            queues,
            idle: s(60),
            steady: (1, s(1)),
            burst: 8_000,
            listeners: 40,
        };
        let burst = measure(Mode::PollFast, &plan).await.unwrap().burst;
        assert_eq!((burst.waits.len(), burst.repeated), (8_000, 0));
        // A put, a delete and a share of a get for each message.
        assert!(burst.requests - burst.busy >= 2 * burst.messages);
        bursts.push(burst);
    }
    let [one, four] = &bursts[..] else {
        panic!("two bursts")
    };
    // Puts and deletes alone are 16,000 requests.
    assert!(one.took >= s(7), "{:?}", one.took);
    assert!(four.took < one.took, "{:?}", four.took);
    assert!(0 < four.busy && four.busy < one.busy, "{}", four.busy);
}
