//! The operator's commands: explain, tag, undo, and the care of the state document.

use smalt_sweeper::{Collision, DeadConfig, Outcome, SweeperConfig, Target};

use crate::fake::World;
use crate::support::*;

fn target(text: &str) -> Target {
    text.parse().expect("it names a blob")
}

/// What `explain` foretells is what the next sweep does, whatever stands in the way.
#[tokio::test(start_paused = true)]
async fn what_is_explained_is_what_happens() {
    const DBC: (&str, &str) = ("DeadBlobContainer", "dbc");
    type Prepare = fn(&World);
    let table: [(&[(&str, &str)], Prepare, Outcome); 9] = [
        (&[DUE], |_| {}, Outcome::Deleted),
        (&[DUE, DBC], |_| {}, Outcome::Moved),
        (&[], |_| {}, Outcome::NoTtl),
        (&[("TimeToLive", FUTURE)], |_| {}, Outcome::NotDue),
        (&[("TimeToLive", "soon")], |_| {}, Outcome::InvalidTtl),
        (
            &[DUE],
            |w| w.change("acct/events/a", |b| b.snapshots = true),
            Outcome::SnapshotsPresent,
        ),
        (
            &[DUE, DBC],
            |w| w.put("archive/dbc/a", &[]),
            Outcome::Collision,
        ),
        (
            &[DUE, DBC],
            |w| w.change("acct/events/a", |b| b.tier = Some("Archive".into())),
            Outcome::Archived,
        ),
        (
            &[DUE],
            |w| {
                let until = w.now().plus_s(3_600);
                w.change("acct/events/a", |b| b.lease = Some(("x".into(), until)));
            },
            Outcome::Leased,
        ),
    ];
    for (metadata, prepare, expected) in table {
        let world = World::new();
        world.put("acct/events/a", metadata);
        prepare(&world);
        let sweeper = worker(&world, config("one"), Vec::new(), 1);
        let told = sweeper.explain(&target("events/a")).await.unwrap();
        assert_eq!(told.outcome, expected, "{metadata:?} {told:?}");
        assert!(told.swept);
        let finished = once(&world, Vec::new()).await;
        assert_eq!(finished.report.count(expected), 1, "{metadata:?}");
    }
}

/// A blob by its URL; one that nobody sweeps; one that is not there; an account unknown.
#[tokio::test(start_paused = true)]
async fn blobs_are_found_and_what_is_not_is_said() {
    let world = World::new();
    world.put("acct/other/a", &[DUE]);
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let told = sweeper.explain(&target("other/a")).await.unwrap();
    assert!(!told.swept && told.outcome == Outcome::Deleted && told.next_mark.is_none());
    let url = Target::Url("fake://acct/other/a".to_owned());
    assert_eq!(sweeper.explain(&url).await.unwrap(), told);
    let gone = sweeper.explain(&target("events/none")).await.unwrap_err();
    assert_eq!(gone.exit_code(), 1);
    let foreign = Target::Url("https://elsewhere/c/b".to_owned());
    assert_eq!(sweeper.explain(&foreign).await.unwrap_err().exit_code(), 2);
}

/// The mark at which a blob will go is that of the fleet's schedule.
#[tokio::test(start_paused = true)]
async fn the_mark_is_told() {
    let world = World::new();
    world.put("acct/events/a", &[("TimeToLive", "2026-11-21T10:05:00Z")]);
    world.put("acct/events/b", &[("TimeToLive", "2026-11-21T10:15:00Z")]);
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    for (name, mark) in [("events/a", "10:10:00"), ("events/b", "10:20:00")] {
        let told = sweeper.explain(&target(name)).await.unwrap();
        assert_eq!(
            told.next_mark,
            Some(format!("2026-11-21T{mark}Z")),
            "{name}"
        );
    }
}

/// Policies change what is told of a blob in the way.
#[tokio::test(start_paused = true)]
async fn a_collision_is_told_by_policy() {
    for (policy, expected) in [
        (Collision::Fail, Outcome::Collision),
        (Collision::Suffix, Outcome::Moved),
        (Collision::Overwrite, Outcome::Moved),
    ] {
        let world = World::new();
        world.put("acct/events/a", &[DUE, ("DeadBlobContainer", "dbc")]);
        world.put("archive/dbc/a", &[]);
        let config = SweeperConfig {
            dead: DeadConfig {
                account: Some("archive".into()),
                on_collision: policy,
                ..DeadConfig::default()
            },
            ..config("one")
        };
        let sweeper = worker(&world, config, Vec::new(), 1);
        let told = sweeper.explain(&target("events/a")).await.unwrap();
        assert_eq!(told.outcome, expected, "{policy:?}");
    }
}
