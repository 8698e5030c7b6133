//! Tests of the operator's commands: explain, tag, undo, and maintenance of the state document.

use std::sync::Arc;

use smalt_sweeper::mark::{Edit, Marked, Marking};
use smalt_sweeper::upkeep::{Migrated, Unlocked};
use smalt_sweeper::{Collision, DeadConfig, Outcome, SweeperConfig, Target};

use crate::fake::{Act, World, fault};
use crate::support::*;

fn target(text: &str) -> Target {
    text.parse().expect("it names a blob")
}

/// The next sweep does what `explain` predicts, whatever the obstacle.
#[tokio::test(start_paused = true)]
async fn explain_predicts_the_next_sweep() {
    const DBC: (&str, &str) = ("DeadBlobContainer", "dbc");
    type Row = (&'static [(&'static str, &'static str)], fn(&World), Outcome);
    let table: [Row; 9] = [
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
        let finished = sweep(&world).await;
        assert_eq!(finished.report.count(expected), 1, "{metadata:?}");
    }
}

/// Cases: a blob by its URL, one that no sweep covers, a missing one, an unknown account.
#[tokio::test(start_paused = true)]
async fn blobs_are_found_or_reported_missing() {
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

/// The predicted mark follows the fleet's schedule.
#[tokio::test(start_paused = true)]
async fn explain_reports_the_next_mark() {
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

#[tokio::test(start_paused = true)]
async fn reported_collision_depends_on_policy() {
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

fn set(ttl: &str) -> Marking {
    Marking {
        ttl: Edit::Set(ttl.to_owned()),
        dead: Edit::Keep,
    }
}

/// One blob and a whole prefix are marked, other metadata stay, and the next sweep removes them.
#[tokio::test(start_paused = true)]
async fn marked_blobs_are_removed() {
    let world = World::new();
    world.put_many("acct/events/a/", 7, &[("Owner", "me")]);
    world.put("acct/events/b", &[("Owner", "me")]);
    world.lock().operator = true;
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let dry = sweeper
        .mark_all("events", "a/", &set(PAST), true, |_| {})
        .await
        .unwrap();
    assert_eq!(dry.count(Marked::Changed), 7);
    assert_eq!(world.calls_of("set_blob_metadata"), 0);
    let marks = sweeper
        .mark_all("events", "a/", &set(PAST), false, |_| {})
        .await
        .unwrap();
    assert_eq!(marks.count(Marked::Changed), 7);
    let again = sweeper
        .mark_all("events", "a/", &set(PAST), false, |_| {})
        .await
        .unwrap();
    assert_eq!(again.count(Marked::Unchanged), 7);
    let one = sweeper
        .mark(&target("events/b"), &set("P7D"), false)
        .await
        .unwrap();
    assert_eq!(one.due.as_deref(), Some("2026-11-28T10:00:00Z"));
    let metadata = world.get("acct/events/b").unwrap().metadata;
    assert_eq!(
        (metadata["Owner"].as_str(), metadata["TimeToLive"].as_str()),
        ("me", "P7D")
    );
    world.assert_safe();
    world.lock().operator = false;
    sweep(&world).await;
    assert_eq!(world.names("acct", "events"), ["b"]);
}

/// A concurrent write by the owner is kept: the marking is repeated from the newest version.
#[tokio::test(start_paused = true)]
async fn marking_keeps_concurrent_changes() {
    let world = World::new();
    world.put("acct/events/a", &[("Owner", "old")]);
    world.lock().operator = true;
    let meanwhile = Act::Meanwhile(Arc::new(|world: &World| {
        world.set_metadata("acct/events/a", &[("Owner", "new")]);
    }));
    let faults = vec![fault("set_blob_metadata", 1, meanwhile)];
    let sweeper = worker(&world, config("one"), faults, 1);
    let marks = sweeper
        .mark(&target("events/a"), &set("P7D"), false)
        .await
        .unwrap();
    assert_eq!(marks.count(Marked::Changed), 1);
    let metadata = world.get("acct/events/a").unwrap().metadata;
    assert_eq!(
        (metadata["Owner"].as_str(), metadata["TimeToLive"].as_str()),
        ("new", "P7D")
    );
}

/// Invalid values are rejected before any write, with exit code 2; a missing blob gives 1, and a
/// leased one is reported.
#[tokio::test(start_paused = true)]
async fn invalid_markings_are_rejected() {
    let world = World::new();
    world.put("acct/events/a", &[]);
    world.lock().operator = true;
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let code = async |name: &str, marking: &Marking| {
        let marked = sweeper.mark(&target(name), marking, false).await;
        marked.err().map_or(0, |error| error.exit_code())
    };
    assert_eq!(code("events/a", &set("tomorrow")).await, 2);
    assert_eq!(code("events/a", &Marking::default()).await, 2);
    assert_eq!(code("events/none", &set("P7D")).await, 1);
    assert_eq!(world.calls_of("set_blob_metadata"), 0);
    let until = world.now().plus_s(3_600);
    world.change("acct/events/a", |blob| {
        blob.lease = Some(("x".into(), until));
    });
    let marks = sweeper
        .mark(&target("events/a"), &set("P7D"), false)
        .await
        .unwrap();
    assert_eq!(marks.count(Marked::Leased), 1);
}

const SEED: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<Containers>
  <!-- edited by hand -->
  <Container name="sales" status="Init" prefix=""
    uri="https://acct.blob.core.windows.net/events?sr=c&amp;sig=SECRET" token="" />
  <Container name="logs" status="Init" prefix="old/"
    uri="https://acct.blob.core.windows.net/logs?sr=c&amp;sig=SECRET" token="" owner="ops" />
</Containers>"#;

/// A document of version 1 becomes version 2 without secrets; everything else stays, and it is
/// swept as before.
#[tokio::test(start_paused = true)]
async fn a_document_of_version_1_is_migrated() {
    let world = World::new();
    world.put_state(SEED);
    world.put("acct/events/a", &[DUE]);
    world.put("acct/logs/old/a", &[DUE]);
    world.put("acct/logs/new/a", &[DUE]);
    let sweeper = worker(&world, by_document("one"), Vec::new(), 1);
    assert_eq!(sweeper.migrate_state().await.unwrap(), Migrated::Written(2));
    let document = world.state();
    assert_eq!((document.version, document.containers.len()), (2, 2));
    assert_eq!(document.containers[0].container.as_deref(), Some("events"));
    let text = smalt_sweeper::state::write(&document).unwrap();
    assert!(
        !text.contains("SECRET") && text.contains("edited by hand"),
        "{text}"
    );
    assert!(text.contains("owner=\"ops\""));
    assert_eq!(sweeper.migrate_state().await.unwrap(), Migrated::Already);
    once_with(&world, by_document("one"), Vec::new()).await;
    assert_eq!(world.names("acct", "events").len(), 0);
    assert_eq!(world.names("acct", "logs"), ["new/a"]);
}

/// With an account that is not configured, nothing is written.
#[tokio::test(start_paused = true)]
async fn secret_of_an_unknown_account_is_not_migrated() {
    let world = World::new();
    world.put_state(&SEED.replacen("https://acct.", "https://other.", 1));
    let before = world.state();
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    assert_eq!(sweeper.migrate_state().await.unwrap_err().exit_code(), 2);
    assert_eq!(world.state(), before);
    let nothing = worker(&World::new(), config("one"), Vec::new(), 1);
    assert_eq!(nothing.migrate_state().await.unwrap_err().exit_code(), 4);
}

/// With two workers and a migration at the same time, the document's history stays linear.
#[tokio::test(start_paused = true)]
async fn a_migration_among_workers_loses_nothing() {
    let world = World::new();
    world.put_state(&SEED.replace("?sr=c&amp;sig=SECRET", ""));
    world.put_many("acct/events/", 20, &[DUE]);
    let one = worker(&world, by_document("one"), Vec::new(), 1);
    let two = worker(&world, config("two"), Vec::new(), 2);
    let (finished, migrated) = tokio::join!(one.once(), two.migrate_state());
    assert!(finished.error.is_none());
    assert_eq!(migrated.unwrap(), Migrated::Written(0));
    world.assert_safe();
    assert_eq!(
        (world.state().version, world.names("acct", "events").len()),
        (2, 0)
    );
}

/// A dead worker's lease is broken, but not while a page is in progress, unless forced.
#[tokio::test(start_paused = true)]
async fn a_stuck_lease_is_broken() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    let claimed = vec![fault("delete_blob", 1, Act::DieBefore)];
    until_death(&world, config("dead"), claimed, 3).await;
    let until = world.now().plus_s(3_600);
    let lease = |blob: &mut crate::fake::Blob| blob.lease = Some(("x".into(), until));
    world.change("acct/smalt-sweeper/TimeToLiveBlobs", lease);
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    assert_eq!(
        sweeper.unlock_state(false).await.unwrap(),
        Unlocked::Refused(1)
    );
    sleep(121).await;
    assert_eq!(sweeper.unlock_state(false).await.unwrap(), Unlocked::Broken);
    assert_eq!(sweeper.unlock_state(false).await.unwrap(), Unlocked::Free);
    dead(&world, fault("delete_blob", 1, Act::DieBefore)).await;
    assert_eq!(sweeper.unlock_state(true).await.unwrap(), Unlocked::Free);
}
