//! Tests of the fleet's sentinel.

use super::*;
use proptest::prelude::*;

const LEASE: Duration = Duration::from_secs(30);

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_lease_is_acquired_renewed_and_released() {
    let mut one = Sentinel::new(LEASE);
    assert_eq!(one.due(s(0), false), None, "not wanted, not asked for");
    assert_eq!(one.due(s(0), true), Some(Ask::Acquire));
    one.answered(Ask::Acquire, s(0), Said::Done, 1000);
    assert_eq!((one.role(s(1)), one.due(s(9), true)), (Role::Holder, None));
    assert_eq!(one.due(s(10), true), Some(Ask::Renew));
    one.answered(Ask::Renew, s(10), Said::Failed, 1000);
    assert_eq!(one.due(s(14), true), None, "not again at once");
    assert_eq!(
        one.due(s(15), true),
        Some(Ask::Renew),
        "tried again in time"
    );
    one.answered(Ask::Renew, s(15), Said::Done, 1000);
    assert_eq!(one.role(s(44)), Role::Holder);
    assert_eq!(one.role(s(45)), Role::Unsure, "lapsed");
    assert_eq!(one.due(s(44), false), Some(Ask::Release));
    one.answered(Ask::Release, s(44), Said::Done, 1000);
    assert_eq!(
        (one.role(s(44)), one.due(s(45), false)),
        (Role::Unsure, None)
    );
    assert_eq!(one.due(s(45), true), Some(Ask::Acquire), "idle again");
}

/// An acquired lease that has lapsed here, or whose answer was lost, may still hold at the service.
#[test]
fn a_lease_that_the_service_may_have_granted_must_be_released() {
    let mut one = Sentinel::new(LEASE);
    assert!(!one.may_hold(), "never asked for");
    for (ask, said, may_hold) in [
        (Ask::Acquire, Said::Failed, true),
        (Ask::Release, Said::Failed, true),
        (Ask::Acquire, Said::Taken, false),
        (Ask::Release, Said::Failed, false),
        (Ask::Acquire, Said::Done, true),
        (Ask::Renew, Said::Failed, true),
        (Ask::Release, Said::Done, false),
        (Ask::Renew, Said::Done, true),
        (Ask::Release, Said::Taken, false),
    ] {
        one.answered(ask, s(0), said, 1000);
        assert_eq!(one.may_hold(), may_hold, "{ask:?} {said:?}");
    }
    one.answered(Ask::Acquire, s(0), Said::Done, 1000);
    assert_eq!((one.role(s(60)), one.may_hold()), (Role::Unsure, true));
}

#[test]
fn a_follower_asks_once_in_a_lease() {
    let mut one = Sentinel::new(LEASE);
    one.answered(Ask::Acquire, s(0), Said::Taken, 1200);
    assert_eq!(
        (one.role(s(35)), one.due(s(35), true)),
        (Role::Follower, None)
    );
    assert_eq!(one.due(s(36), true), Some(Ask::Acquire));
    one.answered(Ask::Acquire, s(36), Said::Failed, 1200);
    assert_eq!(
        one.role(s(37)),
        Role::Unsure,
        "an unsure listener looks by itself"
    );
    assert_eq!(one.due(s(40), true), None, "not again at once");
    assert_eq!(one.due(s(41), true), Some(Ask::Acquire));
    one.answered(Ask::Renew, s(41), Said::Taken, 800);
    assert_eq!(one.role(s(42)), Role::Follower, "overtaken");
}

/// The holder's last lease in full, plus a follower's longest wait for its next attempt.
#[test]
fn a_fleet_is_without_a_poller_for_a_gap_at_most() {
    for (lease_s, gap_s) in [(15, 33), (30, 66), (60, 132)] {
        assert_eq!(Sentinel::gap(s(lease_s)), s(gap_s), "{lease_s}");
    }
}

/// A lease service that grants the lease to one holder at a time.
#[derive(Default)]
struct Service(Option<(usize, Duration)>);

impl Service {
    fn ask(&mut self, who: usize, ask: Ask, now: Duration) -> Said {
        let held = self.0.filter(|(_, until)| *until > now);
        match (ask, held) {
            (_, Some((holder, _))) if holder != who => Said::Taken,
            (Ask::Release, _) => {
                self.0 = None;
                Said::Done
            }
            _ => {
                self.0 = Some((who, now + LEASE));
                Said::Done
            }
        }
    }
}

proptest! {
    /// In a fleet whose members die, stall and wake up, there is never more than one holder. After
    /// the last disturbance there is a holder within a gap, and it stays.
    #[test]
    fn one_and_only_one_polls(
        fleet in 1_usize..6,
        troubles in prop::collection::vec((0_usize..6, 0_u64..300, 1_u64..90), 0..8),
        jitters in prop::collection::vec(800_u32..=1200, 600),
    ) {
        let (mut service, mut draw) = (Service::default(), 0);
        let mut members = vec![Sentinel::new(LEASE); fleet];
        // The last listener is spared, or no holder would remain.
        let silent = |who: usize, now: u64| {
            let in_trouble = |t: &(usize, u64, u64)| t.0 == who && (t.1..t.1 + t.2).contains(&now);
            troubles.iter().any(in_trouble) && who + 1 < fleet
        };
        let over = troubles.iter().map(|t| t.1 + t.2).max().unwrap_or(0);
        for now in 0..over + 200 {
            for (who, member) in members.iter_mut().enumerate() {
                let Some(ask) = member.due(s(now), true) else {
                    continue;
                };
                let said = match silent(who, now) {
                    true => Said::Failed,
                    false => service.ask(who, ask, s(now)),
                };
                member.answered(ask, s(now), said, jitters[draw % jitters.len()]);
                draw += 1;
            }
            let holders = members.iter().filter(|m| m.role(s(now)) == Role::Holder).count();
            prop_assert!(holders <= 1, "{holders} at {now}");
            if s(now) > s(over) + Sentinel::gap(LEASE) {
                prop_assert_eq!(holders, 1, "nobody at {}", now);
            }
        }
    }
}
