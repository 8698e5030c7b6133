//! Tests of long runs: edits of the state document, statuses of containers, cycles that exceed the
//! interval, and the load of a small fleet.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use smalt_sweeper::state::{Container, Document, Status};
use smalt_sweeper::{Outcome, Sweeper, SweeperConfig};
use smalt_worker::face::Face;

use crate::fake::{Act, World, fault};
use crate::support::*;

/// Edits the state document as an operator with a text editor does.
fn edit(world: &World, change: impl FnOnce(&mut Document)) {
    let mut document = world.state();
    change(&mut document);
    world.put_state(&smalt_sweeper::state::write(&document).unwrap());
}

/// S18: a running worker sweeps a container that is added to the document, and leaves one alone
/// while it is off.
#[tokio::test(start_paused = true)]
async fn s18_the_document_is_edited_while_a_worker_runs() {
    let world = World::new();
    sweep(&world).await;
    let sweeper = worker(&world, by_document("one"), Vec::new(), 1);
    let operator = async {
        sleep(60).await;
        for place in ["events/a", "logs/a", "extra/a"] {
            world.put(&format!("acct/{place}"), &[DUE]);
        }
        edit(&world, |document| {
            document.containers[1].status = Status::Off;
            document.containers.push(Container {
                name: "extra".into(),
                credential: Some("default".into()),
                ..Container::default()
            });
        });
        sleep(1_200).await;
        assert!(!world.has("acct/events/a") && !world.has("acct/extra/a"));
        assert!(world.has("acct/logs/a"));
        edit(&world, |document| {
            document.containers[1].status = Status::Init;
        });
        sleep(600).await;
        assert!(!world.has("acct/logs/a"));
    };
    let finished = sweeper.run_until(operator).await;
    assert!(finished.error.is_none(), "{:?}", finished.error);
    assert_eq!(finished.report.count(Outcome::Deleted), 3);
    world.assert_safe();
}

/// S22: a container whose only page is handed out has another status than one whose last page of
/// several is.
#[tokio::test(start_paused = true)]
async fn s22_the_only_page_and_the_last_page_have_their_own_status() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    world.put_many("acct/logs/", 5, &[DUE]);
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let note = |nth| {
        let seen = Arc::clone(&seen);
        let look = move |world: &World| {
            let statuses = world.state().containers.into_iter().map(|c| c.status);
            seen.lock().unwrap().push(statuses.collect::<Vec<_>>());
        };
        fault("delete_blob", nth, Act::Meanwhile(Arc::new(look)))
    };
    once(&world, vec![note(1), note(2), note(5)]).await;
    let expected = [
        [Status::FirstAndLast, Status::Init],
        [Status::FirstAndLast, Status::Current],
        [Status::FirstAndLast, Status::Last],
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// S30: a cycle that is still running at a mark is finished first; the next one begins at the mark
/// after that.
#[tokio::test(start_paused = true)]
async fn s30_a_cycle_that_exceeds_its_interval_is_finished_first() {
    let world = World::new();
    world.put("acct/events/slow", &[DUE]);
    let stall = Act::Stall(Duration::from_secs(900));
    let stall = vec![fault("delete_blob", 1, stall)];
    let sweeper = worker(&world, config("one"), stall, 1);
    let monitor = sweeper.monitor();
    let phase = || monitor.status()["phase"].clone();
    let operator = async {
        sleep(660).await;
        assert_eq!(phase()["state"], "working");
        world.put("acct/events/new", &[DUE]);
        sleep(300).await;
        assert_eq!(phase()["state"], "idle");
        assert_eq!(phase()["until"], "2026-11-21T10:20:00Z");
        assert!(!world.has("acct/events/slow") && world.has("acct/events/new"));
        sleep(300).await;
        assert!(!world.has("acct/events/new"));
    };
    let finished = sweeper.run_until(operator).await;
    let cycles: Vec<u64> = finished.report.cycles.iter().map(|c| c.cycle).collect();
    assert_eq!(cycles, [0, 1]);
    world.assert_safe();
}

/// S33: two workers that remove three hundred blobs every ten minutes are idle for 99 % of an
/// hour.
#[tokio::test(start_paused = true)]
async fn s33_hundreds_of_blobs_leave_two_workers_idle() {
    let world = World::new();
    let small = |name| SweeperConfig {
        page_size: 100,
        ..config(name)
    };
    let workers = ["one", "two"].map(|name| worker(&world, small(name), Vec::new(), 1));
    let monitors = workers.each_ref().map(Sweeper::monitor);
    let mut busy = 0;
    let hour = async {
        for second in 0..36_000 {
            if second % 6_000 == 0 {
                world.put_many("acct/events/", 300, &[DUE]);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            let is_idle = |m: &&_| Face::status(*m)["phase"]["state"] == "idle";
            busy += 2 - monitors.iter().filter(is_idle).count();
        }
    };
    let (first, second, ()) = tokio::join!(
        workers[0].run_until(sleep(3_600)),
        workers[1].run_until(sleep(3_600)),
        hour
    );
    let deleted = [first, second].map(|finished| finished.report.count(Outcome::Deleted));
    assert_eq!(deleted.iter().sum::<u64>(), 1_800);
    println!("busy: {:.2} %", busy as f64 / 720.0);
    assert!((1..720).contains(&busy), "{busy} of 72,000 samples");
    world.assert_safe();
}
