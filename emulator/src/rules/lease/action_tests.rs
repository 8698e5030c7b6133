//! The outcome tables of "Lease Blob" and "Lease Container", for every state, action and id.

use smalt_protocol::{ErrorCode, Timestamp};
use uuid::Uuid;

use super::*;
use ErrorCode::{
    LeaseAlreadyPresent as Present, LeaseIdMismatchWithLeaseOperation as Mismatch,
    LeaseIsBreakingAndCannotBeAcquired as BreakingNoAcquire,
    LeaseIsBreakingAndCannotBeChanged as BreakingNoChange,
    LeaseIsBrokenAndCannotBeRenewed as NoRenew, LeaseNotPresentWithLeaseOperation as Absent,
};

const A: Uuid = Uuid::from_u128(0xA);
const B: Uuid = Uuid::from_u128(0xB);
const C: Uuid = Uuid::from_u128(0xC);
const NOW: Timestamp = Timestamp::from_unix_s(1_000);

fn leased(id: Uuid, duration_s: u32, from: Timestamp) -> LeaseState {
    let until = from.plus_s(u64::from(duration_s));
    let duration_s = Some(duration_s);
    LeaseState::Leased {
        id,
        duration_s,
        until,
    }
}

fn infinite(id: Uuid) -> LeaseState {
    LeaseState::Leased {
        id,
        duration_s: None,
        until: Timestamp::MAX,
    }
}

fn breaking(id: Uuid, left_s: u64) -> LeaseState {
    LeaseState::Breaking {
        id,
        until: NOW.plus_s(left_s),
    }
}

/// The columns of the tables: available, leased, breaking, broken, expired. The lease of 60 seconds
/// has 20 left, the breaking one has 10.
fn states() -> [LeaseState; 5] {
    [
        LeaseState::Available,
        leased(A, 60, Timestamp::from_unix_s(960)),
        breaking(A, 10),
        LeaseState::Broken { id: A },
        LeaseState::Expired {
            id: A,
            duration_s: 60,
        },
    ]
}

type Cell = Result<(LeaseState, Option<u64>), ErrorCode>;

fn row(action: Action, expected: [Cell; 5]) {
    for of in [Leased::Blob, Leased::Container] {
        for (state, expected) in states().into_iter().zip(expected) {
            let done = act(of, state, action, NOW);
            if let Ok(done) = &done {
                let shows_id = !matches!(action, Action::Release { .. } | Action::Break { .. });
                assert_eq!(done.id, done.state.id().filter(|_| shows_id));
            }
            let cell = done
                .map(|done| (done.state, done.time_s))
                .map_err(|e| e.code());
            assert_eq!(cell, expected, "{of:?} {action:?} on {state:?}");
        }
    }
}

fn to(state: LeaseState) -> Cell {
    Ok((state, None))
}

fn broken_now() -> Cell {
    Ok((LeaseState::Broken { id: A }, Some(0)))
}

#[test]
fn acquire() {
    let duration_s = Some(30);
    let (a, b) = (to(leased(A, 30, NOW)), to(leased(B, 30, NOW)));
    row(
        Action::Acquire { id: A, duration_s },
        [a, a, Err(BreakingNoAcquire), a, a],
    );
    row(
        Action::Acquire { id: B, duration_s },
        [b, Err(Present), Err(Present), b, b],
    );
    let forever = to(infinite(A));
    row(
        Action::Acquire {
            id: A,
            duration_s: None,
        },
        [forever, forever, Err(BreakingNoAcquire), forever, forever],
    );
}

#[test]
fn renew() {
    let again = to(leased(A, 60, NOW));
    row(
        Action::Renew { id: A },
        [Err(Mismatch), again, Err(NoRenew), Err(NoRenew), again],
    );
    row(Action::Renew { id: B }, [Err(Mismatch); 5]);
    let done = act(Leased::Blob, infinite(A), Action::Renew { id: A }, NOW).unwrap();
    assert_eq!(done.state, infinite(A));
}

#[test]
fn change() {
    let started = Timestamp::from_unix_s(960);
    let (gone, kept) = (Err(Absent), to(leased(A, 60, started)));
    row(
        Action::Change { id: A, proposed: B },
        [
            gone,
            to(leased(B, 60, started)),
            Err(BreakingNoChange),
            gone,
            gone,
        ],
    );
    row(
        Action::Change { id: B, proposed: A },
        [gone, kept, Err(BreakingNoChange), gone, gone],
    );
    row(
        Action::Change { id: B, proposed: C },
        [gone, Err(Mismatch), Err(Mismatch), gone, gone],
    );
}

#[test]
fn release() {
    let free = to(LeaseState::Available);
    row(
        Action::Release { id: A },
        [Err(Mismatch), free, free, free, free],
    );
    row(Action::Release { id: B }, [Err(Mismatch); 5]);
}

#[test]
fn break_lease() {
    let over = broken_now();
    row(
        Action::Break { period_s: Some(0) },
        [Err(Absent), over, over, over, over],
    );
    let five = Ok((breaking(A, 5), Some(5)));
    row(
        Action::Break { period_s: Some(5) },
        [Err(Absent), five, five, over, over],
    );
    // A longer period than the remaining time has the same effect as none.
    let left = [
        Err(Absent),
        Ok((breaking(A, 20), Some(20))),
        Ok((breaking(A, 10), Some(10))),
        over,
        over,
    ];
    row(Action::Break { period_s: Some(60) }, left);
    row(Action::Break { period_s: None }, left);
}

#[test]
fn breaking_an_infinite_lease_takes_the_period_or_is_immediate() {
    for (period_s, state, time_s) in [
        (None, LeaseState::Broken { id: A }, 0),
        (Some(0), LeaseState::Broken { id: A }, 0),
        (Some(60), breaking(A, 60), 60),
    ] {
        let done = act(Leased::Blob, infinite(A), Action::Break { period_s }, NOW).unwrap();
        assert_eq!((done.state, done.time_s), (state, Some(time_s)));
    }
}

/// State, seconds until it is read, state by then, and the three headers.
#[test]
fn headers_show_the_state_of_the_lease() {
    let [available, fixed, breaking, broken, expired] = states();
    let endless = infinite(A);
    for (state, after_s, then, headers) in [
        (available, 99, available, ("available", "unlocked", None)),
        (fixed, 19, fixed, ("leased", "locked", Some("fixed"))),
        (fixed, 20, expired, ("expired", "unlocked", None)),
        (fixed, 21, expired, ("expired", "unlocked", None)),
        (endless, 99, endless, ("leased", "locked", Some("infinite"))),
        (breaking, 9, breaking, ("breaking", "locked", None)),
        (breaking, 10, broken, ("broken", "unlocked", None)),
        (breaking, 11, broken, ("broken", "unlocked", None)),
    ] {
        let found = state.at(NOW.plus_s(after_s));
        assert_eq!(found, then, "{state:?} after {after_s} s");
        let shown = (found.state_str(), found.status_str(), found.duration_str());
        assert_eq!(shown, headers, "{state:?} after {after_s} s");
    }
}

#[test]
fn state_is_updated_before_the_action() {
    let late = NOW.plus_s(20);
    let renewed = act(Leased::Blob, states()[1], Action::Renew { id: A }, late).unwrap();
    assert_eq!(renewed.state, leased(A, 60, late));
    let taken = Action::Acquire {
        id: B,
        duration_s: None,
    };
    assert!(act(Leased::Blob, states()[1], taken, late).is_ok());
    assert!(act(Leased::Blob, states()[2], taken, NOW.plus_s(10)).is_ok());
    let before = Timestamp::from_ticks(NOW.plus_s(10).ticks() - 1);
    let error = act(Leased::Blob, states()[2], taken, before).unwrap_err();
    assert_eq!(error.code(), Present);
    // Less than half a second rounds to 0, but the lease is still breaking.
    let broken = act(
        Leased::Blob,
        states()[2],
        Action::Break { period_s: None },
        before,
    )
    .unwrap();
    assert_eq!((broken.time_s, broken.state), (Some(0), states()[2]));
}

/// "Approximate time remaining in the lease period, in seconds" is rounded to the nearest second.
#[test]
fn remaining_time_is_rounded_to_seconds() {
    for (left_ms, expected_s) in [
        (10_000, 10),
        (9_999, 10),
        (9_500, 10),
        (9_499, 9),
        (1_499, 1),
        (500, 1),
        (499, 0),
        (0, 0),
    ] {
        let until = NOW.plus(std::time::Duration::from_millis(left_ms));
        let state = LeaseState::Breaking { id: A, until };
        let action = Action::Break { period_s: None };
        let done = act(Leased::Blob, state, action, NOW).unwrap();
        assert_eq!(done.time_s, Some(expected_s), "{left_ms} ms");
    }
}

#[test]
fn errors_name_the_leased_resource() {
    let absent = |of| {
        let action = Action::Break { period_s: None };
        act(of, LeaseState::Available, action, NOW).unwrap_err()
    };
    assert_eq!(
        absent(Leased::Blob).message(),
        "There is currently no lease on the blob."
    );
    assert_eq!(
        absent(Leased::Container).message(),
        "There is currently no lease on the container."
    );
}
