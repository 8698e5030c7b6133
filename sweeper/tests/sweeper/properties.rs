//! The safety properties over random worlds: two workers, faults and owners between any two steps,
//! and a crash at every single call. The model checks each write as it happens (SS1 to SS6, SS8).

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use smalt_sleeve::port::ErrorKind;

use crate::fake::{Act, Fault, World, fault};
use crate::support::*;

/// The metadata of a blob in a random world.
#[derive(Clone, Debug)]
struct Seed {
    container: &'static str,
    due: u8,
    dead: u8,
}

#[derive(Clone, Debug)]
enum Trouble {
    Refuse(u8),
    Lose,
    Stall(u16),
    Owner(u8, u8),
}

fn metadata(due: u8, dead: u8) -> Vec<(&'static str, &'static str)> {
    let mut metadata = Vec::new();
    metadata.extend(match due {
        0 => None,
        1 => Some(("TimeToLive", FUTURE)),
        2 => Some(("TimeToLive", SOON)),
        3 => Some(("timetolive", "nonsense")),
        _ => Some(DUE),
    });
    metadata.extend(match dead {
        0 => Some(("DeadBlobContainer", "dbc")),
        1 => Some(("DeadBlobContainer", "dbc/old/")),
        2 => Some(("DeadBlobContainer", "dbc/one")),
        3 => Some(("deadblobcontainer", "UPPER")),
        _ => None,
    });
    metadata
}

fn place(at: usize, seed: &Seed) -> String {
    format!("acct/{}/b{at:02}", seed.container)
}

fn world_of(seeds: &[Seed]) -> Arc<World> {
    let world = World::new();
    for (at, seed) in seeds.iter().enumerate() {
        world.put(&place(at, seed), &metadata(seed.due, seed.dead));
    }
    world
}

fn act(trouble: &Trouble, seeds: &[Seed]) -> Act {
    match trouble {
        Trouble::Refuse(kind) => Act::Refuse(match kind % 4 {
            0 => ErrorKind::Busy,
            1 => ErrorKind::Unreachable,
            2 => ErrorKind::OutcomeUnknown,
            _ => ErrorKind::Denied,
        }),
        Trouble::Lose => Act::LoseAnswer,
        Trouble::Stall(seconds) => Act::Stall(Duration::from_secs(u64::from(*seconds))),
        Trouble::Owner(which, what) => {
            let at = usize::from(*which) % seeds.len();
            let (place, what) = (place(at, &seeds[at]), *what);
            Act::Meanwhile(Arc::new(move |world: &World| match what % 6 {
                0 => world.remove(&place),
                1 => world.put(&place, &[DUE]),
                2 => world.put(&place, &[DUE, ("DeadBlobContainer", "dbc")]),
                3 => world.put(&place, &[]),
                4 => world.set_metadata(&place, &[("TimeToLive", FUTURE)]),
                _ => world.put("archive/dbc/old/b01", &[("Owner", "somebody")]),
            }))
        }
    }
}

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let seed = (prop_oneof![Just("events"), Just("logs")], 0u8..8, 0u8..9);
    let seed = seed.prop_map(|(container, due, dead)| Seed {
        container,
        due,
        dead,
    });
    proptest::collection::vec(seed, 1..14)
}

fn troubles() -> impl Strategy<Value = Vec<(usize, Trouble)>> {
    let trouble = prop_oneof![
        any::<u8>().prop_map(Trouble::Refuse),
        Just(Trouble::Lose),
        (1u16..400).prop_map(Trouble::Stall),
        any::<(u8, u8)>().prop_map(|(which, what)| Trouble::Owner(which, what)),
    ];
    proptest::collection::vec((1usize..60, trouble), 0..8)
}

fn faults(troubles: &[(usize, Trouble)], seeds: &[Seed]) -> Vec<Fault> {
    let fault = |(nth, trouble): &(usize, Trouble)| Fault {
        operation: None,
        nth: *nth,
        act: act(trouble, seeds),
    };
    troubles.iter().map(fault).collect()
}

/// SL1: after the faults have stopped, two clean cycles remove everything that is due.
async fn assert_swept(world: &Arc<World>) {
    sleep(400).await;
    once(world, Vec::new()).await;
    once(world, Vec::new()).await;
    for container in ["events", "logs"] {
        for name in world.names("acct", container) {
            let blob = world.get(&format!("acct/{container}/{name}")).unwrap();
            let find = |key: &str| smalt_sleeve::port::metadata_value(&blob.metadata, key);
            let due = matches!(find("TimeToLive"), Some(PAST | SOON));
            // Blobs with an occupied or invalid destination stay and are reported.
            let clear = matches!(find("DeadBlobContainer"), None | Some("dbc"));
            assert!(
                !due || !clear,
                "{container}/{name} was not removed: {:#?}",
                world.lock().calls
            );
        }
    }
    let state = world.state();
    assert!(state.containers.iter().all(|c| c.pages.is_empty()), "SS7");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96, max_shrink_iters: 400, ..ProptestConfig::default()
    })]

    /// SS1 to SS8 and SL1 hold with two workers, with a lease or ETags alone, under any faults.
    #[test]
    fn two_workers_with_faults_are_safe(
        seeds in seeds(), one in troubles(), two in troubles(), noise: (u64, u64),
        etag_only: bool, copy_time_s in prop_oneof![Just(0u64), 1u64..200],
    ) {
        paused(async {
            let world = world_of(&seeds);
            world.lock().copy_time = Duration::from_secs(copy_time_s);
            let config = if etag_only { etag_config } else { config };
            let one = worker(&world, config("one"), faults(&one, &seeds), noise.0);
            let two = worker(&world, config("two"), faults(&two, &seeds), noise.1);
            tokio::join!(one.once(), two.once());
            world.assert_safe();
            assert_swept(&world).await;
        });
    }

    /// A worker may die at any call, before or after its effect, under any faults of the other.
    #[test]
    fn death_at_any_call_is_safe(
        seeds in seeds(), nth in 1usize..80, after: bool, other in troubles(), noise: (u64, u64),
    ) {
        paused(async {
            let world = world_of(&seeds);
            let act = if after { Act::DieAfter } else { Act::DieBefore };
            let death = vec![Fault { operation: None, nth, act }];
            let other = worker(&world, config("other"), faults(&other, &seeds), noise.1);
            tokio::join!(until_death(&world, config("dead"), death, noise.0), other.once());
            world.assert_safe();
            assert_swept(&world).await;
        });
    }
}

/// The same without randomness: one world, a death at each call in turn.
#[test]
fn death_at_each_call_in_turn_is_safe() {
    let seed = |container, due, dead| Seed {
        container,
        due,
        dead,
    };
    let seeds = [
        seed("events", 7, 9),
        seed("events", 7, 0),
        seed("events", 0, 9),
        seed("logs", 7, 0),
        seed("logs", 1, 9),
    ];
    for nth in 1..60 {
        for act in [Act::DieBefore, Act::DieAfter] {
            paused(async {
                let world = world_of(&seeds);
                let death = vec![Fault {
                    operation: None,
                    nth,
                    act,
                }];
                until_death(&world, config("dead"), death, 1).await;
                assert_swept(&world).await;
            });
        }
    }
}

/// SS2: a version that was written just before any call is never removed.
#[test]
fn an_overwrite_before_each_call_is_never_lost() {
    for metadata in [&[DUE][..], &[DUE, ("DeadBlobContainer", "dbc")]] {
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

#[test]
fn a_run_repeats_exactly() {
    let run = || {
        paused(async {
            let world = World::new();
            for at in 0..20 {
                world.put(
                    &format!("acct/events/{at:02}"),
                    &[DUE, ("DeadBlobContainer", "dbc")],
                );
            }
            let busy = vec![fault("delete_blob", 3, Act::Refuse(ErrorKind::Busy))];
            once(&world, busy).await;
            world.lock().calls.clone()
        })
    };
    assert_eq!(run(), run());
}
