//! Soft delete beside what is alive, tiers during a rehydration, and searches by tags that have
//! changed.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::area::{Area, NONE};
use super::watch::Watch;
use crate::account::fits;
use crate::state::{Container, Kept, Model};
use crate::vocabulary::{
    AccountOperation, BlobId, BlobOperation, ContainerOperation, Operation, Priority, Snapshots,
    TAG, Tier,
};

const LIVE: &str = "live blob";
const DELETED: &str = "deleted blob";
const ABSENT: &str = "no blob";
const NEITHER: &str = "no snapshots";
const LIVING: &str = "snapshots";
const DORMANT: &str = "deleted snapshots";
const BOTH: &str = "both kinds of snapshots";

const DELETES: [&str; 4] = ["delete", "delete include", "delete only", "delete snapshot"];

/// The state of a name, and whether the account keeps what is deleted.
pub(super) const DELETION: Area = Area {
    name: "soft delete",
    axes: [
        &[
            DELETES[0], DELETES[1], DELETES[2], DELETES[3], "undelete", "replace", "snapshot",
        ],
        &[LIVE, DELETED, ABSENT],
        &[NEITHER, LIVING, DORMANT, BOTH],
        &["retention", "no retention"],
    ],
    exists: |[operation, base, snapshots, _]| {
        let is_living = [LIVING, BOTH].contains(snapshots);
        match *operation {
            // A blob and its snapshots are deleted together. A blob that was not kept can leave
            // deleted snapshots behind, which Undelete Blob restores.
            _ if is_living && *base == DELETED => false,
            "delete" => *base == LIVE && !is_living,
            "delete snapshot" => *base == LIVE && is_living,
            "undelete" => *base != ABSENT || *snapshots == DORMANT,
            "replace" => *base != ABSENT || *snapshots != BOTH,
            _ => *base == LIVE,
        }
    },
    counts_refusals: false,
};

/// The first change of a name after Undelete Blob.
pub(super) const RESTORED: Area = Area {
    name: "after undelete",
    axes: [
        &[
            DELETES[0], DELETES[1], DELETES[2], DELETES[3], "undelete", "replace", "snapshot",
        ],
        &["blob was restored", "blob was there"],
        &["snapshots were restored", "no snapshots were"],
        NONE,
    ],
    exists: |[operation, blob, snapshots, _]| {
        let has_snapshots = snapshots.starts_with("snapshots");
        match *operation {
            _ if *blob == "blob was there" && !has_snapshots => false,
            "delete" => !has_snapshots,
            "delete snapshot" => has_snapshots,
            _ => true,
        }
    },
    counts_refusals: false,
};

/// Set Blob Tier.
pub(super) const TIERS: Area = Area {
    name: "set tier",
    axes: [
        &[
            "online",
            "archived",
            "rehydrating",
            "rehydrating at high priority",
        ],
        &["the same tier", "another tier", "archive"],
        &["no priority", "standard", "high"],
        NONE,
    ],
    exists: |[state, to, ..]| !(*state == "archived" && *to == "the same tier"),
    counts_refusals: true,
};

/// A request around the end of a rehydration.
pub(super) const REHYDRATION: Area = Area {
    name: "rehydration",
    axes: [
        &["head", "get", "set metadata"],
        &["standard", "high", "raised to high"],
        &["before its end", "at its end", "after its end"],
        NONE,
    ],
    exists: |_| true,
    counts_refusals: true,
};

/// The last change of a tag before a search for its value.
pub(super) const SEARCHES: Area = Area {
    name: "search by tag",
    axes: [
        &[
            "set tags",
            "put",
            "block list",
            "copy",
            "from url",
            "delete",
            "undelete",
            "container delete",
        ],
        &["value came", "value went"],
        NONE,
        NONE,
    ],
    exists: |[change, how, ..]| match *change {
        "undelete" => *how == "value came",
        "delete" | "container delete" => *how == "value went",
        _ => true,
    },
    counts_refusals: false,
};

/// Names an operation that deletes, restores or replaces; `None` for others.
fn name(operation: &BlobOperation) -> Option<&'static str> {
    use BlobOperation as On;
    Some(match operation {
        On::Delete {
            snapshot: Some(_), ..
        } => "delete snapshot",
        On::Delete { snapshots, .. } => match snapshots {
            None => "delete",
            Some(Snapshots::Include) => "delete include",
            Some(Snapshots::Only) => "delete only",
        },
        On::Undelete => "undelete",
        On::Put(..)
        | On::Create(..)
        | On::Copy { .. }
        | On::FromUrl { .. }
        | On::PutBlockList(..) => "replace",
        On::Snapshot(..) => "snapshot",
        _ => return None,
    })
}

impl Container {
    /// Returns the state of the blob with this name, and of its snapshots.
    fn standing(&self, blob: &str, now_s: u64) -> (&'static str, &'static str) {
        let is_dormant = |kept: &Kept| kept.is_dormant(now_s);
        let base = match self.dormant.get(blob) {
            _ if self.blobs.contains_key(blob) => LIVE,
            Some(kept) if is_dormant(kept) => DELETED,
            _ => ABSENT,
        };
        let all = self.snapshots.get(blob);
        let any = |is: &dyn Fn(&Kept) -> bool| all.is_some_and(|all| all.values().any(is));
        let snapshots = match (any(&Kept::is_living), any(&is_dormant)) {
            (false, false) => NEITHER,
            (true, false) => LIVING,
            (false, true) => DORMANT,
            (true, true) => BOTH,
        };
        (base, snapshots)
    }
}

impl Watch {
    pub(super) fn blob(&mut self, model: &Model, id: &BlobId, operation: &BlobOperation) {
        let Some(container) = model.containers.get(&id.container) else {
            return;
        };
        if let Some(name) = name(operation) {
            let (base, snapshots) = container.standing(&id.blob, model.now_s);
            let keeps = ["retention", "no retention"];
            let keeps = keeps[usize::from(model.retention_days.is_none())];
            // The outcomes have their own place for a deletion of nothing but blocks.
            let is_counted = match base {
                LIVE => true,
                // Rarer than any history of a usual length.
                ABSENT if snapshots == BOTH => false,
                _ => !name.starts_with("delete"),
            };
            if is_counted {
                self.saw(&DELETION, [name, base, snapshots, keeps]);
            }
            if let Some((base, snapshots)) = self.trail.restored.get(id) {
                self.saw(&RESTORED, [name, *base, *snapshots, ""]);
            }
        }
        self.tier(model, id, operation);
    }

    fn tier(&mut self, model: &Model, id: &BlobId, operation: &BlobOperation) {
        let container = model.containers.get(&id.container);
        let Some(blob) = container.and_then(|found| found.blobs.get(&id.blob)) else {
            return;
        };
        let (stored, now_s) = (blob.state.tier, model.now_s);
        let operation = match operation {
            BlobOperation::Head { snapshot: None, .. } => "head",
            BlobOperation::Get { snapshot: None, .. } => "get",
            BlobOperation::SetMetadata(..) => "set metadata",
            BlobOperation::SetTier(to, priority) => {
                let tiered = stored.at(now_s);
                let state = match tiered.waking.map(|waking| waking.priority) {
                    Some(Priority::Standard) => "rehydrating",
                    Some(Priority::High) => "rehydrating at high priority",
                    None if tiered.tier == Some(Tier::Archive) => "archived",
                    None => "online",
                };
                let own = tiered.waking.map(|waking| waking.to).or(tiered.tier);
                let to = match *to {
                    Tier::Archive => "archive",
                    to if to == own.unwrap_or(Tier::Hot) => "the same tier",
                    _ => "another tier",
                };
                let priority = match priority {
                    None => "no priority",
                    Some(Priority::Standard) => "standard",
                    Some(Priority::High) => "high",
                };
                return self.saw(&TIERS, [state, to, priority, ""]);
            }
            _ => return,
        };
        if let Some(waking) = stored.waking {
            let kind = match waking.priority {
                Priority::Standard => "standard",
                Priority::High if waking.is_raised => "raised to high",
                Priority::High => "high",
            };
            let moment = match now_s.cmp(&waking.end_s()) {
                Ordering::Less => "before its end",
                Ordering::Equal => "at its end",
                Ordering::Greater => "after its end",
            };
            self.saw(&REHYDRATION, [operation, kind, moment, ""]);
        }
    }

    /// Compares a search with the last change of each tag in its scope.
    pub(super) fn searched(&mut self, operation: &Operation) {
        let Operation::Account(AccountOperation::Find {
            container,
            sign,
            value,
            ..
        }) = operation
        else {
            return;
        };
        let scope = |id: &BlobId| container.as_ref().is_none_or(|name| *name == id.container);
        let changes = self.trail.tags.iter().filter(|(id, _)| scope(id));
        let seen = changes.filter_map(|(_, change)| {
            let is = |tag: &Option<String>| {
                let tag = tag.as_deref();
                tag.is_some_and(|tag| fits(tag, (sign, value)))
            };
            match (is(&change.had), is(&change.has)) {
                (true, false) => Some([change.by, "value went", "", ""]),
                (false, true) => Some([change.by, "value came", "", ""]),
                _ => None,
            }
        });
        for at in seen.collect::<Vec<_>>() {
            self.saw(&SEARCHES, at);
        }
    }
}

/// What earlier steps of the history did.
#[derive(Debug, Default)]
pub(super) struct Trail {
    /// What the last Undelete Blob restored under each name that was not changed since.
    restored: BTreeMap<BlobId, (&'static str, &'static str)>,
    /// The last change of each tag.
    tags: BTreeMap<BlobId, Retagged>,
    /// The tags before the current step, of the blobs that it may change.
    had: BTreeMap<BlobId, Option<String>>,
    /// The state of the name before the current step.
    standing: Option<(&'static str, &'static str)>,
}

/// A change of the tag that searches name.
#[derive(Debug)]
struct Retagged {
    by: &'static str,
    had: Option<String>,
    has: Option<String>,
}

fn tag(model: &Model, id: &BlobId) -> Option<String> {
    let container = model.containers.get(&id.container)?;
    container.blobs.get(&id.blob)?.state.tags.get(TAG).cloned()
}

/// Names an operation that may change the tags of a blob.
fn retags(operation: &BlobOperation) -> Option<&'static str> {
    use BlobOperation as On;
    Some(match operation {
        On::SetTags(..) => "set tags",
        On::Put(..) | On::Create(..) => "put",
        On::PutBlockList(..) => "block list",
        On::Copy { .. } => "copy",
        On::FromUrl { .. } => "from url",
        On::Delete { snapshot: None, .. } => "delete",
        On::Undelete => "undelete",
        _ => return None,
    })
}

impl Trail {
    pub(super) fn before(&mut self, model: &Model, operation: &Operation) {
        self.had.clear();
        self.standing = None;
        match operation {
            Operation::Blob(id, operation) if retags(operation).is_some() => {
                self.had.insert(id.clone(), tag(model, id));
                let container = model.containers.get(&id.container);
                self.standing = container.map(|found| found.standing(&id.blob, model.now_s));
            }
            Operation::Container(name, ContainerOperation::Delete(_)) => {
                let found = model.containers.get(name);
                for blob in found.into_iter().flat_map(|found| found.blobs.keys()) {
                    let id = BlobId {
                        container: name.clone(),
                        blob: blob.clone(),
                    };
                    self.had.insert(id.clone(), tag(model, &id));
                }
            }
            _ => {}
        }
    }

    /// Notes what an operation did that succeeded.
    pub(super) fn after(&mut self, model: &Model, operation: &Operation) {
        let by = match operation {
            Operation::Blob(id, operation) => {
                if name(operation).is_some() {
                    self.restored.remove(id);
                }
                if let (BlobOperation::Undelete, Some(standing)) = (operation, self.standing) {
                    self.note_restored(id, standing);
                }
                retags(operation)
            }
            Operation::Container(..) => Some("container delete"),
            _ => None,
        };
        let Some(by) = by else { return };
        for (id, had) in std::mem::take(&mut self.had) {
            let has = tag(model, &id);
            if has != had {
                self.tags.insert(id, Retagged { by, had, has });
            }
        }
    }

    fn note_restored(&mut self, id: &BlobId, (base, snapshots): (&'static str, &'static str)) {
        let blob = match base {
            LIVE => "blob was there",
            DELETED => "blob was restored",
            _ => return,
        };
        let snapshots = match snapshots {
            DORMANT | BOTH => "snapshots were restored",
            _ if base == LIVE => return,
            _ => "no snapshots were",
        };
        self.restored.insert(id.clone(), (blob, snapshots));
    }
}
