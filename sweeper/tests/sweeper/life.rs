//! Tests of a worker's life: first cycle, idling, fleets, stopping, outages, plans.

use std::time::Duration;

use smalt_sleeve::port::ErrorKind;
use smalt_sweeper::guard::Guard;
use smalt_sweeper::state::Status;
use smalt_sweeper::{Outcome, Plan, Prices, SweepError, Sweeper, SweeperConfig};
use smalt_worker::exit;
use smalt_worker::face::Face;

use crate::fake::{Act, World, fault};
use crate::support::*;

/// S5, S6, S7, S8, S23: one cycle removes what is due and reports it.
#[tokio::test(start_paused = true)]
async fn one_cycle_deletes_moves_and_keeps_blobs() {
    let world = World::new();
    world.put_many("acct/events/due", 7, &[DUE]);
    world.put(
        "acct/logs/moved",
        &[DUE, ("DeadBlobContainer", "dbc/old/"), ("Owner", "Ann")],
    );
    world.put("acct/logs/untagged", &[]);
    world.put("acct/logs/later", &[("TimeToLive", FUTURE)]);
    world.put("acct/logs/odd", &[("TimeToLive", "tomorrow")]);
    let finished = sweep(&world).await;
    assert!(world.names("acct", "events").is_empty());
    assert_eq!(world.names("acct", "logs"), ["later", "odd", "untagged"]);
    let dead = world.get("archive/dbc/old/moved").unwrap();
    assert_eq!(dead.metadata.get("Owner").unwrap(), "Ann");
    assert!(
        !dead
            .metadata
            .keys()
            .any(|k| k == "TimeToLive" || k == "DeadBlobContainer")
    );
    let report = &finished.report;
    assert_eq!(report.count(Outcome::Deleted), 7);
    assert_eq!(report.count(Outcome::Moved), 1);
    assert_eq!(report.count(Outcome::InvalidTtl), 1);
    assert_eq!(report.cycles[0].purged, 8);
    assert_eq!(finished.exit_code(), exit::FAILED_ITEMS);
    let state = world.state();
    assert_eq!((state.cycle, state.purged), (1, 8));
    assert!(
        state
            .containers
            .iter()
            .all(|c| c.status == Status::Init && c.pages.is_empty())
    );
    assert!(state.next_due.unwrap() > world.now());
}

/// S24, S28: a fleet shares one scan, and each page is processed once.
#[tokio::test(start_paused = true)]
async fn a_fleet_shares_one_cycle() {
    for backend in [config as fn(&str) -> SweeperConfig, etag_config] {
        let world = World::new();
        world.put_many("acct/events/due", 60, &[DUE]);
        let workers: Vec<_> = (0..4)
            .map(|n| worker(&world, backend(&format!("w{n}")), Vec::new(), n))
            .collect();
        let finished = futures_util::future::join_all(workers.iter().map(Sweeper::once)).await;
        world.assert_safe();
        assert!(world.names("acct", "events").is_empty());
        let deleted = finished.iter().map(|f| f.report.count(Outcome::Deleted));
        assert_eq!(deleted.sum::<u64>(), 60);
        assert_eq!(world.calls_of("delete_blob"), 60);
        assert_eq!(world.state().purged, 60);
    }
}

/// SL1, SL4: a running worker finds blobs that become due later, once per mark.
#[tokio::test(start_paused = true)]
async fn a_running_worker_sweeps_at_each_mark() {
    let world = World::new();
    world.put("acct/events/soon", &[("TimeToLive", SOON)]);
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let finished = sweeper.run_until(sleep(1_830)).await;
    assert!(!world.has("acct/events/soon"));
    let cycles: Vec<u64> = finished.report.cycles.iter().map(|c| c.cycle).collect();
    assert_eq!(cycles, [0, 1, 2, 3]);
    assert_eq!(finished.exit_code(), exit::OK);
    world.assert_safe();
}

/// SL2: the page of a dead worker is reclaimed after its deadline, even with new names in it.
#[tokio::test(start_paused = true)]
async fn the_page_of_a_dead_worker_is_reclaimed() {
    let world = World::new();
    world.put_many("acct/events/due", 6, &[DUE]);
    dead(&world, fault("delete_blob", 1, Act::DieBefore)).await;
    let state = world.state();
    let page = &state.containers[0].pages[0];
    assert_eq!((page.first.as_str(), page.last.as_str()), ("due0", "due2"));
    assert_eq!(page.owner, "dead");
    for name in ["due00", "due01", "due02", "due03"] {
        world.put(&format!("acct/events/{name}"), &[DUE]);
    }
    // Other deletes of the dead worker may have been under way.
    let left = world.names("acct", "events").len();
    let finished = sweep(&world).await;
    assert!(world.names("acct", "events").is_empty());
    assert_eq!(finished.report.count(Outcome::Deleted), left as u64);
    assert!(world.state().containers.iter().all(|c| c.pages.is_empty()));
}

/// SL5: a stopping worker finishes its current blobs, gives back the rest, and stops in time.
#[tokio::test(start_paused = true)]
async fn a_stopping_worker_gives_its_page_back() {
    let world = World::new();
    world.put_many("acct/events/due", 40, &[DUE]);
    let slow = SweeperConfig {
        page_size: 40,
        parallelism: 1,
        rate_per_s: 10.0,
        ..config("slow")
    };
    let sweeper = worker(&world, slow, Vec::new(), 1);
    let finished = sweeper.run_until(sleep(3)).await;
    assert!(finished.error.is_none());
    let left = world.names("acct", "events").len();
    assert!(left > 0 && left < 40, "{left}");
    let state = world.state();
    assert_eq!(state.containers[0].tally.deleted, 40 - left as u64);
    assert_eq!(state.containers[0].pages.len(), 1);
    // Another worker continues at once, without waiting for the deadline.
    let before = world.now();
    sweep(&world).await;
    assert!(world.names("acct", "events").is_empty());
    assert!(world.now().since(before) < Duration::from_secs(30));
    assert_eq!(world.state().purged, 40);
}

#[tokio::test(start_paused = true)]
async fn stop_that_takes_too_long_is_reported() {
    let world = World::new();
    world.put("acct/events/due", &[DUE]);
    let stall = vec![fault(
        "delete_blob",
        1,
        Act::Stall(Duration::from_secs(500)),
    )];
    let sweeper = worker(&world, config("one"), stall, 1);
    let finished = sweeper.run_until(sleep(2)).await;
    assert_eq!(finished.exit_code(), exit::GRACE);
    assert_eq!(world.state().containers[0].pages.len(), 1);
}

/// A page that takes longer than its deadline is kept by extending the deadline.
#[tokio::test(start_paused = true)]
async fn long_work_extends_its_page() {
    let world = World::new();
    world.put("acct/events/due", &[DUE]);
    let stall = vec![fault(
        "delete_blob",
        1,
        Act::Stall(Duration::from_secs(500)),
    )];
    let slow = worker(&world, config("slow"), stall, 1);
    let other = worker(&world, config("other"), Vec::new(), 2);
    let (slow, other) = tokio::join!(slow.once(), other.once());
    assert_eq!(slow.report.count(Outcome::Deleted), 1);
    assert_eq!(other.report.count(Outcome::Gone), 0);
    assert_eq!(world.calls_of("delete_blob"), 1);
    world.assert_safe();
}

/// An extension that the write of another worker overtakes is made again at once.
#[tokio::test(start_paused = true)]
async fn an_overtaken_extension_is_repeated() {
    let world = World::new();
    world.put("acct/events/due", &[DUE]);
    let other = std::sync::Arc::new(|world: &World| {
        let state = world.get("acct/smalt-sweeper/TimeToLiveBlobs").unwrap();
        world.put_state(std::str::from_utf8(&state.content).unwrap());
    });
    let faults = vec![
        fault("delete_blob", 1, Act::Stall(Duration::from_secs(500))),
        fault("put_blob", 3, Act::Meanwhile(other)),
    ];
    let slow = worker(&world, etag_config("slow"), faults, 1);
    let look = async {
        sleep(70).await;
        let page = world.state().containers[0].pages[0].clone();
        assert!(page.deadline.unwrap() > world.now().plus_s(60));
    };
    let ((), finished) = tokio::join!(look, slow.once());
    assert_eq!(finished.report.count(Outcome::Deleted), 1);
}

/// SS10: the circuit breaker stops before the limit, with its exit code.
#[tokio::test(start_paused = true)]
async fn the_guard_stops_a_sweep_that_removes_too_much() {
    let world = World::new();
    world.put_many("acct/events/due", 30, &[DUE]);
    let guarded = SweeperConfig {
        guard: Guard {
            max_per_cycle: 10,
            ..Guard::default()
        },
        ..config("one")
    };
    let sweeper = worker(&world, guarded.clone(), Vec::new(), 1);
    let plan = sweeper.plan(Prices::default(), 100, |_| {}).await.unwrap();
    let stopped = plan.containers["events"].stopped.as_deref().unwrap();
    assert!(
        stopped.starts_with("before page 4: guard.max_per_cycle is 10: 9"),
        "{stopped}"
    );
    assert!(stopped.contains("--approve") && plan.table().contains(stopped));
    assert_eq!(
        (plan.exit_code(), plan.containers["logs"].stopped.as_ref()),
        (exit::GUARD, None)
    );
    let finished = once_with(&world, guarded, Vec::new()).await;
    assert_eq!(world.names("acct", "events").len(), 21);
    assert_eq!(finished.exit_code(), exit::GUARD);
}

#[tokio::test(start_paused = true)]
async fn a_broken_or_newer_state_is_never_rewritten() {
    for text in ["<Containers", "<Containers version=\"3\"/>", "hello"] {
        let world = World::new();
        world.put_state(text);
        let finished = sweep(&world).await;
        assert!(matches!(finished.error, Some(SweepError::State(_))));
        assert_eq!(finished.exit_code(), exit::UNREACHABLE);
        let content = world
            .get("acct/smalt-sweeper/TimeToLiveBlobs")
            .unwrap()
            .content;
        assert_eq!(content, text.as_bytes());
    }
}

/// D4: the worker waits through short outages of the state, and ends with code 4 after long ones.
#[tokio::test(start_paused = true)]
async fn short_state_outages_are_tolerated() {
    let world = World::new();
    world.put("acct/events/due", &[DUE]);
    let outage = |times| -> Vec<_> {
        (1..=times)
            .map(|n| fault("acquire_lease", n, Act::Refuse(ErrorKind::Unreachable)))
            .collect()
    };
    assert_eq!(once(&world, outage(4)).await.exit_code(), exit::OK);
    assert_eq!(
        once(&world, outage(100)).await.exit_code(),
        exit::UNREACHABLE
    );
    // The patience with the second outage does not count from the first one.
    let twice = [1, 2, 12, 13].map(|n| {
        let refused = Act::Refuse(ErrorKind::Unreachable);
        fault("acquire_lease", n, refused)
    });
    let sweeper = worker(&world, config("one"), twice.to_vec(), 1);
    let finished = sweeper.run_until(sleep(3_000)).await;
    assert_eq!(finished.exit_code(), exit::OK);
    world.lock().denied.insert("smalt-sweeper".into());
    assert_eq!(sweep(&world).await.exit_code(), exit::DENIED);
}

/// A worker that trusts the service's clock sweeps also after an emulator's clock was moved.
#[tokio::test(start_paused = true)]
async fn large_clock_skew_ends_the_worker() {
    let world = World::new();
    for (offset_s, trust_service_clock, expected) in [
        (0, false, exit::OK),
        (120, false, exit::OK),
        (700, false, exit::CLOCK_SKEW),
        (700, true, exit::OK),
        (86_400, true, exit::OK),
    ] {
        let there = std::sync::Arc::clone(&world);
        let clock = move || there.now().plus_s(offset_s);
        let config = changed(|c| c.trust_service_clock = trust_service_clock);
        let sweeper = worker(&world, config, Vec::new(), 1);
        let sweeper = sweeper.with_wall_clock(std::sync::Arc::new(clock));
        assert_eq!(sweeper.once().await.exit_code(), expected, "{offset_s}");
    }
}

/// A mistyped container is found before the state document exists, and later ignored, because the
/// document counts then.
#[tokio::test(start_paused = true)]
async fn a_mistyped_container_is_found_before_the_state_exists() {
    let world = World::new();
    let mut typo = config("one");
    typo.containers[1].container = "lgos".into();
    let checked = async |config| {
        worker(&world, config, Vec::new(), 1)
            .check_new_state()
            .await
    };
    let error = checked(typo.clone()).await.unwrap_err();
    assert_eq!(error.exit_code(), exit::USAGE);
    assert!(error.to_string().contains("`lgos`"), "{error}");
    assert!(!world.has("acct/smalt-sweeper/TimeToLiveBlobs"));
    assert!(checked(config("one")).await.is_ok());
    assert_eq!(sweep(&world).await.exit_code(), exit::OK);
    assert!(checked(typo).await.is_ok());
}

/// A plan matches the following sweep and changes nothing.
#[tokio::test(start_paused = true)]
async fn the_plan_changes_nothing() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    world.put("acct/events/b", &[DUE, ("DeadBlobContainer", "dbc")]);
    world.put("acct/logs/c", &[("TimeToLive", "x")]);
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let plan: Plan = sweeper.plan(Prices::default(), 100, |_| {}).await.unwrap();
    assert_eq!(
        (plan.total.delete, plan.total.r#move, plan.total.attention),
        (1, 1, 1)
    );
    assert_eq!(plan.rows.len(), 3);
    assert_eq!(plan.rows[1].destination, "dbc/b");
    for write in [
        "put_blob",
        "delete_blob",
        "start_copy",
        "acquire_lease",
        "create_container",
    ] {
        assert_eq!(world.calls_of(write), 0, "{write}");
    }
}

/// With a lease that is never released, `once` gives up after its patience with advice; `run`
/// waits, is not ready, and continues when the lease is gone.
#[tokio::test(start_paused = true)]
async fn unreleased_state_lease_is_reported() {
    let world = World::new();
    sweep(&world).await;
    world.put("acct/events/a", &[DUE]);
    let hold = |until_s| {
        let until = world.now().plus_s(until_s);
        let lease = move |blob: &mut crate::fake::Blob| blob.lease = Some(("x".into(), until));
        world.change("acct/smalt-sweeper/TimeToLiveBlobs", lease);
    };
    hold(9_999_999);
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let began = world.now();
    let ended = tokio::time::timeout(Duration::from_secs(600), sweeper.once()).await;
    let finished = ended.expect("it gives up");
    assert_eq!(finished.exit_code(), exit::UNREACHABLE);
    let said = finished.error.unwrap().to_string();
    assert!(
        said.contains("state unlock") && said.contains("TimeToLiveBlobs"),
        "{said}"
    );
    let waited_s = world.now().since(began).as_secs();
    assert!((60..75).contains(&waited_s), "{waited_s}");
    assert!(world.has("acct/events/a"));

    let monitor = sweeper.monitor();
    let watch = async {
        sleep(100).await;
        let ready = monitor.readiness();
        hold(0);
        sleep(1_200).await;
        ready
    };
    let seen = std::cell::Cell::new(None);
    sweeper
        .run_until(async { seen.set(Some(watch.await)) })
        .await;
    let reason = seen.into_inner().unwrap().unwrap_err();
    assert!(reason.contains("state unlock"), "{reason}");
    assert!(!world.has("acct/events/a"));
}

/// Contention for the lease is not a reason to give up.
#[tokio::test(start_paused = true)]
async fn contended_lease_is_waited_for() {
    let world = World::new();
    sweep(&world).await;
    world.put("acct/events/a", &[DUE]);
    let path = "acct/smalt-sweeper/TimeToLiveBlobs";
    let crowd = async {
        for fence in 0..60u64 {
            let mut document = world.state();
            document.fence = 100 + fence;
            let text = smalt_sweeper::state::write(&document).unwrap();
            let until = world.now().plus_s(9_999);
            world.change(path, |blob| {
                blob.content = text.clone().into();
                blob.lease = Some(("x".into(), until));
            });
            sleep(4).await;
        }
        world.change(path, |blob| blob.lease = None);
    };
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let (finished, ()) = tokio::join!(sweeper.once(), crowd);
    assert!(finished.error.is_none(), "{:?}", finished.error);
    assert!(!world.has("acct/events/a"));
}
