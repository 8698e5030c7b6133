//! Path - Update, setAccessControl: owner, group, permissions or access control list of a path.
//!
//! Source: "Path - Update". Recorded: the ETag stays.
//!
//! ```http
//! PATCH /devstoreaccount1/lake/2026?action=setAccessControl
//! x-ms-permissions: rwxrwx---
//!
//! 200 OK
//! x-ms-namespace-enabled: true
//! ```

use smalt_protocol::{ETag, ErrorCode, StorageError, Timestamp};

use super::{Path, Target, root_etag};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::guard::Guard;
use crate::records::Record;
use crate::reply::Reply;
use crate::rules::acl::{self, AclEntry, AclMode, Posix};
use crate::store::{Stamp, Transaction, View};

/// The setAccessControl action of Path - Update.
pub struct SetAccessControl {
    path: Path,
    guard: Guard,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<u16>,
    acl: Option<Vec<AclEntry>>,
    refuses_any: bool,
}

impl Write for SetAccessControl {
    type Checked = (Target, Posix);
    type Output = (ETag, Timestamp);

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let text = |name| -> Result<Option<&str>, StorageError> {
            Ok(call.header(name)?.filter(|text| !text.is_empty()))
        };
        let mode = text("x-ms-permissions")?;
        let acl = text("x-ms-acl")?;
        acl::check_one(mode.is_some(), acl.is_some())?;
        Ok(SetAccessControl {
            // Recorded: unlike other writes, this one does not ignore the asterisk.
            refuses_any: text("if-none-match")? == Some("*"),
            path: Path::of(call)?,
            guard: Guard::of_write(call)?,
            owner: text("x-ms-owner")?.map(str::to_owned),
            group: text("x-ms-group")?.map(str::to_owned),
            mode: mode.map(acl::parse_permissions).transpose()?,
            acl: acl
                .map(|acl| acl::parse_acl(acl, AclMode::Set))
                .transpose()?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<(Target, Posix), StorageError> {
        let target = self.path.find(view, stamp.now)?;
        if self.refuses_any {
            return Err(ErrorCode::ConditionNotMet.into());
        }
        let mut posix = match &target {
            Target::Root(container) => container.posix(),
            Target::Entry(found) => {
                self.guard.check_conditions(&found.blob)?;
                found.blob.posix()
            }
        };
        if let Some(owner) = &self.owner {
            posix.owner.clone_from(owner);
        }
        if let Some(group) = &self.group {
            posix.group.clone_from(group);
        }
        if let Some(mode) = self.mode {
            posix.set_mode(mode);
        }
        if let Some(acl) = &self.acl {
            let is_file = matches!(&target, Target::Entry(e) if e.blob.directory.is_none());
            acl::check_default(acl, !is_file)?;
            posix.change(AclMode::Set, acl)?;
        }
        Ok((target, posix))
    }

    fn apply(
        self,
        (target, posix): (Target, Posix),
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<(ETag, Timestamp), StorageError> {
        let posix = Some(Box::new(posix));
        match (target, self.path) {
            (Target::Root(mut container), Path::Root(name)) => {
                container.posix = posix;
                container.save(tx, name.key())?;
                Ok((root_etag(&container), container.last_modified))
            }
            (Target::Entry(found), Path::Entry(name)) => {
                let mut blob = found.blob;
                blob.posix = posix;
                blob.save(tx, name.key(found.container.generation))?;
                Ok((blob.etag, blob.last_modified))
            }
            _ => Err(StorageError::internal("a path changed its kind")),
        }
    }

    fn render((etag, last_modified): (ETag, Timestamp), _: &Call) -> Result<Reply, StorageError> {
        let reply = Reply::new(200).version(etag, last_modified);
        Ok(reply.header("x-ms-namespace-enabled", "true"))
    }
}
