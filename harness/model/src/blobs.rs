//! Blobs and snapshots: their content, and the rules that all three blob types share. Source:
//! "Operations on Blobs".

use smalt_protocol::{ErrorCode, Timestamp};

use crate::conditions::{self, Current};
use crate::content::Bytes;
use crate::expected::{Answer, Expected, Fact, Refusal};
use crate::lease::{self, Lease, Of};
use crate::state::{Blob, Model, State};
use crate::tiers::Tiered;
use crate::vocabulary::{
    BlobId, Condition, ContentHeaders, Guard, Labels, LeaseAction, LeaseId, Metadata, Moment,
};

impl State {
    /// Returns the values that conditions are evaluated against.
    pub(crate) fn current(&self) -> Current<'_> {
        Current {
            tag: self.tag,
            modified_s: self.modified_s,
            tags: Some(&self.tags),
        }
    }

    /// Returns the answer of a write.
    pub(crate) fn written(&self, status: u16) -> Expected {
        Expected::of_version(status, self.tag, self.modified_s)
    }

    /// Returns the facts of a read besides tag and time.
    pub(crate) fn shown(&self) -> Vec<Fact> {
        let count = Some(self.tags.len().to_string()).filter(|_| !self.tags.is_empty());
        let text = |value: Option<&str>| value.map(str::to_owned);
        let mut facts = vec![
            Fact::Metadata(self.metadata()),
            Fact::Header("x-ms-tag-count", count),
            Fact::Header("x-ms-expiry-time", self.expires_s.map(date)),
            Fact::Header("content-type", text(Some(self.headers.content_type))),
            Fact::Header("cache-control", text(self.headers.cache_control)),
            Fact::Header("content-disposition", text(self.headers.disposition)),
            Fact::Header("x-ms-copy-status", text(self.copied.then_some("success"))),
        ];
        facts.extend(self.content.shown());
        facts
    }
}

fn date(unix_s: u64) -> String {
    Timestamp::from_unix_s(unix_s).rfc1123()
}

impl Model {
    pub(crate) fn base(&mut self, id: &BlobId) -> Result<&mut Blob, Refusal> {
        let found = self.find(&id.container)?.blobs.get_mut(&id.blob);
        found.ok_or(ErrorCode::BlobNotFound.into())
    }

    pub(crate) fn state(&self, id: &BlobId, part: Option<Moment>) -> Result<&State, Refusal> {
        let container = self.containers.get(&id.container);
        let container = container.ok_or(ErrorCode::ContainerNotFound)?;
        let found = match part {
            None => container.blobs.get(&id.blob).map(|blob| &blob.state),
            Some(moment) => container.living(&id.blob, moment),
        };
        found.ok_or(ErrorCode::BlobNotFound.into())
    }

    pub(crate) fn create(
        &mut self,
        id: &BlobId,
        content: Bytes,
        labels: &Labels,
        guard: Guard,
    ) -> Answer {
        self.check_place(id)?;
        let there = self.find(&id.container)?.blobs.get(&id.blob).cloned();
        self.check_create(there.as_ref(), guard, ErrorCode::ConditionNotMet)?;
        Ok(self.make(id, content, labels).written(201))
    }

    /// Checks a write that creates or replaces a blob.
    pub(crate) fn check_create(
        &self,
        there: Option<&Blob>,
        guard: Guard,
        unmet: ErrorCode,
    ) -> Result<(), Refusal> {
        match self.check_guard(there, guard, unmet) {
            // Recorded: the holder of the lease may replace the blob nevertheless.
            Err(Refusal(ErrorCode::BlobAlreadyExists, _)) if guard.lease.is_some() => Ok(()),
            judged => judged,
        }
    }

    /// Checks lease and condition of a name that need not be in use.
    pub(crate) fn check_guard(
        &self,
        there: Option<&Blob>,
        guard: Guard,
        unmet: ErrorCode,
    ) -> Result<(), Refusal> {
        let lease = there.map_or(Lease::Available, |blob| blob.lease.at(self.now_s));
        lease::check_guarded(Of::Blob, lease, guard.lease)?;
        let current = there.map(|blob| blob.state.current());
        conditions::check_create(guard.condition, current, unmet)
    }

    /// Creates a blob or replaces the existing one. Snapshots and an active lease stay.
    pub(crate) fn make(&mut self, id: &BlobId, content: Bytes, labels: &Labels) -> State {
        let state = self.new_state(content, labels);
        self.replace(id, state.clone());
        state
    }

    pub(crate) fn new_state(&mut self, content: Bytes, labels: &Labels) -> State {
        State {
            tag: self.numbers.tag(),
            is_directory: false,
            expires_s: None,
            modified_s: self.now_s,
            metadata: labels.metadata.clone(),
            tags: labels.tags.clone(),
            headers: ContentHeaders::default(),
            copied: false,
            tier: Tiered::default(),
            content,
        }
    }

    /// Replaces the blob's state, or creates the blob.
    pub(crate) fn replace(&mut self, id: &BlobId, state: State) {
        self.set_aside(id, &state);
        self.make_parents(id);
        let now_s = self.now_s;
        if let Some(container) = self.containers.get_mut(&id.container) {
            let there = container.blobs.get(&id.blob);
            let lease = there.map_or(Lease::Available, |blob| blob.lease.after_write(now_s));
            container
                .blobs
                .insert(id.blob.clone(), Blob { state, lease });
            container.uncommitted.remove(&id.blob);
        }
    }

    /// Does what all reads have in common; returns the answer so far and the state that is read.
    pub(crate) fn read(
        &self,
        id: &BlobId,
        snapshot: Option<Moment>,
        guard: Guard,
    ) -> Result<(Expected, &State), Refusal> {
        conditions::check_readable(guard.condition)?;
        let state = self.state(id, snapshot)?;
        let blob = self.containers[&id.container].blobs.get(&id.blob);
        let lease = blob.map_or(Lease::Available, |blob| blob.lease.at(self.now_s));
        let mut answer = state.written(200);
        if snapshot.is_none() {
            lease::check_use(Of::Blob, lease, guard.lease)?;
            answer.facts.extend(lease.facts(self.now_s));
        }
        conditions::check_read(guard.condition, state.current())?;
        Ok((answer, state))
    }

    /// Get Blob, whole or a range: an end beyond the blob is cut off, a start beyond it is an
    /// error.
    pub(crate) fn ranged(
        &self,
        id: &BlobId,
        snapshot: Option<Moment>,
        mut answer: Expected,
        range: Option<(u64, Option<u64>)>,
    ) -> Answer {
        let mut bytes = self.state(id, snapshot)?.content.bytes();
        let length = bytes.len() as u64;
        if let Some((first, last)) = range {
            if first >= length {
                return Err(ErrorCode::InvalidRange.into());
            }
            let last = last.map_or(length - 1, |last| last.min(length - 1));
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
            bytes = bytes[at(first)..at(last + 1)].to_vec();
            answer.status = 206;
            let shown = format!("bytes {first}-{last}/{length}");
            answer = answer.with(Fact::Header("content-range", Some(shown)));
        }
        Ok(answer.with(Fact::Body(bytes)))
    }

    /// Writes to an existing blob, under its lease and condition. The facts that `apply` returns
    /// are added to the answer, after tag and time.
    pub(crate) fn change(
        &mut self,
        id: &BlobId,
        guard: Guard,
        status: u16,
        apply: impl FnOnce(&mut State) -> Result<Vec<Fact>, Refusal>,
    ) -> Answer {
        let (now_s, tag) = (self.now_s, self.numbers.tag());
        let blob = self.base(id)?;
        check_write(blob, guard, now_s)?;
        let facts = apply(&mut blob.state)?;
        blob.state.tag = tag;
        blob.state.modified_s = now_s;
        blob.lease = blob.lease.after_write(now_s);
        Ok(blob.state.written(status).with_all(facts))
    }

    pub(crate) fn snapshot(&mut self, id: &BlobId, metadata: &Metadata, guard: Guard) -> Answer {
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
        self.find(&id.container)?
            .keep(&id.blob, moment, taken, None);
        Ok(answer)
    }

    pub(crate) fn lease_blob(
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
        let facts = blob.state.written(0).facts;
        blob.lease = leased;
        self.numbers = numbers;
        Ok(answer.with_all(facts))
    }

    pub(crate) fn set_tags(
        &mut self,
        id: &BlobId,
        tags: &Metadata,
        given: Option<LeaseId>,
    ) -> Answer {
        let now_s = self.now_s;
        let blob = self.base(id)?;
        lease::check_guarded(Of::Blob, blob.lease.at(now_s), given)?;
        // Tag and time of the blob do not change.
        blob.state.tags.clone_from(tags);
        Ok(Expected::ok(204))
    }

    pub(crate) fn get_tags(&mut self, id: &BlobId, given: Option<LeaseId>) -> Answer {
        let now_s = self.now_s;
        let blob = self.base(id)?;
        lease::check_use(Of::Blob, blob.lease.at(now_s), given)?;
        Ok(Expected::ok(200).with(Fact::Tags(blob.state.tags.clone())))
    }
}

/// Checks a write to an existing blob.
pub(crate) fn check_write(blob: &Blob, guard: Guard, now_s: u64) -> Result<(), Refusal> {
    lease::check_guarded(Of::Blob, blob.lease.at(now_s), guard.lease)?;
    let current = blob.state.current();
    conditions::check_write(guard.condition, current, ErrorCode::ConditionNotMet)
}
