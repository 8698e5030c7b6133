//! Checks a request against the permissions of the paths that it touches, in the commit that carries
//! it out.
//!
//! Source: "Access control lists (ACLs) in Azure Data Lake Storage", the table of permissions that
//! operations need. A holder of an account key, of a signature without `suoid`, or of a role
//! is not checked. Two simplifications: groups have no members, and the deletion of a directory is
//! not checked against the directories in it.

use smalt_protocol::{ErrorCode, Service, StorageError, Timestamp};

use super::rename;
use crate::call::Call;
use crate::keys;
use crate::keys::tree::is_hierarchical;
use crate::ops::lookup::{BlobName, ContainerName};
use crate::ops::tree;
use crate::records::{BlobRecord, Record};
use crate::register::{self, Entry};
use crate::rules::acl::{EXECUTE, Posix, READ, WRITE};
use crate::store::View;
use crate::target::Kind;

/// What a request needs, and who sends it.
pub struct Gate {
    user: String,
    container: ContainerName,
    path: String,
    need: Need,
    /// The source of a rename.
    source: Option<BlobName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// To reach the path.
    Reach,
    /// Permissions on the path itself; to add it, on its directory.
    Have(u8),
    /// To remove the path from its directory.
    Remove,
    /// To own the path.
    Own,
    /// A role, which the user does not have.
    Role,
}

impl Gate {
    /// Returns `None` when permissions do not matter to the request.
    ///
    /// # Errors
    /// 400 for a malformed name or `fsAction`.
    pub fn of(call: &Call) -> Result<Option<Self>, StorageError> {
        let subject = call.subject().filter(|subject| subject.is_checked);
        let entry = register::by_id(Service::Blob, call.operation);
        let (Some(subject), Some(entry), Service::Blob) = (subject, entry, call.service()) else {
            return Ok(None);
        };
        if call.container().is_empty() {
            return Err(refused());
        }
        let need = need(call, entry)?;
        let path = match entry.on {
            Kind::Container if call.blob().is_empty() => call
                .query("directory")
                .or_else(|| call.query("prefix"))
                .unwrap_or_default(),
            _ => call.blob(),
        };
        let renames = entry.id == RENAME;
        Ok(Some(Gate {
            user: subject.id,
            container: ContainerName::of(call)?,
            path: path.to_owned(),
            need,
            source: renames.then(|| rename::source(call)).transpose()?,
        }))
    }

    /// # Errors
    /// 403 `AuthorizationPermissionMismatch`, 404 `ContainerNotFound`.
    fn check(&self, view: &dyn View, now: Timestamp) -> Result<(), StorageError> {
        self.check_path(view, (&self.container, &self.path), self.need, now)?;
        if let Some(source) = &self.source {
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
            Need::Remove if !is_there => true,
            Need::Remove => parent.is_some_and(|parent| {
                let is_free = !parent.sticky || owns(&parent) || owns(&posix);
                is_free && may(&parent, WRITE | EXECUTE)
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

const RENAME: &str = "Path_Rename";

/// Returns what an operation needs, which follows from the permissions of a signature for it.
fn need(call: &Call, entry: &Entry) -> Result<Need, StorageError> {
    if let Some(action) = call.query("fsAction") {
        let bits = crate::rules::acl::parse_bits(action);
        let bits = bits.ok_or_else(|| StorageError::invalid_query("fsAction", action, ""))?;
        return Ok(Need::Have(bits));
    }
    let letters = entry.access.service_sas;
    let of_container = entry.on == Kind::Container;
    Ok(match letters.as_bytes() {
        [b'l', ..] if of_container => Need::Have(READ | EXECUTE),
        _ if of_container => Need::Role,
        [b'e', ..] => Need::Reach,
        [b'r', ..] => Need::Have(READ),
        [b'p', ..] => Need::Own,
        [b'd', ..] => Need::Remove,
        _ => Need::Have(WRITE),
    })
}

fn refused() -> StorageError {
    ErrorCode::AuthorizationPermissionMismatch.into()
}
