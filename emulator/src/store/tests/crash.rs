//! The machine crashes at any sync; unsynced data is lost or torn. proof.md: C1-C3, C5-C7.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::fault_disk::Faults;
use super::{config, dump, get_payload, luck, pattern, put_payload};
use crate::disk::Disk;
use crate::store::{PayloadId, Store, StoreError, location, release};

#[derive(Clone, Debug)]
enum Step {
    Put(usize),
    Release(u8),
    Maintain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => prop_oneof![Just(9_000_usize), 16_385..80_000_usize, Just(300_000)]
            .prop_map(Step::Put),
        3 => any::<u8>().prop_map(Step::Release),
        2 => (1..4_usize).prop_map(Step::Maintain),
    ]
}

/// The acknowledged commits, and a request that was not answered.
#[derive(Default)]
struct Model {
    live: BTreeMap<PayloadId, (u64, usize)>,
    /// A payload whose release was not acknowledged, so that it may exist or not.
    uncertain: Option<PayloadId>,
}

async fn run(store: &Store, steps: &[Step], disk: &Faults) -> Model {
    let mut model = Model::default();
    for (seed, step) in steps.iter().enumerate() {
        if disk.is_dead() {
            break;
        }
        match *step {
            Step::Put(len) => {
                let bytes = pattern(seed as u64, len);
                if let Ok(id) = put_payload(store, &bytes).await {
                    assert!(model.live.insert(id, (seed as u64, len)).is_none());
                }
            }
            Step::Release(which) => {
                let place = usize::from(which) % model.live.len().max(1);
                let Some(id) = model.live.keys().nth(place).copied() else {
                    continue;
                };
                let released = store.commit(move |tx, _| Ok(release(tx, id)?)).await;
                match released {
                    Ok(()) => drop(model.live.remove(&id)),
                    Err(_) => model.uncertain = Some(id),
                }
            }
            // Fails when the machine crashes during it.
            Step::Maintain(budget) => drop(store.maintain(budget)),
        }
    }
    model
}

fn check(store: &Store, model: &Model) {
    // C1: every acknowledged payload exists, with its bytes.
    for (id, (seed, len)) in &model.live {
        match get_payload(store, *id) {
            Ok(bytes) => assert_eq!(bytes, pattern(*seed, *len)),
            Err(error) => assert_eq!(model.uncertain, Some(*id), "{error}"),
        }
    }
    // C3: all other recorded payloads are readable as well.
    for (key, _) in dump(store) {
        if key[0] == 0x01 {
            let id = PayloadId(u64::from_be_bytes(key[1..].try_into().unwrap()));
            get_payload(store, id).unwrap();
        }
    }
}

async fn die_and_recover(steps: Vec<Step>, dies_at: u64, seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    disk.die_at_sync(dies_at);
    let on = |disk: &Arc<Faults>| {
        let disk = Arc::clone(disk) as Arc<dyn Disk>;
        Store::open_on(config(dir.path()), disk)
    };
    let model = match on(&disk) {
        Ok(store) => {
            let model = run(&store, &steps, &disk).await;
            let _ = store.close();
            model
        }
        Err(_) => Model::default(),
    };
    let image = Arc::new(disk.after_crash(luck(seed)));
    let store = on(&image).unwrap();
    check(&store, &model);
    // C5: unreferenced data is removed, except for at most one segment.
    while store.maintain(5).unwrap().more {}
    let live: u64 = dump(&store)
        .iter()
        .filter(|(key, _)| key[0] == 0x03)
        .map(|(_, live)| u64::from_be_bytes(live.as_slice().try_into().unwrap()))
        .sum();
    let taken = store.stats().segment_bytes;
    assert!(
        taken <= 2 * live + 2 * super::SEGMENT_BYTES,
        "{taken} for {live}"
    );
    check(&store, &model);
    let settled = dump(&store);
    store.close().unwrap();
    // C7: a second recovery changes nothing.
    let store = on(&image).unwrap();
    assert_eq!(dump(&store), settled);
    let id = put_payload(&store, &pattern(1, 50_000)).await.unwrap();
    assert!(model.live.keys().all(|known| *known != id));
    let payload = store.read(|view| location(view, id)).unwrap();
    assert_eq!(
        payload.reader(0..50_000).read_all().unwrap(),
        pattern(1, 50_000)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn crash_loses_no_acknowledged_commit(
        steps in vec(step(), 1..25),
        dies_at in 1_u64..70,
        luck in 1_u64..,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(die_and_recover(steps, dies_at, luck));
    }
}

/// C3: after a crash any byte of any segment may flip; reads return the right bytes or an error.
#[tokio::test]
async fn flipped_byte_after_a_crash_is_never_returned() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = super::durable_on(dir.path(), &disk);
    let steps: Vec<Step> = (0..8).map(|n| Step::Put(20_000 + n * 40_000)).collect();
    let model = run(&store, &steps, &disk).await;
    let image = Arc::new(disk.after_crash(|| true));
    drop(store);
    let store = super::durable_on(dir.path(), &image);
    let mut flips = pattern(7, 8 * 400);
    let mut seen = 0;
    while let Some(at) = flips.len().checked_sub(8) {
        let flip = u64::from_le_bytes(flips.split_off(at).try_into().unwrap()) as usize;
        let files = image.files(".seg");
        let (path, len) = &files[flip % files.len()];
        image.damage(path, flip / 7 % len);
        for (id, (seed, len)) in &model.live {
            match get_payload(&store, *id) {
                Ok(bytes) => assert_eq!(bytes, pattern(*seed, *len)),
                Err(StoreError::Corrupt(_)) => seen += 1,
                Err(error) => panic!("{error}"),
            }
        }
        image.damage(path, flip / 7 % len);
    }
    assert!(seen > 300, "{seen} flips lay in a payload");
    check(&store, &model);
}

/// Crashes at every sync of one workload, with all unsynced data lost, and with all of it kept.
#[tokio::test]
async fn workload_survives_a_crash_at_every_sync() {
    let steps: Vec<Step> = (0..6)
        .flat_map(|n| {
            [
                Step::Put(40_000 + n * 9_000),
                Step::Put(1_000),
                Step::Release(n as u8),
                Step::Maintain(2),
            ]
        })
        .collect();
    let disk = Faults::default();
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_on(config(dir.path()), Arc::new(disk.clone())).unwrap();
    run(&store, &steps, &disk).await;
    store.close().unwrap();
    let syncs = disk.syncs();
    assert!(syncs > 20);
    for dies_at in 1..=syncs {
        for luck in [0x5EED, 0xFEED] {
            die_and_recover(steps.clone(), dies_at, luck + dies_at).await;
        }
    }
}

/// C1: compaction makes moved payloads durable before it deletes their old segment.
#[tokio::test]
async fn crash_after_compaction_loses_no_moved_payload() {
    let puts = (0..15).map(|_| Step::Put(30_000));
    // One of every five adjacent payloads stays, so that each segment is compacted.
    let releases = (0..15).filter(|n| n % 5 != 0).enumerate();
    let releases = releases.map(|(gone, n)| Step::Release(n - gone as u8));
    let steps: Vec<Step> = puts.chain(releases).collect();
    let (mut moved, mut more) = (0, true);
    let mut turns = 0;
    while more {
        turns += 1;
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faults::default());
        let store = super::durable_on(dir.path(), &disk);
        let model = run(&store, &steps, &disk).await;
        for _ in 0..turns {
            let tidied = store.maintain(1).unwrap();
            (moved, more) = (moved + tidied.payloads_moved, tidied.more);
        }
        let image = Arc::new(disk.after_crash(|| false));
        drop(store);
        check(&super::durable_on(dir.path(), &image), &model);
    }
    assert!(moved > 0, "nothing was worth moving");
}
