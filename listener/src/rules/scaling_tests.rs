//! Tests of the scaling rules.

use super::*;
use proptest::prelude::*;

fn limits() -> Limits {
    Limits {
        min: 1,
        max: 100,
        slots: 8,
        drain_target: Duration::from_secs(10),
        cooldown: Duration::from_secs(15),
        settle_wait: Duration::ZERO,
    }
}

fn load(arrivals_per_s: f64, visible_backlog: u64) -> Load {
    Load {
        arrivals_per_s,
        visible_backlog,
        handler_s: 0.2,
        in_hand_s: 0.2,
        in_flight: 0,
        tasks: 1,
        requests_per_s: 2000.0,
        throttled: false,
    }
}

#[test]
fn littles_law() {
    let table = [
        (0.0, 0, 1),
        (20.0, 0, 1),
        (100.0, 0, 3),
        (20.0, 5000, 13),
        (0.0, 40_000, 45),
        (0.0, u64::MAX, 45),
    ];
    for (arrivals, backlog, wanted) in table {
        let tasks = wish(Policy::Little, &limits(), &load(arrivals, backlog));
        assert_eq!(tasks, wanted, "{arrivals}/s and {backlog}");
    }
}

/// DL13: depth 0 asks for one task; the steps are the article's.
#[test]
fn dl13_seed_rule_reaches_one() {
    let wishes: Vec<u32> = [0, 1, 99, 100, 999, 1000, u64::MAX]
        .map(|depth| {
            let slow = Load {
                handler_s: 10.0,
                ..load(0.0, depth)
            };
            wish(Policy::Seed, &limits(), &slow)
        })
        .to_vec();
    assert_eq!(wishes, [1, 10, 10, 50, 50, 100, 100]);
}

/// DL14: a hundred tasks of short messages would need more requests than the queue allows.
#[test]
fn dl14_the_request_budget_bounds_the_tasks() {
    let quick = Load {
        handler_s: 0.1,
        requests_per_s: 500.0,
        ..load(0.0, 1_000_000)
    };
    let tasks = wish(Policy::Fixed, &limits(), &quick);
    // 8 slots / 0.1 s * (1 + 1/8) = 90 requests per second and task.
    assert_eq!(tasks, 6);
}

/// L31, DL14: a slot is taken until its message is deleted, and a handled message may wait for
/// that. So as many tasks run on a backlog as can settle their messages within an eighth of the
/// visibility timeout.
#[test]
fn a_backlog_uses_the_settle_wait() {
    let limits = Limits {
        slots: 32,
        drain_target: Duration::from_secs(1),
        settle_wait: Limits::settle_wait_of(Duration::from_secs(60)),
        ..limits()
    };
    let burst = |in_hand_s, backlog| Load {
        in_hand_s,
        requests_per_s: 500.0,
        ..load(0.0, backlog)
    };
    let table = [
        (0.2, 5000, 32),
        (0.7, 5000, 100),
        (3.0, 160, 15),
        (0.2, 160, 1),
    ];
    for (in_hand_s, backlog, wanted) in table {
        let tasks = wish(Policy::Little, &limits, &burst(in_hand_s, backlog));
        assert_eq!(tasks, wanted, "{in_hand_s} s, {backlog}");
    }
    // 485 messages a second for 7.7 s, 32 by each task.
    let wide = Limits {
        max: 1000,
        ..limits
    };
    assert_eq!(wish(Policy::Fixed, &wide, &burst(0.2, 1_000_000)), 117);
}

/// DL10: tasks are added while all slots are busy, even if no handler has finished yet.
#[test]
fn dl10_saturation_adds_a_task_while_busy() {
    let busy = Load {
        in_flight: 24,
        tasks: 3,
        handler_s: 0.05,
        in_hand_s: 0.05,
        ..load(0.0, 500)
    };
    assert_eq!(wish(Policy::Little, &limits(), &busy), 4);
    assert_eq!(wish(Policy::Aimd, &limits(), &busy), 4);
    let throttled = Load {
        tasks: 8,
        in_flight: 64,
        throttled: true,
        ..busy
    };
    assert_eq!(wish(Policy::Aimd, &limits(), &throttled), 4);
}

/// Adds a task while all slots are busy and messages wait, removes one when none wait, and halves
/// the number when the service throttles.
#[test]
fn additive_increase_multiplicative_decrease() {
    for (visible_backlog, in_flight, throttled, wanted) in [
        (1, 64, false, 9),
        (1, 65, false, 9),
        (1, 63, false, 8),
        (1, 16, false, 8),
        (0, 64, false, 7),
        (0, 0, false, 7),
        (1, 64, true, 4),
        (0, 0, true, 4),
    ] {
        let load = Load {
            tasks: 8,
            in_flight,
            throttled,
            ..load(0.0, visible_backlog)
        };
        let tasks = wish(Policy::Aimd, &limits(), &load);
        assert_eq!(tasks, wanted, "{visible_backlog} wait, {in_flight} run");
    }
}

/// A message may wait for its delete so that others start sooner. If none are waiting, tasks are
/// limited to what the request rate supplies without such waits.
#[test]
fn no_delete_waits_for_an_empty_queue() {
    let limits = Limits {
        settle_wait: Duration::from_secs(1),
        ..limits()
    };
    // 8 slots / 0.1 s or 1.1 s * (1 + 1/8) requests per second and task.
    for (visible_backlog, wanted) in [(0, 6), (1, 62)] {
        let quick = Load {
            handler_s: 0.1,
            requests_per_s: 500.0,
            ..load(0.0, visible_backlog)
        };
        let tasks = wish(Policy::Fixed, &limits, &quick);
        assert_eq!(tasks, wanted, "{visible_backlog}");
    }
}

/// DL20: a gap of seconds keeps the pool; a gap of a whole cooldown shrinks it.
#[test]
fn dl20_down_only_after_the_cooldown() {
    let s = Duration::from_secs;
    let mut scaler = Scaler::new(Policy::Little, limits());
    let target = |tasks, awake| Target { tasks, awake };
    assert_eq!(scaler.target(s(0), &load(0.0, 5000)), target(13, 13));
    for t in 1..=15 {
        let kept = scaler.target(s(t), &load(0.0, 0));
        assert_eq!(kept, target(13, 1), "second {t}: they stay, and rest");
    }
    assert_eq!(scaler.target(s(16), &load(0.0, 0)), target(1, 1));
    let up = scaler.target(s(17), &load(100.0, 0));
    assert_eq!(up, target(3, 3), "up at once");
    scaler.reset();
    let idle = scaler.target(s(17), &load(0.0, 0));
    assert_eq!(idle, target(1, 1), "nothing is kept of the past");
}

fn any_load() -> impl Strategy<Value = Load> {
    let numbers = (
        0.0..1e6_f64,
        0_u64..1_000_000,
        prop_oneof![Just(0.0), 0.0..1e4_f64],
        (0_u32..10_000, 0.0..1e4_f64),
    );
    let state = (0_u32..200, 1.0..5000.0_f64, any::<bool>());
    (numbers, state).prop_map(|(n, s)| Load {
        arrivals_per_s: n.0,
        visible_backlog: n.1,
        handler_s: n.2,
        in_hand_s: n.2 + n.3.1,
        in_flight: n.3.0,
        tasks: s.0,
        requests_per_s: s.1,
        throttled: s.2,
    })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![
        Policy::Little,
        Policy::Seed,
        Policy::Fixed,
        Policy::Aimd,
    ])
}

proptest! {
    /// The number lies in 1..=max and, if the request rate allows, is at least min.
    #[test]
    fn wishes_are_clamped(
        policy in any_policy(), load in any_load(), min in 0_u32..20, span in 0_u32..200,
    ) {
        let limits = Limits { min, max: (min + span).max(1), ..limits() };
        let tasks = wish(policy, &limits, &load);
        prop_assert!(tasks >= 1 && tasks <= limits.max);
        if load.handler_s <= 0.0 {
            prop_assert!(tasks >= limits.min);
        }
    }

    /// More waiting messages or arrivals never lead to fewer tasks.
    #[test]
    fn wishes_are_monotone(
        policy in any_policy(), load in any_load(), more in 0_u64..100_000, faster in 0.0..1e5_f64,
    ) {
        let heavier = Load {
            visible_backlog: load.visible_backlog + more,
            arrivals_per_s: load.arrivals_per_s + faster,
            ..load
        };
        prop_assert!(wish(policy, &limits(), &load) <= wish(policy, &limits(), &heavier));
    }

    /// LL3: under a fluctuating load the target changes direction at most once per cooldown.
    #[test]
    fn ll3_reversals_are_bounded(noise in prop::collection::vec(0_u64..5000, 120)) {
        let mut scaler = Scaler::new(Policy::Little, limits());
        let (mut before, mut direction, mut reversals) = (1, 0, 0);
        for (second, backlog) in noise.iter().enumerate() {
            let now = Duration::from_secs(second as u64);
            let target = scaler.target(now, &load(20.0, *backlog)).tasks;
            let step = (i64::from(target) - i64::from(before)).signum();
            if step != 0 {
                reversals += i32::from(step == -direction);
                direction = step;
            }
            before = target;
        }
        // Each fall needs a full cooldown before it, so two minutes contain at most eight.
        prop_assert!(reversals <= 2 * 120 / 15, "{reversals}");
    }

    /// The history stays short however often the target is computed.
    #[test]
    fn history_is_bounded(noise in prop::collection::vec(0_u64..100_000, 0..300)) {
        let mut scaler = Scaler::new(Policy::Little, limits());
        for (i, backlog) in noise.iter().enumerate() {
            scaler.target(Duration::from_millis(i as u64), &load(0.0, *backlog));
        }
        prop_assert!(scaler.highest.wishes.len() <= 100);
    }
}
