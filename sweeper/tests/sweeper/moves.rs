//! Tests of moves: collisions, lost responses, changing sources, copies of dead workers.

use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::ErrorKind;
use smalt_sweeper::{Collision, DeadConfig, Outcome, SweeperConfig};

use crate::fake::{Act, World, fault};
use crate::support::*;

const DBC: (&str, &str) = ("DeadBlobContainer", "dbc");

fn with(on_collision: Collision) -> SweeperConfig {
    SweeperConfig {
        dead: DeadConfig {
            account: Some("archive".into()),
            on_collision,
            ..DeadConfig::default()
        },
        ..config("one")
    }
}

/// SS8: a foreign blob at the destination stays, unless policy says otherwise.
#[tokio::test(start_paused = true)]
async fn foreign_blob_at_destination_follows_policy() {
    for (policy, outcome, names) in [
        (Collision::Fail, Outcome::Collision, vec!["a"]),
        (Collision::Suffix, Outcome::Moved, vec!["a", "a~0x2"]),
        (Collision::Overwrite, Outcome::Moved, vec!["a"]),
    ] {
        let world = World::new();
        world.lock().allow_overwrite = policy == Collision::Overwrite;
        world.put("archive/dbc/a", &[("Owner", "somebody")]);
        world.put("acct/events/a", &[DUE, DBC]);
        let finished = once_with(&world, with(policy), Vec::new()).await;
        assert_eq!(finished.report.count(outcome), 1, "{policy:?}");
        assert_eq!(world.names("archive", "dbc"), names);
        assert_eq!(world.has("acct/events/a"), outcome == Outcome::Collision);
    }
}

/// A new blob with the same name that expires again is moved beside its earlier version.
#[tokio::test(start_paused = true)]
async fn earlier_version_is_kept_and_does_not_collide() {
    let world = World::new();
    for _ in 0..2 {
        world.put("acct/events/a", &[DUE, DBC]);
        let finished = sweep(&world).await;
        assert_eq!(finished.report.count(Outcome::Moved), 1);
    }
    assert_eq!(world.names("archive", "dbc").len(), 2);
}

/// D4: a call whose response was lost is recognized by its effect.
#[tokio::test(start_paused = true)]
async fn lost_responses_are_recognized() {
    for operation in ["start_copy", "delete_blob", "create_container", "put_blob"] {
        for nth in 1..=3 {
            let world = World::new();
            world.put("acct/events/a", &[DUE, DBC]);
            let finished = once(&world, vec![fault(operation, nth, Act::LoseAnswer)]).await;
            assert_eq!(
                finished.report.count(Outcome::Moved),
                1,
                "{operation} {nth}"
            );
            assert_eq!(world.names("archive", "dbc"), ["a"]);
            assert_eq!(world.state().purged, 1);
        }
    }
}

/// SS3: the copy of a dead worker is found and used, whether pending, complete or failed.
#[tokio::test(start_paused = true)]
async fn copy_of_a_dead_worker_is_used() {
    for (copy_time_s, failing) in [(0, 0), (400, 0), (0, 1)] {
        let world = World::new();
        world.put("acct/events/a", &[DUE, DBC]);
        world.lock().copy_time = Duration::from_secs(copy_time_s);
        world.lock().failing_copies = failing;
        dead(&world, fault("start_copy", 1, Act::DieAfter)).await;
        assert!(world.has("acct/events/a") && world.has("archive/dbc/a"));
        let finished = sweep(&world).await;
        assert_eq!(finished.report.count(Outcome::Moved), 1);
        assert_eq!(world.names("archive", "dbc"), ["a"]);
    }
}

/// A source that is replaced during its copy stays. The copy of the old version also stays, because
/// it may be the last one.
#[tokio::test(start_paused = true)]
async fn a_source_that_changes_during_the_copy_stays() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    let replace = Act::Meanwhile(Arc::new(|world: &World| {
        world.put("acct/events/a", &[("TimeToLive", FUTURE)]);
    }));
    let finished = once(&world, vec![fault("delete_blob", 1, replace)]).await;
    assert_eq!(finished.report.count(Outcome::Changed), 1);
    assert!(world.has("acct/events/a") && world.has("archive/dbc/a"));
}

/// The copy of a version survives if its delete was executed, the response was lost, and the name
/// was reused. Removing the copy would destroy data in this case.
#[tokio::test(start_paused = true)]
async fn copy_survives_reuse_of_its_source_name() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    let content = world.get("acct/events/a").unwrap().content;
    let anew = Act::Meanwhile(Arc::new(|world: &World| {
        world.put("acct/events/a", &[("TimeToLive", FUTURE)]);
    }));
    let faults = vec![
        fault("delete_blob", 1, Act::LoseAnswer),
        fault("delete_blob", 2, anew),
    ];
    once(&world, faults).await;
    assert_eq!(world.get("archive/dbc/a").unwrap().content, content);
    assert!(world.has("acct/events/a"));
}

/// A copy that does not equal its source never leads to a delete: one with another length, and one
/// of the same length with another byte in its second part, where no MD5 tells.
#[tokio::test(start_paused = true)]
async fn copy_with_other_content_is_rejected() {
    for length in [3, 5_000_000] {
        let world = World::new();
        world.put_bytes("acct/events/a", vec![7; 5_000_000], &[DUE, DBC]);
        let spoil = Act::Meanwhile(Arc::new(move |world: &World| {
            world.change("archive/dbc/a", |blob| {
                let mut bytes = blob.content.to_vec();
                bytes.truncate(length);
                bytes[length - 1] = 8;
                blob.content = bytes.into();
            });
        }));
        let finished = once(&world, vec![fault("blob_properties", 1, spoil)]).await;
        assert_eq!(finished.report.count(Outcome::CopyFailed), 1);
        assert!(world.has("acct/events/a"));
        // Nobody spoils the next one.
        let finished = once_with(&world, with(Collision::Suffix), Vec::new()).await;
        assert_eq!(finished.report.count(Outcome::Moved), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_never_ends_is_left_for_the_next_cycle() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    world.lock().copy_time = Duration::from_secs(900);
    let finished = sweep(&world).await;
    assert_eq!(finished.report.count(Outcome::Deferred), 1);
    sleep(300).await;
    assert_eq!(sweep(&world).await.report.count(Outcome::Moved), 1);
}

#[tokio::test(start_paused = true)]
async fn a_missing_destination_is_created_or_reported() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    let mut strict = with(Collision::Fail);
    strict.dead.create_container = false;
    let finished = once_with(&world, strict, Vec::new()).await;
    assert_eq!(finished.report.count(Outcome::DbcMissing), 1);
    // The container is created, removed by another client, and created again.
    let gone = Act::Meanwhile(Arc::new(|world: &World| {
        world
            .lock()
            .containers
            .remove(&("archive".into(), "dbc".into()));
    }));
    let finished = once(&world, vec![fault("start_copy", 1, gone)]).await;
    assert_eq!(finished.report.count(Outcome::Moved), 1);
}

/// If access is denied for every blob of a page, the container is parked.
#[tokio::test(start_paused = true)]
async fn denied_credential_parks_the_container() {
    let world = World::new();
    world.put_many("acct/events/", 9, &[DUE]);
    let denied = (1..=9)
        .map(|n| fault("delete_blob", n, Act::Refuse(ErrorKind::Denied)))
        .collect();
    let finished = once(&world, denied).await;
    assert_eq!(
        finished.report.cycles[0].parked,
        [("events".into(), "Denied".into())]
    );
    assert_eq!(finished.report.count(Outcome::Denied), 3);
}

/// A dead worker's copy that was overwritten is treated like any other blob at the destination,
/// according to policy, so that the same failure is not repeated in every cycle.
#[tokio::test(start_paused = true)]
async fn overwritten_copy_follows_policy() {
    for (policy, outcome, copies) in [
        (Collision::Fail, Outcome::Collision, 1),
        (Collision::Suffix, Outcome::Moved, 2),
        (Collision::Overwrite, Outcome::Moved, 1),
    ] {
        let world = World::new();
        world.lock().allow_overwrite = policy == Collision::Overwrite;
        world.put("acct/events/a", &[DUE, DBC]);
        let dies = vec![fault("delete_blob", 1, Act::DieBefore)];
        until_death(&world, with(policy), dies, 3).await;
        world.change("archive/dbc/a", |blob| blob.content.truncate(3));
        let finished = once_with(&world, with(policy), Vec::new()).await;
        assert_eq!(finished.report.count(outcome), 1, "{policy:?}");
        assert_eq!(world.names("archive", "dbc").len(), copies, "{policy:?}");
        assert_eq!(world.has("acct/events/a"), outcome == Outcome::Collision);
    }
}
