//! The directories of a hierarchical container: finds, makes and drops them.
//!
//! The path of a blob is resolved to the id of the directory that holds it, which takes the place
//! of the container's generation in all keys: see [`keys::tree`]. In a flat container, every
//! function returns the generation itself. A write makes the directories that its path lacks.

use smalt_protocol::limits::PATH_SEGMENTS_MAX;
use smalt_protocol::{ETag, ErrorCode, StorageError, Timestamp};

use crate::keys::tree::{BLOCKED, MISSING, TOO_DEEP, directory, directory_last, is_hierarchical};
use crate::keys::{self, Generation};
use crate::ops::blob::removal;
use crate::ops::lookup::BlobName;
use crate::records::{BlobKind, BlobRecord, CONTENT_TYPE_DEFAULT, ContentHeaders, Record};
use crate::rules::acl::{self, Posix};
use crate::store::{Stamp, StoreError, StoreResult, Transaction, View};

/// Returns the segments of a path; empty ones do not count.
pub fn segments(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// Returns the generation that keys the blob of a path: the id of its parent directory, or
/// [`MISSING`] or [`BLOCKED`].
///
/// # Errors
/// When the store fails.
pub fn folder(
    view: &dyn View,
    root: Generation,
    path: &str,
    now: Timestamp,
) -> StoreResult<Generation> {
    if !is_hierarchical(root) {
        return Ok(root);
    }
    let mut id = root;
    for segment in parents(path) {
        let found = BlobRecord::load(view, &keys::blob(id, segment))?;
        id = match found.filter(|found| found.is_there(now)) {
            None => return Ok(MISSING),
            Some(found) => match found.directory {
                None => return Ok(BLOCKED),
                Some(id) => id,
            },
        };
    }
    Ok(id)
}

/// Returns the generation that keys a blob, as [`folder`].
///
/// # Errors
/// 404 `ContainerNotFound`.
pub fn folder_of(
    view: &dyn View,
    name: &BlobName,
    now: Timestamp,
) -> Result<Generation, StorageError> {
    let root = name.container.find(view, now)?.generation;
    Ok(folder(view, root, &name.blob, now)?)
}

/// Makes the missing directories of a blob's path. `found` is what [`folder`] returned; returns the
/// generation that keys the blob.
///
/// # Errors
/// When the store fails.
pub fn make_folder(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    found: Generation,
    stamp: &Stamp,
) -> StoreResult<Generation> {
    if found != MISSING {
        return Ok(found);
    }
    let gone = || StoreError::Corrupt("a container is gone within a commit".to_owned());
    let container = name.container.find(tx, stamp.now).map_err(|_| gone())?;
    let mut parent = container.posix();
    let mut id = container.generation;
    for segment in parents(&name.blob) {
        let key = keys::blob(id, segment);
        let there = BlobRecord::load(tx, &key)?.filter(|found| found.is_there(stamp.now));
        let record = match there {
            Some(record) => record,
            None => {
                removal::make_room(tx, id, segment, stamp.now)?;
                let posix = Posix::of_new(true, None, acl::UMASK_DEFAULT, Some(&parent))
                    .created_by(name.container.creator.as_deref(), &parent);
                // Recorded: its ETag is not that of the path.
                let record = BlobRecord {
                    etag: ETag::from_tick(stamp.second_tick()),
                    ..new_directory(tx, posix, stamp)?
                };
                record.save(tx, key)?;
                record
            }
        };
        parent = record.posix();
        id = record.directory.unwrap_or(BLOCKED);
    }
    Ok(id)
}

/// Returns the record of a new, empty directory.
///
/// # Errors
/// When the store fails.
pub fn new_directory(
    tx: &mut Transaction<'_>,
    posix: Posix,
    stamp: &Stamp,
) -> StoreResult<BlobRecord> {
    let key = directory_last();
    let last = match tx.get(&key)? {
        None => 0,
        Some(bytes) => {
            let number = bytes.as_ref().try_into().map(u64::from_be_bytes);
            number.map_err(|_| StoreError::Corrupt("not a number".to_owned()))?
        }
    };
    tx.put(key, (last + 1).to_be_bytes().to_vec());
    Ok(BlobRecord {
        directory: Some(directory(last + 1)),
        posix: Some(Box::new(posix)),
        headers: ContentHeaders {
            content_type: Some(CONTENT_TYPE_DEFAULT.to_owned()),
            ..ContentHeaders::default()
        },
        origin: stamp.tick.ticks(),
        ..BlobRecord::new(BlobKind::Block, stamp.etag(), stamp.now)
    })
}

/// Returns owner and permissions of the directory of a path; of the next one above it, if it does
/// not exist yet.
///
/// # Errors
/// 404 `ContainerNotFound`.
pub fn parent_posix(
    view: &dyn View,
    name: &BlobName,
    now: Timestamp,
) -> Result<Posix, StorageError> {
    let container = name.container.find(view, now)?;
    let (mut posix, mut id) = (container.posix(), container.generation);
    for segment in parents(&name.blob) {
        let found = BlobRecord::load(view, &keys::blob(id, segment))?;
        let Some(found) = found.filter(|found| found.is_there(now)) else {
            break;
        };
        posix = found.posix();
        id = found.directory.unwrap_or(BLOCKED);
    }
    Ok(posix)
}

/// Returns owner and permissions of a blob that the Blob service makes in the directory
/// `generation`; `None` in a flat container.
///
/// # Errors
/// 404 `ContainerNotFound`.
pub fn posix_of_new(
    view: &dyn View,
    name: &BlobName,
    generation: Generation,
    now: Timestamp,
) -> Result<Option<Box<Posix>>, StorageError> {
    if !is_hierarchical(generation) {
        return Ok(None);
    }
    let parent = parent_posix(view, name, now)?;
    let posix = Posix::of_new(false, None, acl::UMASK_DEFAULT, Some(&parent))
        .created_by(name.container.creator.as_deref(), &parent);
    Ok(Some(Box::new(posix)))
}

/// Whether a directory or a container has no children, not counting deleted ones.
///
/// # Errors
/// When the store fails.
pub fn is_empty(view: &dyn View, id: Generation, now: Timestamp) -> StoreResult<bool> {
    let from = keys::blob(id, "");
    let mut child = Ok(false);
    view.scan(&from, &keys::after(from.clone()), &mut |_, value| {
        child = BlobRecord::decode(value).map(|found| found.is_there(now));
        match child {
            Ok(false) => std::ops::ControlFlow::Continue(()),
            _ => std::ops::ControlFlow::Break(()),
        }
    })?;
    child.map(|has_child| !has_child)
}

/// Marks the contents of a directory that no path leads to any more as garbage.
pub fn drop_directory(tx: &mut Transaction<'_>, id: Generation) {
    tx.put(keys::garbage(id), "");
}

/// Whether a path has more segments than a new one may have. A rename of a directory can make such
/// paths of what the directory holds.
pub fn is_too_deep(folder: Generation, path: &str) -> bool {
    is_hierarchical(folder) && segments(path).count() > PATH_SEGMENTS_MAX
}

/// Rejects a write to a path that is too deep, or that has a file in place of a directory.
///
/// # Errors
/// 409 `PathIsTooDeep`, 409 `PathConflict`.
pub fn check_way(folder: Generation) -> Result<(), StorageError> {
    match folder {
        TOO_DEEP => Err(ErrorCode::PathIsTooDeep.into()),
        BLOCKED => Err(ErrorCode::PathConflict.into()),
        _ => Ok(()),
    }
}

/// Checks as [`check_way`] does, and rejects the write of a file in place of a directory.
///
/// # Errors
/// As [`check_way`]; 409 `ResourceTypeMismatch`.
pub fn check_file(folder: Generation, found: Option<&BlobRecord>) -> Result<(), StorageError> {
    check_way(folder)?;
    match found {
        Some(found) if found.directory.is_some() => Err(ErrorCode::ResourceTypeMismatch.into()),
        _ => Ok(()),
    }
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    let mut segments = segments(path);
    segments.next_back();
    segments
}
