//! A crash and an owner's write at every single call. The model checks each write as it happens
//! (SS1 to SS6, SS8). The simulation does the same over random worlds.

use std::sync::Arc;

use crate::fake::{Act, Fault, World};
use crate::support::*;

const MOVED: (&str, &str) = ("DeadBlobContainer", "dbc");

fn world() -> Arc<World> {
    let world = World::new();
    world.put("acct/events/deleted", &[DUE]);
    world.put("acct/events/moved", &[DUE, MOVED]);
    world.put("acct/events/untagged", &[]);
    world.put("acct/logs/also_moved", &[DUE, MOVED]);
    world.put("acct/logs/later", &[("TimeToLive", FUTURE)]);
    world
}

/// One world, and a death before or after each call in turn.
#[test]
fn death_at_each_call_in_turn_is_safe() {
    for nth in 1..60 {
        for act in [Act::DieBefore, Act::DieAfter] {
            paused(async {
                let world = world();
                let death = vec![Fault {
                    operation: None,
                    nth,
                    act,
                }];
                until_death(&world, config("dead"), death, 1).await;
                // SL1: two clean cycles remove everything that is due.
                sleep(400).await;
                once(&world, Vec::new()).await;
                once(&world, Vec::new()).await;
                assert_eq!(world.names("acct", "events"), ["untagged"]);
                assert_eq!(world.names("acct", "logs"), ["later"]);
                let state = world.state();
                assert!(state.containers.iter().all(|c| c.pages.is_empty()), "SS7");
            });
        }
    }
}

/// SS2: a version that was written just before any call is never removed.
#[test]
fn an_overwrite_before_each_call_is_never_lost() {
    for metadata in [&[DUE][..], &[DUE, MOVED]] {
        for nth in 1..25 {
            paused(async {
                let world = World::new();
                world.put("acct/events/a", metadata);
                let overwrite = Act::Meanwhile(Arc::new(|world: &World| {
                    world.put("acct/events/a", &[("TimeToLive", FUTURE)]);
                }));
                let faults = vec![Fault {
                    operation: None,
                    nth,
                    act: overwrite,
                }];
                let calls = {
                    once(&world, faults).await;
                    world.lock().calls.len()
                };
                assert!(calls < nth || world.has("acct/events/a"), "call {nth}");
            });
        }
    }
}
