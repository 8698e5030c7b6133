//! Tests of undo against the model: moved blobs are restored with the same bytes and metadata
//! except for the time to live, and the content always exists somewhere.

use std::sync::Arc;

use smalt_sleeve::port::{
    BlobId, CallContext, Conditions, DeleteSnapshots, ErrorKind, Metadata, Storage,
};
use smalt_sweeper::Collision;
use smalt_sweeper::undo::{Undo, UndoReport, Undone};

use crate::fake::{Account, Act, Fault, World, fault};
use crate::support::*;

const DBC: (&str, &str) = ("DeadBlobContainer", "dbc");

fn all() -> Undo {
    Undo {
        from: vec![("dbc".to_owned(), String::new())],
        ..Undo::default()
    }
}

/// A world in which a sweep has moved `events/a` and `events/b` to `archive/dbc`.
async fn swept() -> Arc<World> {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC, ("Owner", "me")]);
    world.put("acct/events/b", &[DUE, DBC]);
    sweep(&world).await;
    world.lock().operator = true;
    world
}

async fn undo(world: &Arc<World>, undo: &Undo, faults: Vec<Fault>) -> UndoReport {
    let sweeper = worker(world, config("one"), faults, 7);
    let report = sweeper.undo(undo, |_| {}).await.expect("the listing works");
    world.assert_safe();
    report
}

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    let pairs = pairs.iter();
    pairs
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect()
}

/// After a move and an undo, blobs are equal except for the time to live, and no copy is left.
#[tokio::test(start_paused = true)]
async fn moved_blobs_are_restored() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC, ("Owner", "me")]);
    let content = world.get("acct/events/a").unwrap().content;
    sweep(&world).await;
    assert!(!world.has("acct/events/a"));
    world.lock().operator = true;
    let report = undo(&world, &all(), Vec::new()).await;
    assert_eq!(report.count(Undone::Restored), 1);
    assert_eq!(report.blobs[0].time_to_live.as_deref(), Some(PAST));
    let back = world.get("acct/events/a").unwrap();
    assert_eq!(back.content, content);
    assert_eq!(back.metadata, metadata(&[("Owner", "me"), DBC]));
    assert!(world.names("archive", "dbc").is_empty());
    // The next sweep does not remove it.
    world.lock().operator = false;
    sweep(&world).await;
    assert!(world.has("acct/events/a"));
}

/// With three dead versions of one blob, the newest takes the original place, whatever the order of
/// their names. The others stay and are reported, or are restored beside it; none overwrites
/// another.
#[tokio::test(start_paused = true)]
async fn newest_of_several_versions_is_restored() {
    for (policy, dry_run, expected) in [
        (Collision::Fail, false, [1, 2]),
        (Collision::Overwrite, false, [1, 2]),
        (Collision::Suffix, false, [3, 0]),
        (Collision::Suffix, true, [3, 0]),
        (Collision::Fail, true, [1, 2]),
    ] {
        let world = World::new();
        let mut contents = Vec::new();
        for version in 0..3 {
            world.put("acct/events/a", &[DUE, DBC]);
            contents.push(world.get("acct/events/a").unwrap().content);
            sweep(&world).await;
            sleep(60).await;
            // The last version's ETag is longer and is listed before that of the second one.
            (0..256 * version).for_each(|_| world.put("acct/other/x", &[]));
        }
        let dead = world.names("archive", "dbc");
        assert_eq!(dead.len(), 3);
        let content = |name: &str| world.get(&format!("archive/dbc/{name}")).unwrap().content;
        assert_eq!(content(&dead[1]), contents[2], "{dead:?}");
        if policy == Collision::Overwrite {
            world.put("acct/events/a", &[("Owner", "somebody")]);
            world.lock().allow_overwrite = true;
        }
        world.lock().operator = true;
        let asked = Undo {
            on_collision: policy,
            dry_run,
            ..all()
        };
        let report = undo(&world, &asked, Vec::new()).await;
        let counts = [Undone::Restored, Undone::OlderVersion].map(|u| report.count(u));
        assert_eq!(counts, expected, "{policy:?} {report:?}");
        if dry_run {
            assert_eq!(world.names("archive", "dbc"), dead);
            continue;
        }
        let back = world.get("acct/events/a").unwrap().content;
        assert_eq!(back, contents[2], "{policy:?}");
        let mut left: Vec<_> = world
            .names("archive", "dbc")
            .iter()
            .map(|n| content(n))
            .collect();
        let beside = world.names("acct", "events");
        let beside = beside.iter().filter(|name| *name != "a");
        left.extend(beside.map(|name| world.get(&format!("acct/events/{name}")).unwrap().content));
        left.sort();
        assert_eq!(left, contents[..2], "{policy:?}");
        assert_eq!(report.failed(), expected[1]);
    }
}

/// A dry run predicts the results and writes nothing.
#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing() {
    let world = swept().await;
    world.put("acct/events/b", &[]);
    let asked = Undo {
        dry_run: true,
        ..all()
    };
    let writes = |world: &World| world.calls_of("start_copy") + world.calls_of("delete_blob");
    let before = writes(&world);
    let report = undo(&world, &asked, Vec::new()).await;
    assert_eq!(
        (
            report.count(Undone::Restored),
            report.count(Undone::Collision)
        ),
        (1, 1)
    );
    assert_eq!(writes(&world), before);
}

/// Selection by time, cycle and original place: other blobs stay and are not counted.
#[tokio::test(start_paused = true)]
async fn only_selected_blobs_are_restored() {
    type Select = fn(&mut Undo);
    let table: [(Select, u64); 7] = [
        (|u| u.cycle = Some(0), 2),
        (|u| u.cycle = Some(1), 0),
        (|u| u.since = Some(crate::fake::start()), 2),
        (|u| u.since = Some(crate::fake::start().plus_s(600)), 0),
        (|u| u.place = Some("events/b".to_owned()), 1),
        (|u| u.place = Some("logs".to_owned()), 0),
        (|u| u.from[0].1 = "a".to_owned(), 1),
    ];
    for (select, expected) in table {
        let mut asked = all();
        select(&mut asked);
        let world = swept().await;
        let report = undo(&world, &asked, Vec::new()).await;
        assert_eq!(report.count(Undone::Restored), expected, "{asked:?}");
        assert_eq!(report.failed(), 0);
        assert_eq!(
            world.names("acct", "events").len() as u64,
            expected,
            "{asked:?}"
        );
    }
}

/// Another blob exists at the original place.
#[tokio::test(start_paused = true)]
async fn occupied_original_place_follows_policy() {
    for (policy, outcome, names) in [
        (Collision::Fail, Undone::Collision, 1),
        (Collision::Suffix, Undone::Restored, 2),
        (Collision::Overwrite, Undone::Restored, 1),
    ] {
        let world = swept().await;
        world.put("acct/events/a", &[("Newer", "1")]);
        let asked = Undo {
            on_collision: policy,
            from: vec![("dbc".to_owned(), "a".to_owned())],
            ..Undo::default()
        };
        let report = undo(&world, &asked, Vec::new()).await;
        assert_eq!(report.count(outcome), 1, "{policy:?} {report:?}");
        assert_eq!(world.names("acct", "events").len(), names, "{policy:?}");
        let kept = world
            .get("acct/events/a")
            .unwrap()
            .metadata
            .contains_key("Newer");
        assert_eq!(kept, policy != Collision::Overwrite);
        assert_eq!(world.has("archive/dbc/a"), policy == Collision::Fail);
    }
}

/// Blobs that no sweep moved, that came from elsewhere, or that are incomplete stay.
#[tokio::test(start_paused = true)]
async fn blobs_without_a_valid_origin_stay() {
    let world = swept().await;
    world.put("archive/dbc/own", &[("Owner", "archive")]);
    let elsewhere = [("SourceUri", "https://other/c/b"), ("SourceETag", "0x1")];
    world.put("archive/dbc/other", &elsewhere);
    world.change("archive/dbc/a", |blob| blob.tier = Some("Archive".into()));
    world.change("archive/dbc/b", |blob| {
        let copy = blob.copy.as_mut().expect("it is a copy");
        copy.status = smalt_sleeve::port::CopyStatus::Aborted;
    });
    let report = undo(&world, &all(), Vec::new()).await;
    for undone in [
        Undone::NoHistory,
        Undone::Elsewhere,
        Undone::Archived,
        Undone::Incomplete,
    ] {
        assert_eq!(report.count(undone), 1, "{undone:?}");
    }
    assert_eq!(world.names("archive", "dbc").len(), 4);
}

/// After a fault or a lost response at any call, a second undo restores both blobs without loss.
#[tokio::test(start_paused = true)]
async fn second_undo_completes_after_any_fault() {
    for operation in ["start_copy", "blob_properties", "delete_blob"] {
        for act in [
            Act::LoseAnswer,
            Act::Refuse(ErrorKind::Busy),
            Act::Refuse(ErrorKind::Denied),
        ] {
            for nth in 1..=3 {
                let world = swept().await;
                undo(&world, &all(), vec![fault(operation, nth, act.clone())]).await;
                let report = undo(&world, &all(), Vec::new()).await;
                assert_eq!(report.failed(), 0, "{operation} {nth} {report:?}");
                assert_eq!(
                    world.names("acct", "events"),
                    ["a", "b"],
                    "{operation} {nth}"
                );
                assert!(
                    world.names("archive", "dbc").is_empty(),
                    "{operation} {nth}"
                );
            }
        }
    }
}

/// If the undo dies at any call, the next one completes it.
#[tokio::test(start_paused = true)]
async fn a_death_at_any_call_loses_nothing() {
    for nth in 1..=8 {
        for act in [Act::DieBefore, Act::DieAfter] {
            let world = swept().await;
            let at = Fault {
                operation: None,
                nth,
                act,
            };
            let sweeper = worker(&world, config("one"), vec![at], 7);
            let asked = all();
            tokio::select! {
                biased;
                () = world.died.notified() => {}
                _ = sweeper.undo(&asked, |_| {}) => {}
            }
            world.lock().under_way.0 = 0;
            undo(&world, &all(), Vec::new()).await;
            assert_eq!(world.names("acct", "events"), ["a", "b"], "{nth}");
            assert!(world.names("archive", "dbc").is_empty(), "{nth}");
        }
    }
}

/// A dead copy that changes between copy and delete stays.
#[tokio::test(start_paused = true)]
async fn a_dead_copy_that_changes_stays() {
    let world = swept().await;
    let touched = Act::Meanwhile(Arc::new(|world: &World| {
        world.put("archive/dbc/a", &[("Newer", "1")]);
    }));
    let report = undo(&world, &all(), vec![fault("delete_blob", 1, touched)]).await;
    assert_eq!(report.count(Undone::CopyKept), 1);
    assert!(world.has("archive/dbc/a") && world.has("acct/events/a"));
}

/// The model's checks detect what they are meant for: a deleted dead copy whose content exists
/// nowhere else, and an unconditional write.
#[tokio::test(start_paused = true)]
async fn model_checks_detect_a_loss() {
    let world = swept().await;
    let (_, archive) = Account::pair(&world, Vec::new(), 1);
    let cx = CallContext {
        client_request_id: "{}".to_owned(),
        muted: true,
    };
    let (any, refuse) = (Conditions::default(), DeleteSnapshots::Refuse);
    let [a, b] = ["a", "b"].map(|name| BlobId::new("dbc", name));
    let described = archive
        .set_blob_metadata(&cx, &a, &Metadata::new(), &any)
        .await;
    let deleted = archive.delete_blob(&cx, &b, &any, refuse).await;
    assert!(described.is_ok() && deleted.is_ok());
    let seen = world.lock().violations.clone();
    assert!(seen.iter().any(|v| v.starts_with("U2")), "{seen:?}");
    assert!(seen.iter().any(|v| v.starts_with("U1")), "{seen:?}");
}
