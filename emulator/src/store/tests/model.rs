//! Every mode of the store against one model: random commits in groups, payloads, saved states,
//! resets, closes and losses of power, while maintenance runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use smalt_protocol::{StorageError, Timestamp};
use tempfile::TempDir;

use super::fault_disk::Faults;
use super::{Entries, Map, clock, get_payload, key, luck, memory, pattern, scan, scan_map, stage};
use crate::disk::Disk;
use crate::store::{
    OpenError, PayloadId, Staged, Store, StoreConfig, Transaction, View, adopt, disagreements,
    release, retain,
};

/// So small that the log turns every few steps.
const SEGMENT_BYTES: u64 = 64 * 1024;
const ROOM_BYTES: u64 = 1 << 40;
/// Lengths of payloads: within a record, and in extents.
const LENGTHS: [usize; 3] = [100, 17_000, 40_000];
const KEYS: ([u8; 1], [u8; 1]) = ([0x20], [0x21]);
/// Most entries that a job reads.
const SEEN: usize = 8;

#[derive(Clone, Copy, Debug)]
enum Change {
    Adopt,
    Retain,
    Release,
}

#[derive(Clone, Debug)]
struct Job {
    writes: Vec<(u8, Option<u16>)>,
    /// A payload's name, and what happens to it.
    payload: Option<(u8, Change)>,
    refuses: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Commits(Vec<Job>),
    Scan(u8, u8, usize),
    Save(u8),
    Load(u8),
    Delete(u8),
    Reset,
    Reopen,
    /// A seed of what the disk keeps, and the sync at which it dies again while the store opens.
    LosePower(u64, Option<u64>),
}

fn job() -> impl Strategy<Value = Job> {
    let write = (any::<u8>(), option::of(0_u16..17_000));
    let change = prop_oneof![
        3 => Just(Change::Adopt),
        1 => Just(Change::Retain),
        3 => Just(Change::Release),
    ];
    let payload = option::weighted(0.7, (0_u8..6, change));
    let parts = (vec(write, 1..4), payload, proptest::bool::weighted(0.1));
    parts.prop_map(|(writes, payload, refuses)| Job {
        writes,
        payload,
        refuses,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0_u8..2;
    prop_oneof![
        16 => vec(job(), 1..5).prop_map(Step::Commits),
        3 => (any::<u8>(), any::<u8>(), 0..20_usize)
            .prop_map(|(from, to, limit)| Step::Scan(from, to, limit)),
        2 => name.clone().prop_map(Step::Save),
        1 => name.clone().prop_map(Step::Load),
        1 => name.prop_map(Step::Delete),
        1 => Just(Step::Reset),
        1 => Just(Step::Reopen),
        1 => (1..u64::MAX, option::of(0_u64..12)).prop_map(|(seed, at)| Step::LosePower(seed, at)),
    ]
}

/// A payload's content and number of references.
#[derive(Clone, Copy, Debug)]
struct Known {
    seed: u64,
    len: usize,
    count: u8,
}

#[derive(Clone, Debug, Default)]
struct State {
    keys: Map,
    payloads: BTreeMap<u8, Known>,
}

/// The keys of a state with the lengths of their values, and the references of its payloads.
type Outline = (Vec<(Vec<u8>, usize)>, Vec<(u8, u8)>);

impl State {
    fn outline(&self) -> Outline {
        let keys = self
            .keys
            .iter()
            .map(|(key, value)| (key.clone(), value.len()));
        let payloads = self
            .payloads
            .iter()
            .map(|(name, known)| (*name, known.count));
        (keys.collect(), payloads.collect())
    }

    /// Applies a job. Returns what it reads, or `None` when it refuses.
    fn apply(&mut self, job: &Job, new: Known) -> Option<Entries> {
        let mut next = self.clone();
        for (n, len) in &job.writes {
            match len {
                Some(len) => next.keys.insert(key(*n), value(*n, *len)),
                None => next.keys.remove(&key(*n)),
            };
        }
        if let Some((name, change)) = job.payload {
            let known = next.payloads.get_mut(&name);
            match (change, known) {
                (Change::Adopt, None) => drop(next.payloads.insert(name, new)),
                (Change::Retain, Some(known)) => known.count += 1,
                (Change::Release, Some(Known { count: 1, .. })) => {
                    next.payloads.remove(&name);
                }
                (Change::Release, Some(known)) => known.count -= 1,
                _ => {}
            }
        }
        let seen = scan_map(&next.keys, &KEYS.0, &KEYS.1, SEEN);
        if job.refuses {
            return None;
        }
        *self = next;
        Some(seen)
    }
}

fn value(n: u8, len: u16) -> Vec<u8> {
    vec![n; usize::from(len)]
}

/// The record of a payload: its id and its number of references.
fn record(name: u8) -> Vec<u8> {
    vec![0x22, name]
}

fn recorded(view: &dyn View, name: u8) -> Option<(PayloadId, u8)> {
    let value = view.get(&record(name)).unwrap()?;
    let (id, count) = value.split_first_chunk()?;
    Some((PayloadId(u64::from_be_bytes(*id)), count[0]))
}

async fn commit(
    store: &Store,
    job: Job,
    staged: Option<Staged>,
) -> Result<(Timestamp, Entries), StorageError> {
    let run = move |tx: &mut Transaction<'_>, stamp: &crate::store::Stamp| {
        for (n, len) in &job.writes {
            match len {
                Some(len) => tx.put(key(*n), value(*n, *len)),
                None => tx.delete(key(*n)),
            }
        }
        if let Some((name, change)) = job.payload {
            let record = record(name);
            let entry = |id: PayloadId, count: u8| [&id.0.to_be_bytes()[..], &[count]].concat();
            match (change, recorded(tx, name), staged) {
                (Change::Adopt, None, Some(staged)) => {
                    let id = adopt(tx, staged)?;
                    tx.put(record, entry(id, 1));
                }
                (Change::Retain, Some((id, count)), _) => {
                    retain(tx, id)?;
                    tx.put(record, entry(id, count + 1));
                }
                (Change::Release, Some((id, count)), _) => {
                    release(tx, id)?;
                    match count {
                        1 => tx.delete(record),
                        _ => tx.put(record, entry(id, count - 1)),
                    }
                }
                _ => {}
            }
        }
        if job.refuses {
            return Err(StorageError::internal("refused"));
        }
        Ok((stamp.tick, scan(tx, &KEYS.0, &KEYS.1, SEEN)))
    };
    store.commit(run).await
}

/// A store in one of its modes, and where it is.
struct Tested {
    store: Store,
    /// `None` in memory.
    files: Option<(TempDir, Arc<Faults>)>,
    is_fast: bool,
    /// The tick of the last commit to the current state.
    last: Timestamp,
}

impl Tested {
    fn all() -> [Self; 3] {
        let files = || Some((tempfile::tempdir().unwrap(), Arc::new(Faults::default())));
        [(None, false), (files(), false), (files(), true)].map(|(files, is_fast)| Tested {
            store: files
                .as_ref()
                .map_or_else(memory, |(dir, disk)| open(dir.path(), disk, is_fast)),
            files,
            is_fast,
            last: Timestamp::from_ticks(0),
        })
    }

    /// Runs commits at the same time, which take effect in this order.
    async fn commit(&mut self, jobs: &[Job], expected: &[(Known, Option<Entries>)]) {
        let mut commits = Vec::new();
        for (job, (new, _)) in jobs.iter().zip(expected) {
            let staged = match job.payload {
                Some((_, Change::Adopt)) => Some(
                    stage(&self.store, &pattern(new.seed, new.len))
                        .await
                        .unwrap(),
                ),
                _ => None,
            };
            commits.push(commit(&self.store, job.clone(), staged));
        }
        for (ran, (_, expected)) in join_all(commits).await.into_iter().zip(expected) {
            match (ran, expected) {
                (Ok((tick, seen)), Some(expected)) => {
                    assert!(tick > self.last, "{tick:?} after {:?}", self.last);
                    assert_eq!(&seen, expected);
                    self.last = tick;
                }
                (Err(_), None) => {}
                (ran, expected) => panic!("{ran:?} in place of {expected:?}"),
            }
        }
    }

    /// Closes the store and opens it again.
    fn reopen(&mut self) {
        if let Some((dir, disk)) = &self.files {
            self.store.close().unwrap();
            self.store = open(dir.path(), disk, self.is_fast);
        }
    }

    /// Opens the store after one or two losses of power.
    fn lose_power(&mut self, seed: u64, again: Option<u64>) {
        let Some((dir, disk)) = &mut self.files else {
            return;
        };
        let mut left = Arc::new(disk.after_crash(luck(seed)));
        disk.die_at_sync(0);
        assert!(self.store.close().is_err());
        if let Some(sync) = again {
            left.die_at_sync(sync);
            if let Ok(store) = try_open(dir.path(), &left, self.is_fast) {
                // Closing may fail, and dropping the store would close it later.
                let _ = store.close();
            }
            left = Arc::new(left.after_crash(luck(!seed)));
        }
        *disk = left;
        self.store = open(dir.path(), disk, self.is_fast);
    }

    fn check(&self, state: &State) {
        assert_eq!(self.store.unexplained(), None);
        self.store.read(|view| {
            assert_eq!(
                scan(view, &KEYS.0, &KEYS.1, usize::MAX),
                scan_map(&state.keys, &KEYS.0, &KEYS.1, usize::MAX)
            );
            assert_eq!(disagreements(view).unwrap(), [""; 0]);
        });
        for name in 0..6 {
            let found = self.store.read(|view| recorded(view, name));
            let known = state.payloads.get(&name);
            assert_eq!(
                found.map(|(_, count)| count),
                known.map(|known| known.count)
            );
            if let (Some((id, _)), Some(known)) = (found, known) {
                let bytes = get_payload(&self.store, id).unwrap();
                assert!(bytes == pattern(known.seed, known.len), "payload {name}");
            }
        }
    }

    /// Checks what a loss of power leaves: everything, or in the mode fast one of the past states.
    fn check_rest(&self, state: &State, past: &[Outline]) {
        if !self.is_fast {
            return self.check(state);
        }
        let left = self.store.read(|view| {
            let keys = scan(view, &KEYS.0, &KEYS.1, usize::MAX).into_iter();
            let payloads = (0..6).filter_map(|name| Some((name, recorded(view, name)?.1)));
            let lengths = keys.map(|(key, value)| (key, value.len()));
            (lengths.collect(), payloads.collect())
        });
        assert!(past.contains(&left), "no state had {left:?}");
    }

    /// Nothing stays on disk for payloads that no state refers to.
    async fn release_all(&self, state: &State) {
        for (name, known) in &state.payloads {
            let job = Job {
                writes: Vec::new(),
                payload: Some((*name, Change::Release)),
                refuses: false,
            };
            for _ in 0..known.count {
                commit(&self.store, job.clone(), None).await.unwrap();
            }
        }
        for saved in self.store.snapshots().list() {
            self.store.snapshots().delete(&saved.name).unwrap();
        }
        while self.store.maintain(3).unwrap().more {}
        assert_eq!(self.store.stats().segment_bytes, 0);
    }
}

fn open(dir: &Path, disk: &Arc<Faults>, is_fast: bool) -> Store {
    try_open(dir, disk, is_fast).unwrap()
}

fn try_open(dir: &Path, disk: &Arc<Faults>, is_fast: bool) -> Result<Store, OpenError> {
    disk.show_room(ROOM_BYTES, ROOM_BYTES);
    let mut config = match is_fast {
        true => StoreConfig::fast(dir, clock()),
        false => StoreConfig::durable(dir, clock()),
    };
    config.segment_bytes = SEGMENT_BYTES;
    Store::open_on(config, Arc::clone(disk) as Arc<dyn Disk>)
}

/// The stores, and the states that they should have.
struct World {
    stores: [Tested; 3],
    state: State,
    saved: BTreeMap<u8, State>,
    /// All states since the last one that was loaded or reset to.
    past: Vec<Outline>,
    /// Number of payloads so far; the content of a payload depends on its number.
    made: u64,
}

impl World {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Commits(jobs) => self.commit(&jobs).await,
            Step::Scan(from, to, limit) => {
                let (from, to) = (key(from), key(to));
                let expected = scan_map(&self.state.keys, &from, &to, limit);
                for tested in &self.stores {
                    let seen = tested.store.read(|view| scan(view, &from, &to, limit));
                    assert_eq!(seen, expected);
                }
            }
            Step::Save(name) => {
                for tested in &self.stores {
                    let snapshots = tested.store.snapshots();
                    snapshots.save(&name.to_string(), "").unwrap();
                }
                self.saved.insert(name, self.state.clone());
            }
            Step::Load(name) => self.load(name),
            Step::Delete(name) => {
                let is_known = self.saved.remove(&name).is_some();
                for tested in &self.stores {
                    let deleted = tested.store.snapshots().delete(&name.to_string());
                    assert_eq!(deleted.is_ok(), is_known);
                }
            }
            Step::Reset => self.reset(),
            Step::Reopen => self.reopen(),
            Step::LosePower(seed, again) => {
                for tested in &mut self.stores {
                    tested.lose_power(seed, again);
                    tested.check_rest(&self.state, &self.past);
                }
                // The fast mode may have lost the last commits and payloads, but no saved state.
                match self.saved.keys().next() {
                    Some(name) => self.load(*name),
                    None => self.reset(),
                }
                self.reopen();
            }
        }
    }

    async fn commit(&mut self, jobs: &[Job]) {
        let expected: Vec<_> = jobs
            .iter()
            .map(|job| {
                self.made += 1;
                let new = Known {
                    seed: self.made,
                    len: LENGTHS[self.made as usize % LENGTHS.len()],
                    count: 1,
                };
                let expected = self.state.apply(job, new);
                self.past.push(self.state.outline());
                (new, expected)
            })
            .collect();
        for tested in &mut self.stores {
            tested.commit(jobs, &expected).await;
        }
    }

    fn reopen(&mut self) {
        for tested in &mut self.stores {
            tested.reopen();
        }
    }

    fn load(&mut self, name: u8) {
        for tested in &mut self.stores {
            let loaded = tested.store.snapshots().load(&name.to_string());
            assert_eq!(loaded.is_ok(), self.saved.contains_key(&name));
            if loaded.is_ok() {
                tested.last = Timestamp::from_ticks(0);
            }
        }
        if let Some(saved) = self.saved.get(&name) {
            self.state = saved.clone();
            self.past = vec![self.state.outline()];
        }
    }

    fn reset(&mut self) {
        for tested in &mut self.stores {
            tested.store.reset().unwrap();
            tested.last = Timestamp::from_ticks(0);
        }
        self.state = State::default();
        self.past = vec![self.state.outline()];
    }
}

async fn compare(steps: Vec<Step>) {
    let mut world = World {
        stores: Tested::all(),
        state: State::default(),
        saved: BTreeMap::new(),
        past: vec![State::default().outline()],
        made: 0,
    };
    for step in steps {
        let is_alone = matches!(step, Step::Reopen | Step::LosePower(..));
        let tidying = (world.stores.iter().filter(|_| !is_alone))
            .map(|tested| {
                let store = tested.store.clone();
                std::thread::spawn(move || store.maintain(4).map(drop))
            })
            .collect::<Vec<_>>();
        world.step(step).await;
        for tidied in tidying {
            tidied.join().unwrap().unwrap();
        }
        for tested in &world.stores {
            tested.check(&world.state);
        }
    }
    for tested in &world.stores {
        tested.release_all(&world.state).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn all_modes_agree_with_the_model(steps in vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare(steps));
    }
}
