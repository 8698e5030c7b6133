//! Path - Create with `x-ms-rename-source`: renames a file, or a directory with all that it holds.
//!
//! Source: "Path - Create"; recordings: the file keeps its ETag. Hadoop's tests of ABFS: without
//! `mode=legacy`, the source moves into a directory that the request names. One commit moves one
//! record: the contents of a directory are keyed by its id, which stays.
//!
//! ```http
//! PUT /devstoreaccount1/lake/2026/done
//! x-ms-rename-source: /lake/2026/running
//!
//! 201 Created
//! ```

use smalt_protocol::{ApiVersion, ETag, ErrorCode, Metadata, StorageError, Timestamp, names, uri};
use uuid::Uuid;

use super::{check_empty, check_overwrite, check_removable};
use crate::auth;
use crate::call::Call;
use crate::core::Core;
use crate::keys::tree::MISSING;
use crate::keys::{self, Generation};
use crate::operation::Write;
use crate::ops::blob::guard::{self, Guard};
use crate::ops::blob::retention::Spot;
use crate::ops::blob::{pending, removal};
use crate::ops::leasing::source_lease_id;
use crate::ops::lookup::{BlobName, ContainerName, Found, Place};
use crate::ops::tree;
use crate::records::{BlobRecord, Record};
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{self, Leased};
use crate::store::{Stamp, StoreResult, Transaction, View};

const SOURCE: &str = "x-ms-rename-source";
/// Since this version, the response has an ETag, as recorded.
const HAS_ETAG: ApiVersion = ApiVersion::V2020_06_12;

/// The renaming of a path.
pub struct RenamePath {
    target: Destination,
    may_overwrite: bool,
    guard: Guard,
    conditions: Conditions,
    source_lease: Option<Uuid>,
    metadata: Option<Metadata>,
}

/// Where a rename puts its source.
#[derive(Clone)]
pub struct Destination {
    /// The path that the request names; the root of a file system has an empty one.
    pub named: BlobName,
    /// Whether the source moves into a directory of this name, in place of taking its place.
    pub moves_in: bool,
    /// The source.
    pub source: BlobName,
}

impl Destination {
    /// Parses what a rename names.
    ///
    /// # Errors
    /// 400 for a malformed name or mode; 400 `MissingRequiredHeader`, 400 `InvalidSourceUri`.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        const MODE: &str = "mode";
        let moves_in = match call.query(MODE).filter(|mode| !mode.is_empty()) {
            Some(mode) if mode.eq_ignore_ascii_case("legacy") => false,
            Some(mode) if !mode.eq_ignore_ascii_case("posix") => {
                return Err(StorageError::invalid_query(MODE, mode, ""));
            }
            _ => true,
        };
        let named = if call.blob().is_empty() && moves_in {
            BlobName {
                container: ContainerName::of(call)?,
                blob: String::new(),
            }
        } else {
            BlobName::of_write(call)?
        };
        Ok(Destination {
            named,
            moves_in,
            source: source(call)?.0,
        })
    }

    /// Returns the path that the source gets.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`, 400 `OutOfRangeInput` for a path that is too long.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<BlobName, StorageError> {
        let named = &self.named;
        let is_directory = || -> Result<bool, StorageError> {
            let found = named.find_place(view, now)?.blob;
            Ok(found.is_some_and(|found| found.directory.is_some()))
        };
        let is_same = *named == self.source;
        if !self.moves_in || is_same || !(named.blob.is_empty() || is_directory()?) {
            return Ok(named.clone());
        }
        let parts =
            tree::segments(&named.blob).chain(tree::segments(&self.source.blob).next_back());
        let blob = parts.collect::<Vec<_>>().join("/");
        names::validate_blob_name(&blob)?;
        Ok(BlobName {
            blob,
            ..named.clone()
        })
    }
}

/// Checks that the caller of a rename may remove its source: by the signature in the source's
/// query, else by the credentials of the request. Where access control lists decide, the commit
/// checks them.
///
/// # Errors
/// 400 for a malformed source; 403 when the caller may not remove it.
pub fn check_source(core: &Core, call: &Call) -> Result<(), StorageError> {
    let (source, query) = source(call)?;
    auth::permit_removal(core, call, (source.container.container, source.blob), query)
}

/// The source, and the name and place of the destination.
pub struct Checked {
    source: Found,
    name: BlobName,
    place: Place,
}

impl Write for RenamePath {
    type Checked = Checked;
    type Output = (ETag, Timestamp);

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let metadata = call.metadata()?;
        check_empty(call)?;
        Ok(RenamePath {
            target: Destination::of(call)?,
            may_overwrite: call.identity.may('w'),
            guard: Guard::of_write(call)?,
            conditions: Conditions::of_source(&call.headers)?,
            source_lease: source_lease_id(call)?,
            metadata: (!metadata.is_empty()).then_some(metadata),
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let name = self.target.find(view, stamp.now)?;
        let place = name.find_place(view, stamp.now)?;
        let source = self
            .target
            .source
            .find(view, stamp.now)
            .map_err(|e| lost(&e))?;
        self.conditions.check_source((&source.blob).into())?;
        lease::check_write(Leased::Blob, source.blob.lease, self.source_lease)?;
        guard::check_settled(&source.blob)?;
        check_removable(view, &source, stamp.now)?;
        tree::check_way(place.container.generation)?;
        if place.container.generation == MISSING {
            return Err(ErrorCode::RenameDestinationParentPathNotFound.into());
        }
        let is_same = name == self.target.source;
        if source.blob.directory.is_some()
            && (is_same || is_inside(view, &name, &source, stamp.now)?)
        {
            return Err(ErrorCode::InvalidRenameSourcePath.into());
        }
        check_overwrite(self.may_overwrite || is_same, &place)?;
        self.guard.check_path(&place)?;
        if let Some(old) = place.blob.as_ref().filter(|_| !is_same) {
            guard::check_not_retained(old)?;
            match (source.blob.directory, old.directory) {
                (None, None) => {}
                (Some(_), Some(id)) if tree::is_empty(view, id, stamp.now)? => {}
                (Some(_), Some(_)) => return Err(ErrorCode::PathAlreadyExists.into()),
                _ => return Err(ErrorCode::InvalidSourceOrDestinationResourceType.into()),
            }
        }
        Ok(Checked {
            source,
            name,
            place,
        })
    }

    fn apply(
        self,
        Checked {
            source,
            name,
            place,
        }: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(ETag, Timestamp), StorageError> {
        let to = place.container.generation;
        let from = source.container.generation;
        let mut blob = source.blob;
        if let Some(metadata) = self.metadata {
            blob.metadata = metadata;
        }
        let outcome = (blob.etag, blob.last_modified);
        let old_name = self.target.source;
        if name == old_name {
            blob.save(tx, name.key(to))?;
            return Ok(outcome);
        }
        if let Some(old) = &place.blob {
            let spot = Spot {
                name: &name,
                generation: to,
            };
            pending::fail_readers(tx, &old.copied_to, stamp)?;
            if old.snapshots > 0 {
                spot.delete_snapshots(tx, stamp)?;
            }
            spot.delete_base(tx, old, stamp)?;
        } else {
            removal::make_room(tx, to, &name.blob, stamp.now)?;
        }
        pending::fail_readers(tx, &std::mem::take(&mut blob.copied_to), stamp)?;
        let (old, new) = (old_name.key(from), name.key(to));
        removal::forget(tx, old.clone(), &blob);
        if let Some(expires) = blob.expires {
            tx.put(keys::expiring(expires, &new), "");
        }
        if blob.directory.is_none() {
            move_parts(tx, (from, &old_name.blob), (to, &name.blob))?;
        }
        tx.delete(old);
        blob.save(tx, new)?;
        Ok(outcome)
    }

    fn render(
        (etag, last_modified): (ETag, Timestamp),
        call: &Call,
    ) -> Result<Reply, StorageError> {
        let reply = Reply::new(201);
        Ok(if call.version >= HAS_ETAG {
            reply.version(etag, last_modified)
        } else {
            reply
        })
    }
}

/// Whether a path is below the source.
fn is_inside(
    view: &dyn View,
    name: &BlobName,
    source: &Found,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let mut id = name.container.find(view, now)?.generation;
    for segment in tree::segments(&name.blob) {
        let found = BlobRecord::load(view, &keys::blob(id, segment))?;
        match found.and_then(|found| found.directory) {
            Some(next) if Some(next) == source.blob.directory => return Ok(true),
            Some(next) => id = next,
            None => break,
        }
    }
    Ok(false)
}

/// Moves what a file has besides its record: snapshots, uncommitted blocks, an event that waits.
fn move_parts(
    tx: &mut Transaction<'_>,
    from: (Generation, &str),
    to: (Generation, &str),
) -> StoreResult<()> {
    for prefix in [keys::snapshots, keys::blocks] {
        let (old, new) = (prefix(from.0, from.1), prefix(to.0, to.1));
        for key in removal::keys_from(tx, old.clone())? {
            let moved = [&new, key.get(old.len()..).unwrap_or_default()].concat();
            if let Some(value) = tx.get(&key)? {
                tx.put(moved, value);
            }
            tx.delete(key);
        }
    }
    let (old, new) = (
        keys::uncommitted(from.0, from.1),
        keys::uncommitted(to.0, to.1),
    );
    if let Some(value) = tx.get(&old)? {
        tx.put(new, value);
        tx.delete(old);
    }
    // An event that waits keeps the address at which its change was made.
    let (old, new) = (keys::waiting(from.0, from.1), keys::waiting(to.0, to.1));
    match tx.get(&old)? {
        Some(value) => {
            tx.put(new, value);
            tx.delete(old);
        }
        None => tx.delete(new),
    }
    Ok(())
}

/// Parses the source, `/file-system/path`, percent-encoded, and the parameters of its signature, if
/// it has one. A client of an address in path style may have written the account in front of it.
///
/// # Errors
/// 400 `MissingRequiredHeader`, 400 `InvalidSourceUri`.
fn source(call: &Call) -> Result<(BlobName, Vec<(String, String)>), StorageError> {
    let text = call.required_header(SOURCE)?;
    let refused = || StorageError::from(ErrorCode::InvalidSourceUri);
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let query = uri::parse_query(query).map_err(|_| refused())?;
    let path = uri::percent_decode(path).map_err(|_| refused())?;
    let path = path.trim_start_matches('/');
    let own = path
        .strip_prefix(call.account())
        .and_then(|rest| rest.strip_prefix('/'));
    let path = own.filter(|rest| rest.contains('/')).unwrap_or(path);
    let (container, blob) = path.split_once('/').ok_or_else(refused)?;
    let blob = blob.trim_matches('/');
    names::validate_container_name(container).map_err(|_| refused())?;
    names::validate_blob_name(blob).map_err(|_| refused())?;
    let container = ContainerName {
        account: call.account().to_owned(),
        container: container.to_owned(),
        settings: call.settings.clone(),
        data_lake: true,
        creator: call.subject().map(|subject| subject.id),
    };
    let blob = blob.to_owned();
    Ok((BlobName { container, blob }, query))
}

fn lost(error: &StorageError) -> StorageError {
    match error.code() {
        ErrorCode::BlobNotFound => ErrorCode::SourcePathNotFound.into(),
        _ => error.clone(),
    }
}
