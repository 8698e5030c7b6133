//! Blobs and snapshots. Source: "Operations on Blobs".

use std::collections::BTreeMap;

use smalt_protocol::ErrorCode;

use crate::Model;
use crate::conditions::{self, Current};
use crate::containers::{Container, entry};
use crate::expected::{Answer, Expected, Fact, Listed, Refusal, settle};
use crate::lease::{self, Lease, Of};
use crate::vocabulary::{
    BlobId, BlobOperation, Condition, Content, Guard, LeaseAction, LeaseId, Metadata, Moment,
    Snapshots, Tag,
};

/// A blob with its snapshots.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    /// What stands there now.
    pub(crate) state: State,
    /// Lease.
    pub(crate) lease: Lease,
    /// Read-only states of earlier times.
    pub(crate) snapshots: BTreeMap<Moment, State>,
}

/// What a blob or a snapshot holds.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Tag.
    pub(crate) tag: Tag,
    /// Last change, in seconds of the Unix epoch.
    pub(crate) modified_s: u64,
    /// User metadata.
    pub(crate) metadata: Metadata,
    /// Index tags.
    pub(crate) tags: Metadata,
    /// Bytes, put together from blocks; a blob put in one piece has one block without an id.
    pub(crate) blocks: Vec<(Option<Vec<u8>>, Vec<u8>)>,
}

impl State {
    /// All bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let pieces = self.blocks.iter().map(|(_, bytes)| bytes.as_slice());
        pieces.collect::<Vec<_>>().concat()
    }

    fn length(&self) -> u64 {
        self.blocks
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .sum()
    }

    /// What a condition is judged against.
    pub(crate) fn current(&self) -> Current {
        Current {
            tag: self.tag,
            modified_s: self.modified_s,
        }
    }

    /// The answer of a write.
    pub(crate) fn written(&self, status: u16) -> Expected {
        Expected::of_version(status, self.tag, self.modified_s)
    }
}

impl Blob {
    /// Its entries in a listing: snapshots first, oldest first.
    pub(crate) fn listed(&self, name: &str, with_snapshots: bool) -> Vec<Listed> {
        let mut entries = Vec::new();
        if with_snapshots {
            entries.extend(self.snapshots.iter().map(|(moment, state)| {
                entry(name, Some(*moment), Some(state.tag), state.length())
            }));
        }
        let state = &self.state;
        entries.push(entry(name, None, Some(state.tag), state.length()));
        entries
    }

    fn part(&self, snapshot: Option<Moment>) -> Result<&State, Refusal> {
        match snapshot {
            None => Ok(&self.state),
            Some(moment) => {
                let found = self.snapshots.get(&moment);
                found.ok_or(ErrorCode::BlobNotFound.into())
            }
        }
    }
}

/// Judges a write that makes a blob or replaces it.
pub(crate) fn check_create(
    blob: Option<&Blob>,
    guard: Guard,
    unmet: ErrorCode,
    now_s: u64,
) -> Result<(), Refusal> {
    let lease = blob.map_or(Lease::Available, |blob| blob.lease.at(now_s));
    lease::check_guarded(Of::Blob, lease, guard.lease)?;
    let current = blob.map(|blob| blob.state.current());
    match conditions::check_create(guard.condition, current, unmet) {
        // Recorded: who holds the lease replaces the blob all the same.
        Err(Refusal(ErrorCode::BlobAlreadyExists, _)) if guard.lease.is_some() => Ok(()),
        judged => judged,
    }
}

/// Puts a state in place of what stands there. Snapshots and an active lease stay.
pub(crate) fn replace(container: &mut Container, name: &str, state: State, now_s: u64) {
    match container.blobs.get_mut(name) {
        Some(blob) => {
            blob.state = state;
            blob.lease = blob.lease.after_write(now_s);
        }
        None => {
            let blob = Blob {
                state,
                lease: Lease::Available,
                snapshots: BTreeMap::new(),
            };
            container.blobs.insert(name.to_owned(), blob);
        }
    }
    container.uncommitted.remove(name);
}

impl Model {
    pub(crate) fn blob(&mut self, id: &BlobId, operation: &BlobOperation) -> Expected {
        settle(match operation {
            BlobOperation::Put(content, metadata, guard) => {
                self.put(id, *content, metadata, *guard)
            }
            BlobOperation::Get {
                snapshot,
                range,
                guard,
            } => self.read(id, *snapshot, *guard).and_then(|answer| {
                let state = self.state(id, *snapshot)?;
                ranged(answer, &state.bytes(), *range)
            }),
            BlobOperation::Head { snapshot, guard } => {
                self.read(id, *snapshot, *guard).and_then(|answer| {
                    let length = self.state(id, *snapshot)?.length().to_string();
                    Ok(answer.with(Fact::Header("content-length", Some(length))))
                })
            }
            BlobOperation::SetMetadata(metadata, guard) => self.set_metadata(id, metadata, *guard),
            BlobOperation::Delete {
                snapshot: Some(moment),
                snapshots,
                guard,
            } => self.delete_snapshot(id, *moment, *snapshots, *guard),
            BlobOperation::Delete {
                snapshot: None,
                snapshots,
                guard,
            } => self.delete(id, *snapshots, *guard),
            BlobOperation::Snapshot(metadata, guard) => self.snapshot(id, metadata, *guard),
            BlobOperation::Lease(action, condition) => self.lease_blob(id, *action, *condition),
            BlobOperation::PutBlock(block, content, lease) => {
                self.put_block(id, block, *content, *lease)
            }
            BlobOperation::PutBlockList(list, metadata, guard) => {
                self.put_block_list(id, list, metadata, *guard)
            }
            BlobOperation::GetBlockList { lease } => self.get_block_list(id, *lease),
            BlobOperation::Copy {
                source,
                snapshot,
                source_condition,
                metadata,
                guard,
            } => self.copy(id, source, *snapshot, *source_condition, metadata, *guard),
            BlobOperation::SetTags(tags, lease) => self.set_tags(id, tags, *lease),
            BlobOperation::GetTags(lease) => self.get_tags(id, *lease),
        })
    }

    fn base(&mut self, id: &BlobId) -> Result<&mut Blob, Refusal> {
        let found = self.find(&id.container)?.blobs.get_mut(&id.blob);
        found.ok_or(ErrorCode::BlobNotFound.into())
    }

    fn state(&mut self, id: &BlobId, snapshot: Option<Moment>) -> Result<&State, Refusal> {
        self.base(id)?.part(snapshot)
    }

    fn put(&mut self, id: &BlobId, content: Content, metadata: &Metadata, guard: Guard) -> Answer {
        let now_s = self.now_s;
        let tag = self.numbers.tag();
        let container = self.find(&id.container)?;
        let there = container.blobs.get(&id.blob);
        check_create(there, guard, ErrorCode::ConditionNotMet, now_s)?;
        let state = State {
            tag,
            modified_s: now_s,
            metadata: metadata.clone(),
            tags: Metadata::new(),
            blocks: vec![(None, content.bytes())],
        };
        let answer = state.written(201);
        replace(container, &id.blob, state, now_s);
        Ok(answer)
    }

    /// What Get and Head have in common.
    fn read(&mut self, id: &BlobId, snapshot: Option<Moment>, guard: Guard) -> Answer {
        conditions::check_readable(guard.condition)?;
        let now_s = self.now_s;
        let blob = self.base(id)?;
        let state = blob.part(snapshot)?;
        if snapshot.is_none() {
            lease::check_use(Of::Blob, blob.lease.at(now_s), guard.lease)?;
        }
        conditions::check_read(guard.condition, state.current())?;
        let mut answer = state
            .written(200)
            .with(Fact::Metadata(state.metadata.clone()));
        if snapshot.is_none() {
            answer.facts.extend(blob.lease.facts(now_s));
        }
        let count = Some(state.tags.len().to_string()).filter(|_| !state.tags.is_empty());
        Ok(answer.with(Fact::Header("x-ms-tag-count", count)))
    }

    fn set_metadata(&mut self, id: &BlobId, metadata: &Metadata, guard: Guard) -> Answer {
        let now_s = self.now_s;
        let tag = self.numbers.tag();
        let blob = self.base(id)?;
        check_write(blob, guard, now_s)?;
        blob.state.metadata.clone_from(metadata);
        blob.state.tag = tag;
        blob.state.modified_s = now_s;
        blob.lease = blob.lease.after_write(now_s);
        Ok(blob.state.written(200))
    }

    fn delete(&mut self, id: &BlobId, snapshots: Option<Snapshots>, guard: Guard) -> Answer {
        let now_s = self.now_s;
        let container = self.find(&id.container)?;
        let Some(blob) = container.blobs.get_mut(&id.blob) else {
            // Since 2013-08-15 a blob of uncommitted blocks only can be deleted.
            let open = container.uncommitted.remove(&id.blob);
            return match open.is_some_and(|open| open.is_kept(now_s)) {
                true => Ok(Expected::ok(202)),
                false => Err(ErrorCode::BlobNotFound.into()),
            };
        };
        check_write(blob, guard, now_s)?;
        match snapshots {
            None if !blob.snapshots.is_empty() => return Err(ErrorCode::SnapshotsPresent.into()),
            Some(Snapshots::Only) => blob.snapshots.clear(),
            _ => {
                container.blobs.remove(&id.blob);
                container.uncommitted.remove(&id.blob);
            }
        }
        Ok(Expected::ok(202))
    }

    fn delete_snapshot(
        &mut self,
        id: &BlobId,
        moment: Moment,
        snapshots: Option<Snapshots>,
        guard: Guard,
    ) -> Answer {
        if snapshots.is_some() {
            return Err(ErrorCode::InvalidQueryParameterValue.into());
        }
        let blob = self.base(id)?;
        let current = blob.part(Some(moment))?.current();
        conditions::check_write(guard.condition, current, ErrorCode::ConditionNotMet)?;
        blob.snapshots.remove(&moment);
        Ok(Expected::ok(202))
    }

    fn snapshot(&mut self, id: &BlobId, metadata: &Metadata, guard: Guard) -> Answer {
        let now_s = self.now_s;
        let (tag, moment) = (self.numbers.tag(), self.numbers.moment());
        let blob = self.base(id)?;
        lease::check_use(Of::Blob, blob.lease.at(now_s), guard.lease)?;
        let current = blob.state.current();
        conditions::check_write(guard.condition, current, ErrorCode::ConditionNotMet)?;
        let mut taken = blob.state.clone();
        if !metadata.is_empty() {
            taken.metadata.clone_from(metadata);
            taken.tag = tag;
            taken.modified_s = now_s;
        }
        let answer = taken.written(201).with(Fact::Snapshot(moment));
        blob.snapshots.insert(moment, taken);
        Ok(answer)
    }

    fn lease_blob(
        &mut self,
        id: &BlobId,
        action: LeaseAction,
        condition: Option<Condition>,
    ) -> Answer {
        let (now_s, mut numbers) = (self.now_s, self.numbers.clone());
        let blob = self.base(id)?;
        let current = blob.state.current();
        conditions::check_write(condition, current, ErrorCode::ConditionNotMet)?;
        let (leased, answer) = lease::act(blob.lease, action, now_s, &mut numbers)?;
        blob.lease = leased;
        self.numbers = numbers;
        Ok(answer
            .with(Fact::Tag(current.tag))
            .with(Fact::LastModified(current.modified_s)))
    }

    fn copy(
        &mut self,
        id: &BlobId,
        source: &BlobId,
        snapshot: Option<Moment>,
        source_condition: Option<Condition>,
        metadata: &Metadata,
        guard: Guard,
    ) -> Answer {
        let now_s = self.now_s;
        let tag = self.numbers.tag();
        let there = self.find(&id.container)?.blobs.get(&id.blob).cloned();
        check_create(
            there.as_ref(),
            guard,
            ErrorCode::TargetConditionNotMet,
            now_s,
        )?;
        let lease = there.map_or(Lease::Available, |blob| blob.lease.at(now_s));
        if matches!(lease, Lease::Leased { term: Some(_), .. }) {
            return Err(ErrorCode::InfiniteLeaseDurationRequired.into());
        }
        let found = self.state(source, snapshot).cloned();
        // The source is read by its signature: its refusal becomes the copy's.
        let found = found.map_err(|Refusal(code, _)| unverified(code.status()))?;
        let unmet = ErrorCode::SourceConditionNotMet;
        conditions::check_source(source_condition, found.current(), unmet)?;
        let copied = State {
            tag,
            modified_s: now_s,
            metadata: if metadata.is_empty() {
                found.metadata.clone()
            } else {
                metadata.clone()
            },
            tags: Metadata::new(),
            blocks: found.blocks,
        };
        let answer = copied.written(202);
        replace(self.find(&id.container)?, &id.blob, copied, now_s);
        let done = Some("success".to_owned());
        Ok(answer.with(Fact::Header("x-ms-copy-status", done)))
    }

    fn set_tags(&mut self, id: &BlobId, tags: &Metadata, given: Option<LeaseId>) -> Answer {
        let now_s = self.now_s;
        let blob = self.base(id)?;
        lease::check_guarded(Of::Blob, blob.lease.at(now_s), given)?;
        // Neither tag nor time of the blob changes.
        blob.state.tags.clone_from(tags);
        Ok(Expected::ok(204))
    }

    fn get_tags(&mut self, id: &BlobId, given: Option<LeaseId>) -> Answer {
        let now_s = self.now_s;
        let blob = self.base(id)?;
        lease::check_use(Of::Blob, blob.lease.at(now_s), given)?;
        Ok(Expected::ok(200).with(Fact::Tags(blob.state.tags.clone())))
    }
}

fn unverified(status: u16) -> Refusal {
    Refusal(ErrorCode::CannotVerifyCopySource, Some(status))
}

fn check_write(blob: &Blob, guard: Guard, now_s: u64) -> Result<(), Refusal> {
    lease::check_guarded(Of::Blob, blob.lease.at(now_s), guard.lease)?;
    let current = blob.state.current();
    conditions::check_write(guard.condition, current, ErrorCode::ConditionNotMet)
}

/// Get Blob, whole or a part: what lies behind the end is left out, a start behind it is refused.
fn ranged(mut answer: Expected, bytes: &[u8], range: Option<(u64, Option<u64>)>) -> Answer {
    let length = bytes.len() as u64;
    let Some((first, last)) = range else {
        return Ok(answer.with(Fact::Body(bytes.to_vec())));
    };
    if first >= length {
        return Err(ErrorCode::InvalidRange.into());
    }
    let last = last.map_or(length - 1, |last| last.min(length - 1));
    let part = bytes
        .iter()
        .skip(usize::try_from(first).unwrap_or(usize::MAX))
        .take(usize::try_from(last + 1 - first).unwrap_or(usize::MAX));
    answer.status = 206;
    let shown = format!("bytes {first}-{last}/{length}");
    Ok(answer
        .with(Fact::Header("content-range", Some(shown)))
        .with(Fact::Body(part.copied().collect())))
}
