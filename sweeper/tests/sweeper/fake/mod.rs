//! A small model of the storage service: blobs with ETags, leases, snapshots and copies in memory,
//! time from tokio's (paused) clock, faults at any call, and a check of every write of a worker
//! against the safety properties.

mod effects;
mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobKind, CopyStatus, ErrorKind, Metadata, metadata_value};
use smalt_sweeper::ttl::{self, TtlFormat};
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use storage::Account;

/// Account, container, name.
pub(crate) type Key = (String, String, String);

#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub(crate) content: Bytes,
    pub(crate) etag: u64,
    pub(crate) modified: Timestamp,
    pub(crate) metadata: Metadata,
    pub(crate) lease: Option<(String, Timestamp)>,
    pub(crate) kind: BlobKind,
    pub(crate) copy: Option<Copy>,
    pub(crate) snapshots: bool,
    pub(crate) immutable: bool,
    pub(crate) tier: Option<String>,
    pub(crate) tags: Metadata,
    pub(crate) of_worker: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) id: String,
    pub(crate) status: CopyStatus,
    pub(crate) source: Key,
    pub(crate) content: Bytes,
    pub(crate) ends: Timestamp,
}

/// The effect of a fault on a call.
#[derive(Clone)]
pub(crate) enum Act {
    /// The call fails without effect.
    Refuse(ErrorKind),
    /// The call is executed, but its response is lost.
    LoseAnswer,
    /// The call never returns and has no effect. The worker counts as dead.
    DieBefore,
    /// The call never returns, but is executed.
    DieAfter,
    /// The call takes this long before it is executed.
    Stall(Duration),
    /// Another client acts just before the call.
    Meanwhile(Arc<dyn Fn(&World) + Send + Sync>),
}

/// A fault of one worker: at its `nth` call (from 1) of `operation`, or of any operation.
#[derive(Clone)]
pub(crate) struct Fault {
    pub(crate) operation: Option<&'static str>,
    pub(crate) nth: usize,
    pub(crate) act: Act,
}

pub(crate) fn fault(operation: &'static str, nth: usize, act: Act) -> Fault {
    Fault {
        operation: Some(operation),
        nth,
        act,
    }
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) blobs: BTreeMap<Key, Blob>,
    pub(crate) containers: BTreeSet<(String, String)>,
    pub(crate) violations: Vec<String>,
    pub(crate) calls: Vec<String>,
    pub(crate) denied: BTreeSet<String>,
    pub(crate) copy_time: Duration,
    pub(crate) failing_copies: u32,
    /// Complete copies that their owner overwrote: place, version of the source, and the number of
    /// calls at that time.
    written_over: Vec<(Key, String, usize)>,
    pub(crate) allow_overwrite: bool,
    pub(crate) grace: Duration,
    /// Whether the checks apply to an operator's command (`tag` or `undo`) instead of a sweep.
    pub(crate) operator: bool,
    /// Pages ever listed in the state, with their owners: `owner page`.
    pub(crate) claimed: BTreeSet<String>,
    /// Current and maximum number of concurrent calls.
    pub(crate) under_way: (usize, usize),
    ticks: u64,
}

pub(crate) struct World {
    inner: Mutex<Inner>,
    began: Instant,
    pub(crate) died: Notify,
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse_iso("2026-11-21T10:00:00Z").unwrap()
}

impl World {
    pub(crate) fn new() -> Arc<World> {
        let world = World {
            inner: Mutex::default(),
            began: Instant::now(),
            died: Notify::new(),
        };
        for container in ["events", "logs"] {
            world
                .lock()
                .containers
                .insert(("acct".into(), container.into()));
        }
        Arc::new(world)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub(crate) fn now(&self) -> Timestamp {
        start().plus(self.began.elapsed())
    }

    /// Puts `count` blobs whose names end in numbers of equal length, from 0.
    pub(crate) fn put_many(&self, place: &str, count: usize, metadata: &[(&str, &str)]) {
        let width = (count - 1).to_string().len();
        for at in 0..count {
            self.put(&format!("{place}{at:0width$}"), metadata);
        }
    }

    /// Writes a new version of a blob as its owner.
    pub(crate) fn put(&self, place: &str, metadata: &[(&str, &str)]) {
        let content = format!("content of {place} {}", self.lock().ticks);
        self.put_bytes(place, content.into_bytes(), metadata);
    }

    pub(crate) fn put_bytes(&self, place: &str, content: Vec<u8>, metadata: &[(&str, &str)]) {
        let now = self.now();
        let mut inner = self.lock();
        let key = key(place);
        inner.spoil_copies(&key);
        inner.note_written_over(&key);
        let etag = inner.tick();
        let blob = Blob {
            content: Bytes::from(content),
            etag,
            modified: now.floor_s(),
            metadata: metadata
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
            lease: None,
            kind: BlobKind::Block,
            copy: None,
            snapshots: false,
            immutable: false,
            tier: None,
            tags: Metadata::new(),
            of_worker: false,
        };
        inner.containers.insert((key.0.clone(), key.1.clone()));
        inner.blobs.insert(key, blob);
    }

    /// Sets metadata as the owner, if the blob exists.
    pub(crate) fn set_metadata(&self, place: &str, metadata: &[(&str, &str)]) {
        let mut inner = self.lock();
        let key = key(place);
        inner.spoil_copies(&key);
        let etag = inner.tick();
        if let Some(blob) = inner.blobs.get_mut(&key) {
            blob.etag = etag;
            blob.metadata = metadata
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect();
        }
    }

    pub(crate) fn change(&self, place: &str, change: impl Fn(&mut Blob)) {
        change(
            self.lock()
                .blobs
                .get_mut(&key(place))
                .expect("the blob is there"),
        );
    }

    pub(crate) fn get(&self, place: &str) -> Option<Blob> {
        self.lock().blobs.get(&key(place)).cloned()
    }

    pub(crate) fn has(&self, place: &str) -> bool {
        self.get(place).is_some()
    }

    pub(crate) fn names(&self, account: &str, container: &str) -> Vec<String> {
        let inner = self.lock();
        let here = |key: &&Key| key.0 == account && key.1 == container;
        inner
            .blobs
            .keys()
            .filter(here)
            .map(|key| key.2.clone())
            .collect()
    }

    pub(crate) fn state(&self) -> smalt_sweeper::state::Document {
        let blob = self
            .get("acct/smalt-sweeper/TimeToLiveBlobs")
            .expect("the state is there");
        smalt_sweeper::state::read(std::str::from_utf8(&blob.content).unwrap()).unwrap()
    }

    pub(crate) fn put_state(&self, text: &str) {
        self.put_bytes(
            "acct/smalt-sweeper/TimeToLiveBlobs",
            text.as_bytes().to_vec(),
            &[],
        );
    }

    pub(crate) fn calls_of(&self, operation: &str) -> usize {
        let inner = self.lock();
        inner
            .calls
            .iter()
            .filter(|c| c.split(' ').next() == Some(operation))
            .count()
    }

    #[track_caller]
    pub(crate) fn assert_safe(&self) {
        let inner = self.lock();
        assert!(
            inner.violations.is_empty(),
            "{:#?}\n{:#?}",
            inner.violations,
            inner.calls
        );
    }
}

/// Parses `account/container/name`.
pub(crate) fn key(place: &str) -> Key {
    let mut parts = place.splitn(3, '/');
    let mut next = || parts.next().expect("account/container/name").to_owned();
    (next(), next(), next())
}

impl Inner {
    pub(crate) fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// Fails the pending copies of a source that changes.
    fn spoil_copies(&mut self, source: &Key) {
        for blob in self.blobs.values_mut() {
            if let Some(copy) = &mut blob.copy
                && copy.status == CopyStatus::Pending
                && copy.source == *source
            {
                copy.status = CopyStatus::Failed;
            }
        }
    }

    fn note_written_over(&mut self, key: &Key) {
        let whole = |b: &&Blob| (b.copy.as_ref()).is_some_and(|c| c.status == CopyStatus::Success);
        let copy = self.blobs.get(key).filter(whole);
        let source = copy.and_then(|copy| metadata_value(&copy.metadata, "SourceETag"));
        if let Some(source) = source.map(str::to_owned) {
            let calls = self.calls.len();
            self.written_over.push((key.clone(), source, calls));
        }
    }

    /// Returns whether a copy of this version was checked before its owner overwrote it, but not
    /// since: no worker could know of the change.
    fn was_verified(&self, etag: &str) -> bool {
        let over = self
            .written_over
            .iter()
            .filter(|(_, source, _)| source == etag);
        over.into_iter().any(|(place, _, at)| {
            let look = format!("blob_properties {}/{}/{} ", place.0, place.1, place.2);
            let looked = |calls: &[String]| calls.iter().any(|call| call.starts_with(&look));
            looked(&self.calls[..*at]) && !looked(&self.calls[*at..])
        })
    }

    /// Ends the copies whose time has come.
    fn settle(&mut self, now: Timestamp) {
        for blob in self.blobs.values_mut() {
            if let Some(copy) = &mut blob.copy
                && copy.status == CopyStatus::Pending
                && copy.ends <= now
            {
                copy.status = CopyStatus::Success;
                blob.content = copy.content.clone();
            }
        }
    }

    /// SS1, SS3, SS4: checks a delete by a worker.
    fn judge_delete(&mut self, key: &Key, by: &str, conditional: bool, now: Timestamp) {
        let Some(blob) = self.blobs.get(key) else {
            return;
        };
        let mut wrong = Vec::new();
        if self.operator {
            let same = |(other, b): (&Key, &Blob)| {
                other != key && other.0 != key.0 && b.content == blob.content
            };
            if !conditional || !self.blobs.iter().any(same) {
                let name = &key.2;
                self.violations
                    .push(format!("U1: deleted the only content: {name}"));
            }
            return;
        }
        if !self.claimed.contains(by) {
            wrong.push("D1: deleted under a claim that was never written");
        }
        if !conditional {
            wrong.push("SS2: deleted without a condition");
        }
        let due = metadata_value(&blob.metadata, "TimeToLive")
            .and_then(|text| ttl::parse(text, &[TtlFormat::Rfc3339]))
            .map(|ttl| ttl.due(blob.modified));
        match due {
            None => wrong.push("SS5: deleted an untagged blob"),
            Some(due) if due.plus(self.grace) > now => wrong.push("SS1: deleted before it was due"),
            Some(_) => {}
        }
        if metadata_value(&blob.metadata, "DeadBlobContainer").is_some() {
            let etag = format!("0x{:X}", blob.etag);
            let copied = |(other, copy): (&Key, &Blob)| {
                other != key
                    && copy.content == blob.content
                    && metadata_value(&copy.metadata, "SourceETag") == Some(&etag)
                    && copy
                        .copy
                        .as_ref()
                        .is_some_and(|c| c.status == CopyStatus::Success)
            };
            if !self.blobs.iter().any(copied) && !self.was_verified(&etag) {
                wrong.push("SS4: deleted without a verified copy");
            }
        }
        let place = key.2.clone();
        self.violations
            .extend(wrong.iter().map(|w| format!("{w}: {place}")));
    }

    /// SS5, SS6, SS8: checks a write by a worker.
    fn judge_write(&mut self, key: &Key, content: Option<&[u8]>, conditional: bool) {
        let place = format!("{}/{}", key.1, key.2);
        if self.operator && content.is_none() {
            if !conditional {
                self.violations
                    .push(format!("U2: written without a condition: {place}"));
            }
            return;
        }
        if ["events", "logs"].contains(&key.1.as_str()) {
            self.violations
                .push(format!("SS5: wrote to a source: {place}"));
        }
        let before = self.blobs.get(key);
        let Some(content) = content else {
            let foreign = before.is_some_and(|b| !b.of_worker);
            if foreign && !self.allow_overwrite {
                self.violations
                    .push(format!("SS8: overwrote a foreign blob: {place}"));
            }
            return;
        };
        let read =
            |bytes: &[u8]| smalt_sweeper::state::read(std::str::from_utf8(bytes).unwrap()).unwrap();
        let after = read(content);
        let pages = after.containers.iter().flat_map(|c| &c.pages);
        let claims = pages.map(|page| format!("{} {}", page.owner, page.id));
        self.claimed.extend(claims);
        let linear = before.is_none_or(|b| read(&b.content).fence + 1 == after.fence);
        if !linear || !conditional {
            self.violations
                .push(format!("SS6: the state jumped to fence {}", after.fence));
        }
    }
}
