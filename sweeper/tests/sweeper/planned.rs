//! Tests of a deep plan: it predicts the next sweep and reports its own cost.

use smalt_sleeve::port::DeleteSnapshots;
use smalt_sweeper::{Collision, DeadConfig, Outcome, Plan, Prices, SweeperConfig};

use crate::fake::World;
use crate::support::*;

const DBC: (&str, &str) = ("DeadBlobContainer", "dbc");

/// A world with snapshots, occupied destinations, and blobs without obstacles.
fn world() -> std::sync::Arc<World> {
    let world = World::new();
    for name in ["a", "b", "with-snapshots"] {
        world.put(&format!("acct/events/{name}"), &[DUE]);
    }
    for name in ["moves", "taken", "moves-with-snapshots"] {
        world.put(&format!("acct/events/{name}"), &[DUE, DBC]);
    }
    for name in ["with-snapshots", "moves-with-snapshots"] {
        world.change(&format!("acct/events/{name}"), |b| b.snapshots = true);
    }
    // The same name in two containers, with the same destination.
    for container in ["events", "logs"] {
        world.put(&format!("acct/{container}/twin"), &[DUE, DBC]);
    }
    world.put("acct/events/stays", &[("TimeToLive", FUTURE)]);
    world.put("archive/dbc/taken", &[]);
    world
}

fn with(on_collision: Collision, snapshots: DeleteSnapshots) -> SweeperConfig {
    let base = config("one");
    SweeperConfig {
        dead: DeadConfig {
            on_collision,
            ..base.dead.clone()
        },
        snapshots,
        ..base
    }
}

fn kept(plan: &Plan, outcome: Outcome) -> u64 {
    let kept = plan.containers.values().map(|c| c.kept.get(&outcome));
    kept.flatten().sum()
}

#[tokio::test(start_paused = true)]
async fn deep_plan_predicts_the_next_sweep() {
    use {Collision::*, DeleteSnapshots::*};
    for (collision, snapshots, looks) in [
        // Three listings for deletes; a HEAD for each move, and a listing unless its destination is
        // occupied.
        (Fail, Refuse, 3 + 5 + 4),
        (Fail, Include, 5),
        (Suffix, Refuse, 3 + 5 + 5),
    ] {
        let world = world();
        let sweeper = worker(&world, with(collision, snapshots), Vec::new(), 1);
        let shallow = sweeper.plan(Prices::default(), 99, |_| {}).await.unwrap();
        assert_eq!([shallow.total.delete, shallow.total.r#move], [3, 5]);
        assert_eq!((shallow.looks, world.calls_of("has_snapshots")), (0, 0));
        let heads = world.calls_of("blob_properties");
        let plan = sweeper
            .plan_deep(Prices::default(), 99, |_| {})
            .await
            .unwrap();
        let made = world.calls_of("blob_properties") - heads + world.calls_of("has_snapshots");
        assert_eq!((plan.looks, made as u64), (looks, looks), "{collision:?}");
        assert_eq!((plan.total.pages, plan.deep), (shallow.total.pages, true));
        let finished = sweeper.once().await.report;
        for (planned, outcome) in [
            (plan.total.delete, Outcome::Deleted),
            (plan.total.r#move, Outcome::Moved),
            (
                kept(&plan, Outcome::SnapshotsPresent),
                Outcome::SnapshotsPresent,
            ),
            (kept(&plan, Outcome::Collision), Outcome::Collision),
            (kept(&plan, Outcome::NotDue), Outcome::NotDue),
        ] {
            let done = finished.count(outcome);
            assert_eq!(planned, done, "{collision:?} {snapshots:?} {outcome:?}");
        }
        let twins = u64::from(collision == Fail);
        assert_eq!(
            kept(&plan, Outcome::Collision),
            2 * twins,
            "taken, and a twin"
        );
        let stay = [Outcome::SnapshotsPresent, Outcome::Collision].map(|o| kept(&plan, o));
        assert_eq!(plan.total.attention, stay.iter().sum::<u64>());
    }
}
