//! Checks a request against the permissions of the paths that it touches, in the commit that
//! carries it out.
//!
//! Source: "Access control lists (ACLs) in Azure Data Lake Storage". A holder of an account key, of
//! a signature without `suoid`, or of a role is not checked. Two simplifications: groups have no
//! members, and the deletion of a directory is not checked against the directories in it.

use smalt_protocol::{ErrorCode, Service, StorageError, Timestamp};

use super::rename::Destination;
use crate::call::Call;
use crate::keys;
use crate::keys::tree::is_hierarchical;
use crate::ops::lookup::{BlobName, ContainerName};
use crate::ops::tree;
use crate::records::{BlobRecord, Record};
use crate::rules::acl::{EXECUTE, Need, Posix, READ, WRITE};
use crate::store::View;

/// To add and remove the children of a directory.
const CHANGE: u8 = WRITE | EXECUTE;

/// What a request needs, and who sends it.
pub struct Gate {
    user: String,
    container: ContainerName,
    path: String,
    need: Need,
    /// What a rename moves, and where.
    rename: Option<Destination>,
}

impl Gate {
    /// Returns `None` when permissions do not matter to the request.
    ///
    /// # Errors
    /// 400 for a malformed name, 403 `AuthorizationPermissionMismatch`.
    pub fn of(call: &Call) -> Result<Option<Self>, StorageError> {
        let subject = call.subject().filter(|subject| subject.is_checked);
        let (Some(subject), Service::Blob) = (subject, call.service()) else {
            return Ok(None);
        };
        if call.container().is_empty() || call.need == Need::Role {
            return Err(refused());
        }
        let listed = call.query("directory").or_else(|| call.query("prefix"));
        let path = match call.blob() {
            "" => listed.unwrap_or_default(),
            path => path,
        };
        let renames = call.need == Need::Rename;
        Ok(Some(Gate {
            user: subject.id,
            container: ContainerName::of(call)?,
            path: path.to_owned(),
            need: call.need,
            rename: renames.then(|| Destination::of(call)).transpose()?,
        }))
    }

    /// Returns what a copy needs of its source, which the caller's own identity opens and access
    /// control lists guard; `None` for a caller who is no user.
    pub fn of_source(call: &Call, source: &BlobName) -> Option<Self> {
        let subject = call.subject()?;
        Some(Gate {
            user: subject.id,
            container: source.container.clone(),
            path: source.blob.clone(),
            need: Need::Have(READ),
            rename: None,
        })
    }

    /// Checks the paths of the request.
    ///
    /// # Errors
    /// 403 `AuthorizationPermissionMismatch`, 404 `ContainerNotFound`.
    pub fn check(&self, view: &dyn View, now: Timestamp) -> Result<(), StorageError> {
        self.check_path(view, (&self.container, &self.path), self.need, now)?;
        if let Some(Destination { source, .. }) = &self.rename {
            let place = (&source.container, source.blob.as_str());
            self.check_path(view, place, Need::Remove, now)?;
        }
        Ok(())
    }

    fn check_path(
        &self,
        view: &dyn View,
        (container, path): (&ContainerName, &str),
        need: Need,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let root = container.find(view, now)?;
        if !is_hierarchical(root.generation) {
            return Ok(());
        }
        let mut id = Some(root.generation);
        let mut parent = None;
        // The last path on the way that exists, and whether it is the one that is asked for.
        let (mut posix, mut is_there) = (root.posix(), true);
        for segment in tree::segments(path) {
            is_there = false;
            let Some(folder) = id else {
                break;
            };
            self.require(posix.allows(&self.user, EXECUTE))?;
            let found = BlobRecord::load(view, &keys::blob(folder, segment))?;
            let Some(found) = found.filter(|found| found.is_there(now)) else {
                break;
            };
            id = found.directory;
            parent = Some(std::mem::replace(&mut posix, found.posix()));
            is_there = true;
        }
        let may = |posix: &Posix, bits| posix.allows(&self.user, bits);
        let owns = |posix: &Posix| posix.owner.eq_ignore_ascii_case(&self.user);
        self.require(match need {
            Need::Reach => true,
            Need::Role => false,
            Need::Own => is_there && owns(&posix),
            // Nothing is read.
            Need::Have(READ) if !is_there => true,
            // A path is added to the directory, or a part of it is listed.
            Need::Have(bits) if !is_there => may(&posix, bits | EXECUTE),
            Need::Have(bits) => may(&posix, bits),
            Need::Rename => {
                let moves_in = self.rename.as_ref().is_some_and(|to| to.moves_in);
                let is_folder = !is_there || moves_in && id.is_some();
                let folder = parent.as_ref().filter(|_| !is_folder);
                may(folder.unwrap_or(&posix), CHANGE)
            }
            Need::Remove if !is_there => true,
            Need::Remove => parent.is_some_and(|parent| {
                let is_free = !parent.sticky || owns(&parent) || owns(&posix);
                is_free && may(&parent, CHANGE)
            }),
        })
    }

    fn require(&self, holds: bool) -> Result<(), StorageError> {
        holds.then_some(()).ok_or_else(refused)
    }
}

/// Checks a request that has a gate.
///
/// # Errors
/// 403 `AuthorizationPermissionMismatch`, 404 `ContainerNotFound`.
pub fn check(gate: Option<&Gate>, view: &dyn View, now: Timestamp) -> Result<(), StorageError> {
    gate.map_or(Ok(()), |gate| gate.check(view, now))
}

fn refused() -> StorageError {
    ErrorCode::AuthorizationPermissionMismatch.into()
}
