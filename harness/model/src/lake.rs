//! Paths of a hierarchical account: directories, and the operations of the Data Lake interface that
//! the Blob service does not have. Sources: "Path - Create", "Path - Update", "Path - Delete",
//! "Path - List"; recordings: a renamed path keeps its tag and time, and conditions hold for the
//! holder of a lease, too.
//!
//! A directory is an entry in the map of blobs. Every path has the directories above it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use smalt_protocol::ErrorCode;
use smalt_protocol::metadata::FOLDER_MARKER;

use crate::blobs::check_write;
use crate::conditions;
use crate::content::Bytes;
use crate::expected::{Answer, Expected, Fact, Refusal, settle};
use crate::lease::{self, Lease, Of};
use crate::state::{Blob, Container, Model, State};
use crate::vocabulary::{
    BlobId, Condition, Content, Guard, Labels, LeaseId, Metadata, PathOperation, Rename,
};

/// Returns the directories above a path, the uppermost first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// Returns the rest of a path below a directory; the empty one is the root.
pub(crate) fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    match directory {
        "" => Some(path),
        _ => path.strip_prefix(directory)?.strip_prefix('/'),
    }
}

impl State {
    /// Returns the metadata, with the mark of a directory.
    pub(crate) fn metadata(&self) -> Metadata {
        let mark = (FOLDER_MARKER.to_owned(), "true".to_owned());
        let mark = self.is_directory.then_some(mark);
        self.metadata.clone().into_iter().chain(mark).collect()
    }
}

impl Blob {
    fn check_file(&self) -> Result<(), Refusal> {
        match self.state.is_directory {
            true => Err(ErrorCode::PathConflict.into()),
            false => Ok(()),
        }
    }
}

impl Container {
    /// Returns whether the path is a directory that is not empty.
    pub(crate) fn is_full(&self, path: &str) -> bool {
        let blob = self.blobs.get(path);
        let mut names = self.blobs.keys();
        blob.is_some_and(|blob| blob.state.is_directory)
            && names.any(|name| below(name, path).is_some())
    }

    /// Rejects the deletion of a directory that is not empty.
    pub(crate) fn check_empty(&self, path: &str, full: ErrorCode) -> Result<(), Refusal> {
        match self.is_full(path) {
            true => Err(full.into()),
            false => Ok(()),
        }
    }

    /// Rejects a path below a file.
    fn check_way(&self, path: &str) -> Result<(), Refusal> {
        let mut above = parents(path).filter_map(|parent| self.blobs.get(parent));
        above.try_for_each(|parent| match parent.state.is_directory {
            true => Ok(()),
            false => Err(ErrorCode::PathConflict.into()),
        })
    }

    /// Removes a path and everything below it.
    pub(crate) fn take(&mut self, path: &str) -> Tree {
        Tree {
            blobs: taken(&mut self.blobs, path),
            waiting: taken(&mut self.uncommitted, path),
        }
    }
}

/// Removes a path and everything below it; returns the rest of each path with its value.
fn taken<V>(all: &mut BTreeMap<String, V>, path: &str) -> Vec<(String, V)> {
    let rest = |name: &str| match name == path {
        true => Some(String::new()),
        false => below(name, path).map(|rest| format!("/{rest}")),
    };
    let names: Vec<String> = all
        .keys()
        .filter(|name| rest(name).is_some())
        .cloned()
        .collect();
    let names = names.into_iter();
    names
        .filter_map(|name| Some((rest(&name)?, all.remove(&name)?)))
        .collect()
}

/// A path with everything below it.
pub(crate) struct Tree {
    blobs: Vec<(String, Blob)>,
    waiting: Vec<(String, crate::state::Uncommitted)>,
}

impl Model {
    pub(crate) fn path(&mut self, id: &BlobId, operation: &PathOperation) -> Expected {
        use PathOperation as On;
        if let On::Expire(after_s, guard) = operation {
            // An operation of the Blob service.
            return settle(self.set_expiry(id, *after_s, *guard));
        }
        settle(
            match operation {
                On::Create {
                    directory,
                    metadata,
                    guard,
                } => self.create_path(id, *directory, metadata, *guard),
                On::Append {
                    content,
                    position,
                    flush,
                    lease,
                } => self.append_path(id, *content, *position, *flush, *lease),
                On::Flush {
                    position,
                    retain,
                    guard,
                } => self.flush_path(id, *position, *retain, *guard),
                On::Rename(rename) => self.rename_path(id, rename),
                On::Delete { recursive, guard } => self.delete_path(id, *recursive, *guard),
                On::Status(guard) => self.read(id, None, *guard).map(|(answer, state)| {
                    let kind = ["file", "directory"][usize::from(state.is_directory)];
                    let length = state.content.length().to_string();
                    answer
                        .with(Fact::Header("x-ms-resource-type", Some(kind.to_owned())))
                        .with(Fact::Header("content-length", Some(length)))
                }),
                On::Lease(action, condition) => self.lease_blob(id, *action, *condition),
                On::List { recursive, .. } => self.list_paths(id, *recursive),
                On::Expire(..) => Err(ErrorCode::InvalidInput.into()),
            }
            .map_err(|Refusal(code, status)| Refusal(in_its_words(code), status)),
        )
    }

    /// Rejects a write of the Blob service to a directory or below a file.
    pub(crate) fn check_place(&mut self, id: &BlobId) -> Result<(), Refusal> {
        let is_hierarchical = self.hierarchical;
        let container = self.find(&id.container)?;
        if !is_hierarchical {
            return Ok(());
        }
        container.check_way(&id.blob)?;
        match container.blobs.get(&id.blob) {
            Some(there) if there.state.is_directory => Err(ErrorCode::ResourceTypeMismatch.into()),
            _ => Ok(()),
        }
    }

    /// Makes the directories above a path that do not exist.
    pub(crate) fn make_parents(&mut self, id: &BlobId) {
        if !self.hierarchical {
            return;
        }
        // Recorded: their tag is not that of the path.
        let made = State {
            is_directory: true,
            ..self.new_state(Bytes::Blocks(Vec::new()), &Labels::default())
        };
        let Some(container) = self.containers.get_mut(&id.container) else {
            return;
        };
        for parent in parents(&id.blob) {
            let there = container.blobs.entry(parent.to_owned());
            if matches!(there, Entry::Vacant(_)) {
                container.uncommitted.remove(parent);
            }
            there.or_insert_with(|| Blob {
                state: made.clone(),
                lease: Lease::Available,
            });
        }
    }

    /// Checks what creates or replaces a path: `If-None-Match: *` comes before the lease.
    fn check_path(&self, there: Option<&Blob>, guard: Guard) -> Result<(), Refusal> {
        if there.is_some() && guard.condition == Some(Condition::IfNoneMatch(None)) {
            return Err(ErrorCode::BlobAlreadyExists.into());
        }
        self.check_guard(there, guard, ErrorCode::ConditionNotMet)
    }

    fn create_path(
        &mut self,
        id: &BlobId,
        directory: bool,
        metadata: &Metadata,
        guard: Guard,
    ) -> Answer {
        let container = self.find(&id.container)?;
        container.check_way(&id.blob)?;
        let there = container.blobs.get(&id.blob).cloned();
        self.check_path(there.as_ref(), guard)?;
        if there.is_some_and(|there| there.state.is_directory != directory) {
            return Err(ErrorCode::PathConflict.into());
        }
        let state = State {
            is_directory: directory,
            ..self.new_state(Bytes::Blocks(Vec::new()), &metadata.clone().into())
        };
        let answer = state.written(201);
        self.replace(id, state);
        Ok(answer)
    }

    /// Bytes wait as a block whose id is their position.
    fn append_path(
        &mut self,
        id: &BlobId,
        content: Content,
        position: u64,
        flush: bool,
        lease: Option<LeaseId>,
    ) -> Answer {
        self.base(id)?.check_file()?;
        let length = self.base(id)?.state.content.length();
        let before = flush.then(|| self.clone());
        self.put_block(id, &position.to_be_bytes(), content, lease)?;
        let Some(before) = before else {
            return Ok(Expected::ok(202));
        };
        let end = position + u64::from(content.length);
        let guard = Guard {
            lease,
            condition: None,
        };
        let flushed = match position < length {
            true => Err(ErrorCode::InvalidFlushPosition.into()),
            false => self.flush_path(id, end, false, guard),
        };
        let flushed = flushed.inspect_err(|_| *self = before)?;
        Ok(Expected {
            status: 202,
            ..flushed
        })
    }

    fn flush_path(&mut self, id: &BlobId, position: u64, retain: bool, guard: Guard) -> Answer {
        let now_s = self.now_s;
        let blob = self.base(id)?;
        blob.check_file()?;
        check_write(blob, guard, now_s)?;
        let mut end = blob.state.content.length();
        let container = self.find(&id.container)?;
        let mut open = container.uncommitted.get(&id.blob).cloned();
        open = open.filter(|open| open.is_kept(now_s));
        let mut waiting = open.unwrap_or_default();
        let later = waiting.blocks.split_off(position.to_be_bytes().as_slice());
        // Bytes below the end are dropped.
        waiting.blocks = waiting.blocks.split_off(end.to_be_bytes().as_slice());
        for (at, bytes) in &waiting.blocks {
            if *at != end.to_be_bytes() {
                return Err(ErrorCode::InvalidFlushPosition.into());
            }
            end += bytes.len() as u64;
        }
        if end != position {
            return Err(ErrorCode::InvalidFlushPosition.into());
        }
        let taken = std::mem::replace(&mut waiting.blocks, later);
        container.uncommitted.remove(&id.blob);
        if retain && !waiting.blocks.is_empty() {
            container.uncommitted.insert(id.blob.clone(), waiting);
        }
        self.change(id, guard, 200, |state| {
            if let Bytes::Blocks(blocks) = &mut state.content {
                blocks.extend(taken.into_values().map(|bytes| (None, bytes)));
            }
            Ok(Vec::new())
        })
    }

    /// Neither tag nor time change.
    fn set_expiry(&mut self, id: &BlobId, after_s: Option<u64>, guard: Guard) -> Answer {
        let now_s = self.now_s;
        let blob = self.base(id)?;
        if blob.state.is_directory {
            return Err(ErrorCode::ResourceTypeMismatch.into());
        }
        check_write(blob, guard, now_s)?;
        blob.state.expires_s = after_s.map(|after_s| now_s + after_s);
        Ok(blob.state.written(200))
    }

    /// Forgets the files that have expired. Waiting bytes stay for the next file of the name.
    pub(crate) fn expire(&mut self) {
        let now_s = self.now_s;
        for container in self.containers.values_mut() {
            let is_there = |blob: &Blob| blob.state.expires_s.is_none_or(|end_s| now_s < end_s);
            container.blobs.retain(|_, blob| is_there(blob));
        }
    }

    fn rename_path(&mut self, id: &BlobId, rename: &Rename) -> Answer {
        let Rename { source, guard, .. } = rename;
        let now_s = self.now_s;
        self.find(&id.container)?;
        let from = self.find(&source.container)?;
        let moved = from.blobs.get(&source.blob).cloned();
        let moved = moved.ok_or(ErrorCode::SourcePathNotFound)?;
        let unmet = ErrorCode::SourceConditionNotMet;
        conditions::check_source(rename.source_condition, moved.state.current(), unmet)?;
        lease::check_guarded(Of::Blob, moved.lease.at(now_s), rename.source_lease)?;
        let container = self.find(&id.container)?;
        container.check_way(&id.blob)?;
        if !parents(&id.blob).all(|parent| container.blobs.contains_key(parent)) {
            return Err(ErrorCode::RenameDestinationParentPathNotFound.into());
        }
        let is_directory = moved.state.is_directory;
        let is_inside = id.container == source.container && below(&id.blob, &source.blob).is_some();
        if is_directory && (id == source || is_inside) {
            return Err(ErrorCode::InvalidRenameSourcePath.into());
        }
        let there = container.blobs.get(&id.blob).cloned();
        let is_full = container.is_full(&id.blob);
        self.check_path(there.as_ref(), *guard)?;
        match there {
            _ if id == source => return Ok(moved.state.written(201)),
            Some(there) if there.state.is_directory != is_directory => {
                return Err(ErrorCode::InvalidSourceOrDestinationResourceType.into());
            }
            Some(_) if is_full => return Err(ErrorCode::PathAlreadyExists.into()),
            _ => {}
        }
        self.find(&id.container)?.take(&id.blob);
        let tree = self.find(&source.container)?.take(&source.blob);
        let container = self.find(&id.container)?;
        let there = |rest: String| format!("{}{rest}", id.blob);
        let blobs = tree.blobs.into_iter();
        container
            .blobs
            .extend(blobs.map(|(rest, blob)| (there(rest), blob)));
        let waiting = tree.waiting.into_iter();
        container
            .uncommitted
            .extend(waiting.map(|(rest, open)| (there(rest), open)));
        Ok(moved.state.written(201))
    }

    fn delete_path(&mut self, id: &BlobId, recursive: bool, guard: Guard) -> Answer {
        let now_s = self.now_s;
        check_write(self.base(id)?, guard, now_s)?;
        let container = self.find(&id.container)?;
        if !recursive {
            container.check_empty(&id.blob, ErrorCode::DirectoryNotEmpty)?;
        }
        container.take(&id.blob);
        let told = Some("true".to_owned());
        Ok(Expected::ok(200).with(Fact::Header("x-ms-delete-type-permanent", told)))
    }

    /// The contents of a directory come right behind it.
    fn list_paths(&mut self, id: &BlobId, recursive: bool) -> Answer {
        let container = self.find(&id.container)?;
        let there = container.blobs.get(&id.blob);
        if there.is_none() && !id.blob.is_empty() {
            return Err(ErrorCode::BlobNotFound.into());
        }
        let is_file = there.is_some_and(|there| !there.state.is_directory);
        let is_shown = |name: &str| match below(name, &id.blob) {
            Some(rest) => recursive || !rest.contains('/'),
            None => is_file && name == id.blob,
        };
        let shown = container.blobs.iter();
        let mut shown: Vec<_> = shown.filter(|(name, _)| is_shown(name)).collect();
        shown.sort_by_key(|(name, _)| name.split('/').collect::<Vec<_>>());
        let paths = shown.into_iter().map(|(name, blob)| {
            let State { tag, content, .. } = &blob.state;
            (
                name.clone(),
                blob.state.is_directory,
                *tag,
                content.length(),
            )
        });
        Ok(Expected::ok(200).with(Fact::Paths(paths.collect())))
    }
}

/// Returns the code of the Data Lake interface for one of the Blob service.
fn in_its_words(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::BlobAlreadyExists => ErrorCode::PathAlreadyExists,
        ErrorCode::BlobNotFound => ErrorCode::PathNotFound,
        ErrorCode::ContainerNotFound => ErrorCode::FilesystemNotFound,
        other => other,
    }
}
