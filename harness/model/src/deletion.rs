//! Delete Blob, Undelete Blob and soft delete. Sources: "Delete Blob", "Undelete Blob", "Soft
//! delete for blobs".

use smalt_protocol::ErrorCode;

use crate::blobs::check_write;
use crate::conditions;
use crate::expected::{Answer, Expected, Fact, Refusal};
use crate::lease::Lease;
use crate::state::{Blob, Container, Kept, Model, State, Taken};
use crate::vocabulary::{BlobId, Guard, Moment, Snapshots};

const DAY_S: u64 = 24 * 60 * 60;

impl Kept {
    /// Returns whether it is a snapshot that is not deleted.
    pub(crate) fn is_living(&self) -> bool {
        self.until_s.is_none()
    }

    /// Returns whether it is deleted and can still be undeleted.
    pub(crate) fn is_dormant(&self, now_s: u64) -> bool {
        self.until_s.is_some_and(|until_s| now_s < until_s)
    }
}

impl Container {
    /// Stores a snapshot, deleted or not.
    pub(crate) fn keep(&mut self, name: &str, at: Moment, state: State, until_s: Option<u64>) {
        let taken = self.snapshots.entry(name.to_owned()).or_default();
        taken.insert(at, Kept { state, until_s });
    }

    /// Returns the snapshot of this time, unless it is deleted.
    pub(crate) fn living(&self, name: &str, moment: Moment) -> Option<&State> {
        let kept = self.snapshots.get(name)?.get(&moment)?;
        kept.is_living().then_some(&kept.state)
    }

    fn taken(&mut self, name: &str) -> &mut Taken {
        self.snapshots.entry(name.to_owned()).or_default()
    }
}

/// Deletes snapshots: permanently, or softly until `until_s`.
fn discard(taken: &mut Taken, until_s: Option<u64>, which: impl Fn(&Moment) -> bool) {
    let doomed = |moment: &Moment, kept: &Kept| kept.is_living() && which(moment);
    match until_s {
        None => taken.retain(|moment, kept| !doomed(moment, kept)),
        Some(_) => taken
            .iter_mut()
            .filter(|(moment, kept)| doomed(moment, kept))
            .for_each(|(_, kept)| kept.until_s = until_s),
    }
}

impl Model {
    /// Returns until when something deleted now can be undeleted.
    fn until_s(&self) -> Option<u64> {
        self.retention_days.map(|days| self.now_s + days * DAY_S)
    }

    /// With soft delete, the replaced state becomes a deleted snapshot, and so does a deleted blob
    /// of the same name. If that was of another type, everything deleted under the name is lost
    /// instead.
    pub(crate) fn set_aside(&mut self, id: &BlobId, new: &State) {
        let (now_s, until_s) = (self.now_s, self.until_s());
        let moment = self.numbers.moment();
        let Some(container) = self.containers.get_mut(&id.container) else {
            return;
        };
        let there = container.blobs.get(&id.blob).map(|blob| blob.state.clone());
        let waiting = container.dormant.remove(&id.blob);
        match (there, waiting) {
            (Some(old), _) if until_s.is_some() => {
                container.keep(&id.blob, moment, old, until_s);
            }
            (None, Some(old)) if old.state.content.kind() != new.content.kind() => {
                container.taken(&id.blob).retain(|_, kept| kept.is_living());
            }
            (None, Some(old)) if old.is_dormant(now_s) => {
                container.keep(&id.blob, moment, old.state, old.until_s);
            }
            _ => {}
        }
    }

    pub(crate) fn delete(
        &mut self,
        id: &BlobId,
        snapshot: Option<Moment>,
        snapshots: Option<Snapshots>,
        guard: Guard,
    ) -> Answer {
        let (now_s, until_s) = (self.now_s, self.until_s());
        if let Some(moment) = snapshot {
            return self.delete_snapshot(id, moment, snapshots, guard);
        }
        let container = self.find(&id.container)?;
        let Some(blob) = container.blobs.get(&id.blob) else {
            // Since 2013-08-15 a blob with only uncommitted blocks can be deleted.
            let open = container.uncommitted.get(&id.blob);
            if !open.is_some_and(|open| open.is_kept(now_s)) {
                return Err(ErrorCode::BlobNotFound.into());
            }
            if snapshots != Some(Snapshots::Only) {
                container.uncommitted.remove(&id.blob);
            }
            return Ok(deleted(None));
        };
        check_write(blob, guard, now_s)?;
        container.check_empty(&id.blob, ErrorCode::DirectoryIsNotEmpty)?;
        let state = blob.state.clone();
        let has_snapshots = container.taken(&id.blob).values().any(Kept::is_living);
        if snapshots.is_none() && has_snapshots {
            return Err(ErrorCode::SnapshotsPresent.into());
        }
        discard(container.taken(&id.blob), until_s, |_| true);
        if snapshots == Some(Snapshots::Only) {
            // A blob that does not exist was deleted permanently.
            return Ok(deleted(until_s.filter(|_| has_snapshots)));
        }
        match state.is_directory {
            // What waits below it does not keep it.
            true => drop(container.take(&id.blob)),
            false => {
                container.blobs.remove(&id.blob);
                container.uncommitted.remove(&id.blob);
            }
        }
        if until_s.is_some() {
            let kept = Kept { state, until_s };
            container.dormant.insert(id.blob.clone(), kept);
        }
        Ok(deleted(until_s))
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
        let until_s = self.until_s();
        let current = self.state(id, Some(moment))?.current();
        conditions::check_write(guard.condition, current, ErrorCode::ConditionNotMet)?;
        let taken = self.find(&id.container)?.taken(&id.blob);
        discard(taken, until_s, |other| *other == moment);
        Ok(deleted(until_s))
    }

    /// Restores everything deleted under the name, except its lease.
    pub(crate) fn undelete(&mut self, id: &BlobId) -> Answer {
        let now_s = self.now_s;
        let container = self.find(&id.container)?;
        let there = container.blobs.contains_key(&id.blob);
        let waiting = container.dormant.remove(&id.blob);
        let waiting = waiting.filter(|kept| kept.is_dormant(now_s));
        let taken = container.taken(&id.blob);
        let dormant = taken.values().any(|kept| kept.is_dormant(now_s));
        if !there && waiting.is_none() && !dormant {
            return Err(Refusal::from(ErrorCode::BlobNotFound));
        }
        taken.retain(|_, kept| kept.is_living() || kept.is_dormant(now_s));
        taken.values_mut().for_each(|kept| kept.until_s = None);
        if let Some(Kept { state, .. }) = waiting.filter(|_| !there) {
            let lease = Lease::Available;
            container
                .blobs
                .insert(id.blob.clone(), Blob { state, lease });
        }
        Ok(Expected::ok(200))
    }
}

fn deleted(until_s: Option<u64>) -> Expected {
    let told = if until_s.is_some() { "false" } else { "true" };
    let told = Some(told.to_owned());
    Expected::ok(202).with(Fact::Header("x-ms-delete-type-permanent", told))
}
