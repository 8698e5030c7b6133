//! Path - Update, setAccessControlRecursive: changes the access control lists of a path and of all
//! below it, in pages.
//!
//! Source: "Path - Update". Default entries are for directories only. Where access control lists
//! decide, a user changes the lists of the paths that the user owns; other paths are failures.
//!
//! ```http
//! PATCH /devstoreaccount1/lake/2026?action=setAccessControlRecursive&mode=modify
//! x-ms-acl: user:bob:r-x
//!
//! 200 OK
//!
//! {"directoriesSuccessful":6,"failedEntries":[],"failureCount":0,"filesSuccessful":25}
//! ```

use serde_json::json;
use smalt_protocol::limits::ACL_RECORDS_MAX;
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use super::list::CONTINUATION;
use super::{Path, Target, flag, number};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::container::list_blobs::marker::Position;
use crate::ops::container::list_blobs::tree::{Order, TreeWalk};
use crate::ops::container::list_blobs::walk::{Includes, Item, Range};
use crate::ops::lookup::{BlobName, ContainerName};
use crate::ops::tree;
use crate::records::{BlobRecord, Record};
use crate::reply::{Content, Reply};
use crate::rules::acl::{self, AclEntry, AclMode, Posix};
use crate::store::{Stamp, Transaction, View};

/// The setAccessControlRecursive action of Path - Update.
pub struct SetAccessControlRecursive {
    path: Path,
    container: ContainerName,
    mode: AclMode,
    acl: Vec<AclEntry>,
    most: usize,
    start: Option<Position>,
    /// The user whose ownership decides.
    user: Option<String>,
    ignores_failures: bool,
}

/// The paths of a page, each with its new list.
pub struct Checked {
    root: Option<Posix>,
    entries: Vec<(String, BlobRecord)>,
    /// Paths that the user does not own, and whether each is a directory.
    failed: Vec<(String, bool)>,
    next: Option<Position>,
}

/// What was changed.
pub struct Changed {
    directories: usize,
    files: usize,
    failed: Vec<(String, bool)>,
    next: Option<Position>,
}

impl Write for SetAccessControlRecursive {
    type Checked = Checked;
    type Output = Changed;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const MODE: &str = "mode";
        const MAX_RECORDS: &str = "maxRecords";
        let text = call.query(MODE).unwrap_or_default();
        let mode = match text.to_ascii_lowercase().as_str() {
            "set" => AclMode::Set,
            "modify" => AclMode::Modify,
            "remove" => AclMode::Remove,
            _ => return Err(StorageError::invalid_query(MODE, text, "")),
        };
        let checked = call.subject().filter(|subject| subject.is_checked);
        let most = match number(call, MAX_RECORDS)? {
            Some(0) => {
                let most = i64::try_from(ACL_RECORDS_MAX).unwrap_or(i64::MAX);
                return Err(StorageError::query_out_of_range(MAX_RECORDS, "0", 1, most));
            }
            given => given.map_or(ACL_RECORDS_MAX, |most| most.min(ACL_RECORDS_MAX)),
        };
        let continuation = call.query("continuation").filter(|text| !text.is_empty());
        Ok(SetAccessControlRecursive {
            path: Path::of(call)?,
            container: ContainerName::of(call)?,
            mode,
            acl: acl::parse_acl(call.required_header("x-ms-acl")?, mode)?,
            most: most as usize,
            start: continuation.map(Position::parse).transpose()?,
            user: checked.map(|subject| subject.id),
            ignores_failures: flag(call, "forceFlag")?.unwrap_or(false),
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let target = self.path.find(view, stamp.now)?;
        let mut checked = Checked {
            root: None,
            entries: Vec::new(),
            failed: Vec::new(),
            next: None,
        };
        let mut left = self.most;
        let prefix = match &self.path {
            Path::Root(_) => String::new(),
            Path::Entry(name) => {
                format!(
                    "{}/",
                    tree::segments(&name.blob).collect::<Vec<_>>().join("/")
                )
            }
        };
        let is_directory = match target {
            Target::Root(container) => {
                if self.start.is_none() {
                    checked.root = Some(self.changed(container.posix(), true)?);
                    left -= 1;
                }
                true
            }
            Target::Entry(found) => {
                let is_directory = found.blob.directory.is_some();
                if self.start.is_none() {
                    let path = prefix.trim_end_matches('/').to_owned();
                    checked.entries.push((path, self.changed_blob(found.blob)?));
                    left -= 1;
                }
                is_directory
            }
        };
        if is_directory {
            self.walk(view, prefix, left, stamp.now, &mut checked)?;
        }
        Ok(checked)
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Changed, StorageError> {
        let mut container = self.container.find(tx, stamp.now)?;
        let root = container.generation;
        let mut changed = Changed {
            directories: 0,
            files: 0,
            failed: checked.failed,
            next: checked.next,
        };
        if let Some(posix) = checked.root {
            container.posix = Some(Box::new(posix));
            container.save(tx, self.container.key())?;
            changed.directories += 1;
        }
        for (path, blob) in checked.entries {
            match blob.directory {
                Some(_) => changed.directories += 1,
                None => changed.files += 1,
            }
            let folder = tree::folder(tx, root, &path, stamp.now)?;
            let name = BlobName {
                container: self.container.clone(),
                blob: path,
            };
            blob.save(tx, name.key(folder))?;
        }
        Ok(changed)
    }

    fn render(changed: Changed, _: &Call) -> Result<Reply, StorageError> {
        let refused = StorageError::new(ErrorCode::AuthorizationPermissionMismatch);
        let failed = changed.failed.iter().map(|(name, is_directory)| {
            json!({
                "errorMessage": refused.message(),
                "name": name,
                "type": if *is_directory { "DIRECTORY" } else { "FILE" },
            })
        });
        let document = json!({
            "directoriesSuccessful": changed.directories,
            "failedEntries": failed.collect::<Vec<_>>(),
            "failureCount": changed.failed.len(),
            "filesSuccessful": changed.files,
        });
        // Recorded: the document has no content type.
        let document = format!("{document}\n");
        Ok(Reply::new(200)
            .content(Content::Bytes(document.into()))
            .header("x-ms-namespace-enabled", "true")
            .maybe(CONTINUATION, changed.next.map(|next| next.marker())))
    }
}

impl SetAccessControlRecursive {
    fn walk(
        &self,
        view: &dyn View,
        prefix: String,
        left: usize,
        now: Timestamp,
        checked: &mut Checked,
    ) -> Result<(), StorageError> {
        let range = Range {
            generation: self.container.find(view, now)?.generation,
            prefix,
            start: self.start.clone(),
            start_from: None,
            includes: Includes::default(),
        };
        let items = Some(left + 1);
        let mut walk = TreeWalk::new(view, &range, now, items, Order::Directories)?;
        let most = checked.entries.len() + left;
        while let Some(position) = walk.peek()? {
            if checked.entries.len() + checked.failed.len() == most {
                checked.next = Some(position);
                return Ok(());
            }
            let Some((position, Item::Blob(blob))) = walk.next()? else {
                continue;
            };
            if self.may_change(&blob) {
                let blob = self.changed_blob(*blob)?;
                checked.entries.push((position.name, blob));
                continue;
            }
            let is_directory = blob.directory.is_some();
            checked.failed.push((position.name, is_directory));
            if !self.ignores_failures {
                return Ok(());
            }
        }
        checked.next = walk.stopped()?;
        Ok(())
    }

    fn may_change(&self, blob: &BlobRecord) -> bool {
        let mut user = self.user.iter();
        user.all(|user| blob.posix().owner.eq_ignore_ascii_case(user))
    }

    fn changed_blob(&self, blob: BlobRecord) -> Result<BlobRecord, StorageError> {
        let posix = self.changed(blob.posix(), blob.directory.is_some())?;
        Ok(BlobRecord {
            posix: Some(Box::new(posix)),
            ..blob
        })
    }

    fn changed(&self, mut posix: Posix, is_directory: bool) -> Result<Posix, StorageError> {
        let of_kind = self.acl.iter().filter(|e| is_directory || !e.is_default);
        let entries: Vec<_> = of_kind.cloned().collect();
        posix.change(self.mode, &entries)?;
        Ok(posix)
    }
}
