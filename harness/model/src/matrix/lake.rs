//! A hierarchical account: paths that one interface makes and the other uses, and renames.

use smalt_protocol::ErrorCode;

use super::area::{Area, NONE};
use super::watch::Watch;
use crate::expected::{Expected, Fact, Listed};
use crate::hints::Standing;
use crate::lake::below;
use crate::state::Model;
use crate::vocabulary::{BlobId, BlobOperation, Operation, PathOperation};

const BLOB: &str = "blob";
const PATH: &str = "path";
const FILE: &str = "file";
const WAITING: &str = "file with waiting bytes";
const EMPTY: &str = "empty directory";
const FULL: &str = "directory";
const NOTHING: &str = "nothing";
const ITSELF: &str = "itself";
const INSIDE: &str = "a path inside of it";
const BELOW_FILE: &str = "a path below a file";
const BELOW_NOTHING: &str = "a path below nothing";
const FREE: &str = "free";
const HELD: &str = "leased";

/// What one interface makes and an operation of the other one uses.
pub(super) const FACES: Area = Area {
    name: "both interfaces",
    axes: [
        &[BLOB, PATH],
        &[FILE, FULL],
        &[
            "append",
            "delete",
            "flush",
            "lease",
            "list",
            "read",
            "rename",
            "replace",
            "set metadata",
        ],
        &[FREE, HELD],
    ],
    exists: |[maker, kind, operation, _]| match *operation {
        "append" | "flush" => *maker == BLOB && *kind == FILE,
        "rename" => *maker == BLOB,
        // The Blob service cannot replace a directory.
        "replace" => *maker == BLOB || *kind == FILE,
        "set metadata" => *maker == PATH,
        _ => true,
    },
    counts_refusals: false,
};

/// What moves, and what is in its new place.
pub(super) const RENAMES: Area = Area {
    name: "rename",
    axes: [
        &[FILE, WAITING, EMPTY, FULL],
        &[
            NOTHING,
            FILE,
            EMPTY,
            FULL,
            ITSELF,
            INSIDE,
            BELOW_FILE,
            BELOW_NOTHING,
        ],
        &[FREE, HELD],
        NONE,
    ],
    exists: |[source, destination, _, _]| {
        *destination != INSIDE || *source == EMPTY || *source == FULL
    },
    counts_refusals: true,
};

/// The refusals of a rename for its source and destination.
const SHAPES: [ErrorCode; 5] = [
    ErrorCode::PathConflict,
    ErrorCode::RenameDestinationParentPathNotFound,
    ErrorCode::InvalidRenameSourcePath,
    ErrorCode::PathAlreadyExists,
    ErrorCode::InvalidSourceOrDestinationResourceType,
];

fn kind(model: &Model, id: &BlobId) -> Option<&'static str> {
    let container = model.containers.get(&id.container)?;
    let blob = container.blobs.get(&id.blob)?;
    Some(match blob.state.is_directory {
        true if container.is_full(&id.blob) => FULL,
        true => EMPTY,
        false if container.uncommitted.contains_key(&id.blob) => WAITING,
        false => FILE,
    })
}

fn held(model: &Model, id: &BlobId) -> &'static str {
    match model.lease_at(&id.container, &id.blob) {
        Standing::Held | Standing::Breaking => HELD,
        _ => FREE,
    }
}

/// Returns the interface of an operation, and what it does to a path.
fn use_of(operation: &Operation) -> Option<(&BlobId, &'static str, &'static str)> {
    Some(match operation {
        Operation::Blob(id, operation) => {
            let name = match operation {
                BlobOperation::Put(..) => "replace",
                BlobOperation::Get { .. } | BlobOperation::Head { .. } => "read",
                BlobOperation::SetMetadata(..) => "set metadata",
                BlobOperation::Delete { .. } => "delete",
                BlobOperation::Lease(..) => "lease",
                _ => return None,
            };
            (id, BLOB, name)
        }
        Operation::Path(id, operation) => match operation {
            PathOperation::Create { .. } => (id, PATH, "replace"),
            PathOperation::Append { .. } => (id, PATH, "append"),
            PathOperation::Flush { .. } => (id, PATH, "flush"),
            PathOperation::Rename(rename) => (&rename.source, PATH, "rename"),
            PathOperation::Delete { .. } => (id, PATH, "delete"),
            PathOperation::Status(_) => (id, PATH, "read"),
            PathOperation::Lease(..) => (id, PATH, "lease"),
            PathOperation::Expire(..) | PathOperation::List { .. } => return None,
        },
        _ => return None,
    })
}

impl Watch {
    pub(super) fn lake(&mut self, model: &Model, operation: &Operation) {
        if !model.is_hierarchical() {
            return;
        }
        if let Some((id, face, name)) = use_of(operation) {
            self.used(model, id, face, name);
        }
        if let Operation::Path(id, PathOperation::Rename(rename)) = operation
            && let Some(source) = kind(model, &rename.source)
        {
            let destination = self.destination(model, id, &rename.source);
            let held = held(model, &rename.source);
            self.saw(&RENAMES, [source, destination, held, ""]);
        }
    }

    fn destination(&self, model: &Model, id: &BlobId, source: &BlobId) -> &'static str {
        let is_inside = id.container == source.container
            && below(&id.blob, &source.blob).is_some()
            && !matches!(kind(model, source), Some(FILE | WAITING));
        if id == source {
            return ITSELF;
        }
        if is_inside {
            return INSIDE;
        }
        let parents = id.blob.match_indices('/').map(|(end, _)| BlobId {
            container: id.container.clone(),
            blob: id.blob[..end].to_owned(),
        });
        for parent in parents {
            match kind(model, &parent) {
                None => return BELOW_NOTHING,
                Some(FILE | WAITING) => return BELOW_FILE,
                Some(_) => {}
            }
        }
        match kind(model, id) {
            None => NOTHING,
            Some(WAITING) => FILE,
            Some(kind) => kind,
        }
    }

    fn used(&mut self, model: &Model, id: &BlobId, face: &'static str, name: &'static str) {
        let maker = self.makers.get(id).copied();
        if let (Some(maker), Some(kind)) = (maker.filter(|maker| *maker != face), kind(model, id)) {
            let kind = [FULL, FILE][usize::from(matches!(kind, FILE | WAITING))];
            self.saw(&FACES, [maker, kind, name, held(model, id)]);
        }
    }

    pub(super) fn lake_after(&mut self, model: &Model, operation: &Operation, expected: &Expected) {
        if !model.is_hierarchical() {
            return;
        }
        if expected.code.is_some_and(|code| !SHAPES.contains(&code)) {
            self.found.clear();
        }
        if !expected.is_done() {
            return;
        }
        match operation {
            Operation::Container(name, _) => self.seen_in(model, name, BLOB, expected),
            Operation::Path(id, PathOperation::List { .. }) => {
                self.seen_in(model, &id.container, PATH, expected);
            }
            Operation::Path(id, PathOperation::Rename(rename)) => self.moved(&rename.source, id),
            _ => {}
        }
        if let Some((id, face, "replace")) = use_of(operation) {
            self.makers.insert(id.clone(), face);
        }
        let container = |id: &BlobId| model.containers.get(&id.container);
        self.makers
            .retain(|id, _| container(id).is_some_and(|found| found.blobs.contains_key(&id.blob)));
        self.note_parents(model, operation);
    }

    /// Notes the directories that an operation made above its path.
    fn note_parents(&mut self, model: &Model, operation: &Operation) {
        let Some((id, face, _)) = use_of(operation) else {
            return;
        };
        let Some(container) = model.containers.get(&id.container) else {
            return;
        };
        for name in container.blobs.keys() {
            if below(&id.blob, name).is_some() {
                let parent = BlobId {
                    container: id.container.clone(),
                    blob: name.clone(),
                };
                self.makers.entry(parent).or_insert(face);
            }
        }
    }

    fn moved(&mut self, source: &BlobId, to: &BlobId) {
        let own = |id: &BlobId| {
            id == source
                || id.container == source.container && below(&id.blob, &source.blob).is_some()
        };
        let moved: Vec<_> = self.makers.keys().filter(|id| own(id)).cloned().collect();
        for id in moved {
            let Some(face) = self.makers.remove(&id) else {
                continue;
            };
            let rest = &id.blob[source.blob.len()..];
            let id = BlobId {
                container: to.container.clone(),
                blob: format!("{}{rest}", to.blob),
            };
            self.makers.insert(id, face);
        }
    }

    fn seen_in(&mut self, model: &Model, container: &str, face: &'static str, expected: &Expected) {
        let names = expected.facts.iter().flat_map(|fact| match fact {
            Fact::Listed(listed) => listed.iter().filter_map(listed_name).collect(),
            Fact::Paths(paths) => paths.iter().map(|(name, ..)| name.clone()).collect(),
            _ => Vec::new(),
        });
        for blob in names {
            let container = container.to_owned();
            self.used(model, &BlobId { container, blob }, face, "list");
        }
    }
}

fn listed_name(listed: &Listed) -> Option<String> {
    match listed {
        Listed::Blob { name, .. } => Some(name.clone()),
        Listed::Prefix(_) => None,
    }
}
