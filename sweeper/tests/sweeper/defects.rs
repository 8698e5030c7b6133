//! Tests that no defect of the original design was inherited, by their numbers in the requirements.

use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::{BlobKind, ErrorKind};
use smalt_sweeper::{Accounts, DeadConfig, Outcome, Sweeper, SweeperConfig};
use smalt_worker::exit;

use crate::fake::{Account, Act, World, fault};
use crate::support::*;

const DBC: (&str, &str) = ("DeadBlobContainer", "dbc");

/// Parallelism is bounded, and no outcome is reported before the work is done.
#[tokio::test(start_paused = true)]
async fn ds1_parallelism_is_bounded_and_awaited() {
    let world = World::new();
    world.put_many("acct/events/due", 60, &[DUE]);
    let wide = changed(|c| c.page_size = 60);
    let finished = once_with(&world, wide, Vec::new()).await;
    assert_eq!(world.lock().under_way, (0, 15));
    assert_eq!(finished.report.count(Outcome::Deleted), 60);
}

/// A failed copy leaves the source unchanged, including its time to live.
#[tokio::test(start_paused = true)]
async fn ds2_a_failed_copy_leaves_the_source_untouched() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    let before = world.get("acct/events/a").unwrap();
    world.lock().failing_copies = 100;
    let finished = sweep(&world).await;
    assert_eq!(finished.report.count(Outcome::CopyFailed), 1);
    let after = world.get("acct/events/a").unwrap();
    assert_eq!(
        (after.etag, &after.metadata),
        (before.etag, &before.metadata)
    );
    // The next cycle moves it.
    world.lock().failing_copies = 0;
    assert_eq!(sweep(&world).await.report.count(Outcome::Moved), 1);
}

#[tokio::test(start_paused = true)]
async fn ds3_a_pending_copy_is_waited_for() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    world.lock().copy_time = Duration::from_secs(300);
    let finished = sweep(&world).await;
    assert_eq!(finished.report.count(Outcome::Moved), 1);
    assert!(world.has("archive/dbc/a") && !world.has("acct/events/a"));
    assert!(world.now().since(crate::fake::start()) >= Duration::from_secs(300));
}

#[tokio::test(start_paused = true)]
async fn ds4_without_an_account_for_dead_blobs_nothing_is_destroyed() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    let without = changed(|c| c.dead = DeadConfig::default());
    let finished = once_with(&world, without, Vec::new()).await;
    assert!(world.has("acct/events/a"));
    assert_eq!(finished.report.count(Outcome::DbcUnconfigured), 1);
    assert_eq!(finished.exit_code(), exit::FAILED_ITEMS);
}

#[tokio::test(start_paused = true)]
async fn ds5_a_blob_is_never_moved_onto_itself() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, ("DeadBlobContainer", "events")]);
    world.put("acct/events/b", &[DUE, ("DeadBlobContainer", "logs/")]);
    let same = SweeperConfig {
        dead: DeadConfig {
            account: Some("default".into()),
            ..DeadConfig::default()
        },
        ..config("one")
    };
    let finished = once_with(&world, same, Vec::new()).await;
    assert_eq!(world.names("acct", "events"), ["a", "b"]);
    assert_eq!(finished.report.count(Outcome::DbcSelf), 1);
    assert_eq!(finished.report.count(Outcome::DbcSwept), 1);
}

/// A blob that is extended or replaced between listing and removal stays.
#[tokio::test(start_paused = true)]
async fn ds6_changed_blob_stays() {
    for (operation, metadata) in [("delete_blob", &[DUE][..]), ("start_copy", &[DUE, DBC])] {
        let world = World::new();
        world.put("acct/events/a", metadata);
        let extend = Act::Meanwhile(Arc::new(|world: &World| {
            world.set_metadata("acct/events/a", &[("TimeToLive", FUTURE)]);
        }));
        let finished = once(&world, vec![fault(operation, 1, extend)]).await;
        assert!(world.has("acct/events/a"), "{operation}");
        assert_eq!(finished.report.count(Outcome::Changed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn ds7_dead_blobs_do_not_overwrite_each_other() {
    let world = World::new();
    world.put(
        "acct/events/a",
        &[DUE, ("DeadBlobContainer", "dbc/deleteme")],
    );
    world.put(
        "acct/events/b",
        &[DUE, ("DeadBlobContainer", "dbc/deleteme")],
    );
    let finished = sweep(&world).await;
    assert_eq!(finished.report.count(Outcome::Moved), 1);
    assert_eq!(finished.report.count(Outcome::Collision), 1);
    assert_eq!(world.names("acct", "events").len(), 1);
}

/// A page is in the ledger before its first blob is touched and stays there until it is done.
#[tokio::test(start_paused = true)]
async fn ds8_a_page_is_not_lost_with_its_worker() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    // The second write is the claim; the worker dies just after it.
    dead(&world, fault("put_blob", 2, Act::DieAfter)).await;
    assert!(world.has("acct/events/a"));
    assert_eq!(world.state().containers[0].pages.len(), 1);
    sweep(&world).await;
    assert!(!world.has("acct/events/a"));
}

#[tokio::test(start_paused = true)]
async fn ds9_a_cycle_ends_with_its_last_page() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    let stall = vec![fault("delete_blob", 1, Act::Stall(Duration::from_secs(90)))];
    let slow = worker(&world, config("slow"), stall, 1);
    let other = worker(&world, config("other"), Vec::new(), 2);
    let watch = async {
        sleep(80).await;
        assert_eq!(world.state().cycle, 0);
        assert!(world.state().timestamp.is_empty());
    };
    tokio::join!(slow.once(), other.once(), watch);
    assert_eq!((world.state().cycle, world.state().purged), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn ds10_no_second_pass_before_the_next_mark() {
    let world = World::new();
    let workers: Vec<_> = (0..3)
        .map(|n| worker(&world, config(&format!("w{n}")), Vec::new(), n))
        .collect();
    let runs = workers.iter().map(|w| w.run_until(sleep(550)));
    futures_util::future::join_all(runs).await;
    assert_eq!(world.calls_of("list_blobs"), 2);
    assert_eq!(world.state().cycle, 1);
}

/// A worker that resumes long after its lease has expired overwrites nothing.
#[tokio::test(start_paused = true)]
async fn ds11_a_late_writer_changes_nothing() {
    for backend in [config as fn(&str) -> SweeperConfig, etag_config] {
        let world = World::new();
        world.put_many("acct/events/due", 9, &[DUE]);
        let stall = vec![fault("put_blob", 2, Act::Stall(Duration::from_secs(3_600)))];
        let late = worker(&world, backend("late"), stall, 1);
        let other = worker(&world, backend("other"), Vec::new(), 2);
        let (late, other) = tokio::join!(late.once(), other.once());
        world.assert_safe();
        assert_eq!(other.report.count(Outcome::Deleted), 9);
        assert_eq!(late.report.count(Outcome::Deleted), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn ds12_failing_container_does_not_block_others() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    world.put("acct/logs/b", &[DUE]);
    world.lock().denied.insert("events".into());
    let finished = sweep(&world).await;
    assert!(!world.has("acct/logs/b"));
    assert_eq!(finished.exit_code(), exit::FAILED_ITEMS);
    assert_eq!(
        finished.report.cycles[0].parked,
        [("events".into(), "Denied".into())]
    );
    world.lock().denied.insert("logs".into());
    let listed = world.calls_of("list_blobs");
    assert_eq!(sweep(&world).await.exit_code(), exit::DENIED);
    assert_eq!(
        world.calls_of("list_blobs"),
        listed + 2,
        "each is tried once, not forever"
    );
}

#[tokio::test(start_paused = true)]
async fn ds13_every_kind_of_blob_is_handled() {
    let world = World::new();
    for (name, kind) in [("page", BlobKind::Page), ("append", BlobKind::Append)] {
        world.put(&format!("acct/events/{name}"), &[DUE, DBC]);
        world.change(&format!("acct/events/{name}"), |blob| blob.kind = kind);
    }
    assert_eq!(sweep(&world).await.report.count(Outcome::Moved), 2);
}

#[tokio::test(start_paused = true)]
async fn ds14_ambiguous_date_is_reported_not_guessed() {
    let world = World::new();
    for (at, date) in ["01/02/2020 10:00:00", "2020-01-02T10:00:00", "2020-01-02"]
        .iter()
        .enumerate()
    {
        world.put(&format!("acct/events/{at}"), &[("TimeToLive", date)]);
    }
    let finished = sweep(&world).await;
    assert_eq!(finished.report.count(Outcome::InvalidTtl), 3);
    assert_eq!(finished.report.failures.len(), 3);
    assert_eq!(world.names("acct", "events").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn ds15_the_services_time_decides() {
    let world = World::new();
    world.put("acct/events/soon", &[("TimeToLive", SOON)]);
    let there = Arc::clone(&world);
    let fast = move || there.now().plus_s(500);
    let sweeper = worker(&world, config("one"), Vec::new(), 1).with_wall_clock(Arc::new(fast));
    assert_eq!(sweeper.once().await.report.count(Outcome::NotDue), 1);
    assert!(world.has("acct/events/soon"));
}

#[tokio::test(start_paused = true)]
async fn ds16_a_move_needs_no_write_to_the_source() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    sweep(&world).await;
    assert_eq!(world.calls_of("set_blob_metadata"), 0);
    assert!(world.has("archive/dbc/a"));
}

#[tokio::test(start_paused = true)]
async fn ds17_time_stamps_are_rfc3339() {
    let world = World::new();
    sweep(&world).await;
    assert!(world.state().timestamp.starts_with("2026-11-21T10:00:"));
    assert!(world.state().timestamp.ends_with('Z'));
}

#[tokio::test(start_paused = true)]
async fn ds18_containers_are_served_in_order_and_in_turn() {
    let world = World::new();
    for at in 0..6 {
        world.put(&format!("acct/events/{at}"), &[]);
        world.put(&format!("acct/logs/{at}"), &[]);
    }
    sweep(&world).await;
    let inner = world.lock();
    let listed = inner
        .calls
        .iter()
        .filter_map(|c| c.strip_prefix("list_blobs acct/"));
    let order: Vec<&str> = listed.filter_map(|c| c.split(' ').next()).collect();
    assert_eq!(order, ["events", "logs", "events", "logs"]);
}

#[tokio::test(start_paused = true)]
async fn ds19_only_completed_work_is_counted() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    let busy = (1..=9)
        .map(|n| fault("delete_blob", n, Act::Refuse(ErrorKind::Busy)))
        .collect();
    let finished = once(&world, busy).await;
    assert_eq!(finished.report.count(Outcome::Deferred), 1);
    let state = world.state();
    assert_eq!((state.purged, state.containers[0].tally.failed), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn ds20_a_destination_container_is_created_once() {
    for parallelism in [1, SweeperConfig::default().parallelism] {
        let world = World::new();
        world.put_many("acct/events/", 9, &[DUE, DBC]);
        let config = SweeperConfig {
            parallelism,
            page_size: 9,
            ..config("one")
        };
        once_with(&world, config, Vec::new()).await;
        let inner = world.lock();
        let made = inner
            .calls
            .iter()
            .filter(|c| c.starts_with("create_container archive/dbc"));
        assert_eq!(made.count(), 1, "{parallelism} at a time");
    }
}

#[tokio::test(start_paused = true)]
async fn ds21_no_secret_in_state_report_or_copy() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    world.put("acct/events/b", &[DUE, ("DeadBlobContainer", "dbc/a")]);
    let finished = sweep(&world).await;
    let report = serde_json::to_string(&finished.report).unwrap();
    let state = world
        .get("acct/smalt-sweeper/TimeToLiveBlobs")
        .unwrap()
        .content;
    let copy = world.get("archive/dbc/a").unwrap().metadata;
    let all = format!("{report}{}{copy:?}", String::from_utf8_lossy(&state));
    assert!(!all.contains("SECRET") && !all.contains("sig="), "{all}");
}

/// After a start exactly on a mark, the next mark is one period away, and workers start at
/// different times.
#[tokio::test(start_paused = true)]
async fn ds22_next_mark_is_later_and_starts_are_spread() {
    let world = World::new();
    let workers: Vec<_> = (0..3)
        .map(|n| worker(&world, config(&format!("w{n}")), Vec::new(), 100 + n))
        .collect();
    futures_util::future::join_all(workers.iter().map(|w| w.run_until(sleep(630)))).await;
    let inner = world.lock();
    let second = |c: &&String| c.starts_with("acquire_lease") && c.contains("T10:10:");
    let wakes: Vec<&str> = inner
        .calls
        .iter()
        .filter(second)
        .filter_map(|c| c.rsplit(' ').next())
        .collect();
    assert!(wakes.iter().any(|at| *at != wakes[0]), "{wakes:?}");
    assert!(!inner.calls.iter().any(|c| c.contains("T10:05:")));
}

#[tokio::test(start_paused = true)]
async fn ds23_protected_blobs_have_their_own_outcome() {
    let world = World::new();
    for name in ["snapshots", "immutable", "archived", "leased"] {
        let metadata: &[_] = if name == "archived" {
            &[DUE, DBC]
        } else {
            &[DUE]
        };
        world.put(&format!("acct/events/{name}"), metadata);
    }
    world.change("acct/events/snapshots", |blob| {
        blob.snapshots = true;
    });
    world.change("acct/events/immutable", |blob| {
        blob.immutable = true;
    });
    world.change("acct/events/archived", |blob| {
        blob.tier = Some("Archive".into());
    });
    let until = world.now().plus_s(9_999);
    world.change("acct/events/leased", |blob| {
        blob.lease = Some(("x".into(), until));
    });
    let finished = sweep(&world).await;
    for outcome in [
        Outcome::SnapshotsPresent,
        Outcome::Immutable,
        Outcome::Archived,
        Outcome::Leased,
    ] {
        assert_eq!(finished.report.count(outcome), 1, "{outcome:?}");
    }
    assert_eq!(world.names("acct", "events").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn ds24_transient_failures_are_retried_and_permanent_ones_reported() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    let passing = vec![
        fault("list_blobs", 1, Act::Refuse(ErrorKind::Busy)),
        fault("delete_blob", 1, Act::LoseAnswer),
        fault("get_blob", 1, Act::Refuse(ErrorKind::OutcomeUnknown)),
    ];
    let finished = once(&world, passing).await;
    assert!(!world.has("acct/events/a"));
    assert_eq!(finished.exit_code(), exit::OK);
    world.put("acct/events/b", &[DUE]);
    let lasting = vec![fault("delete_blob", 1, Act::Refuse(ErrorKind::Refused))];
    let finished = once(&world, lasting).await;
    assert_eq!(finished.report.failures[0].blob, "b");
    assert!(finished.report.failures[0].detail.is_some());
}

#[tokio::test(start_paused = true)]
async fn ds25_a_sleeping_worker_stops_at_once() {
    let world = World::new();
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let finished = sweeper.run_until(sleep(100)).await;
    assert_eq!(finished.exit_code(), exit::OK);
    assert!(world.now().since(crate::fake::start()) <= Duration::from_secs(101));
}

#[tokio::test(start_paused = true)]
async fn ds26_metadata_names_are_case_insensitive() {
    let world = World::new();
    world.put(
        "acct/events/a",
        &[("timetolive", PAST), ("deadblobcontainer", "dbc")],
    );
    sweep(&world).await;
    assert!(world.has("archive/dbc/a"));
}

/// A dead blob that gets its own time to live is not moved to its old destination.
#[tokio::test(start_paused = true)]
async fn ds27_moved_blob_loses_its_old_destination() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC, ("Keep", "me")]);
    sweep(&world).await;
    let metadata = world.get("archive/dbc/a").unwrap().metadata;
    let mut names: Vec<&str> = metadata.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "DeletedDue",
        "Keep",
        "OriginalDeadBlobContainer",
        "OriginalTimeToLive",
        "SourceETag",
        "SourceLastModified",
        "SourceUri",
        "SweepId",
    ];
    assert_eq!(names, expected);
}

/// DS4 for the operator: a configuration that names an unknown account is rejected at the start.
#[tokio::test(start_paused = true)]
async fn an_unknown_account_is_a_configuration_error() {
    let world = World::new();
    let (source, _) = Account::pair(&world, Vec::new(), 1);
    let accounts = Accounts::new().with("default", source);
    let error = Sweeper::new(config("one"), accounts, 1).err().unwrap();
    assert_eq!(error.exit_code(), exit::USAGE);
}
