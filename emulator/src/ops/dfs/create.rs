//! Path - Create: makes a file or a directory, and the directories above it.
//!
//! Source: "Path - Create".
//!
//! ```http
//! PUT /devstoreaccount1/lake/2026/11/events.parquet?resource=file
//! If-None-Match: *
//!
//! 201 Created
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, Metadata, StorageError};

use super::{check_empty, check_overwrite, content_headers, resource_type};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::expiry::{self, Expiry};
use crate::ops::blob::guard::Guard;
use crate::ops::blob::headers::{self, CONTENT_TYPE_DEFAULT};
use crate::ops::blob::removal;
use crate::ops::blob::replace::{self, Marks, NewBlob};
use crate::ops::leasing;
use crate::ops::lookup::{BlobName, Place};
use crate::ops::tree;
use crate::records::{Access, BlobContent, BlobKind, BlobRecord, ContentHeaders, Record};
use crate::reply::Reply;
use crate::rules::acl::{self, AclEntry, AclMode, Posix};
use crate::rules::encryption::{Encryption, Requested};
use crate::rules::lease::{Action, Leased, act};
use crate::store::{Stamp, Transaction, View};

/// Header that says what a path is that exists already. ABFS takes a directory for success.
const EXISTING: &str = "x-ms-existing-resource-type";
/// Since this version, the response says that the request is encrypted, as recorded.
const TELLS_ENCRYPTION: ApiVersion = ApiVersion::V2020_06_12;
/// Since this version, a file can have an encryption context. Hadoop's ABFS asks for this version
/// when it sends one.
const HAS_CONTEXT: ApiVersion = ApiVersion::V2021_04_10;

/// The Path - Create operation.
pub struct CreatePath {
    name: BlobName,
    is_directory: bool,
    may_overwrite: bool,
    guard: Guard,
    headers: ContentHeaders,
    metadata: Metadata,
    encryption: Requested,
    rights: Rights,
    lease: Option<Action>,
    expiry: Option<Expiry>,
    encryption_context: Option<String>,
}

/// What a request says of owner and permissions.
struct Rights {
    mode: Option<u16>,
    umask: u16,
    acl: Option<Vec<AclEntry>>,
    owner: Option<String>,
    group: Option<String>,
}

impl Rights {
    fn of(call: &Call) -> Result<Self, StorageError> {
        let text = |name| -> Result<Option<String>, StorageError> {
            let given = call.header(name)?.filter(|text| !text.is_empty());
            Ok(given.map(str::to_owned))
        };
        let mode = text("x-ms-permissions")?;
        let umask = text(acl::UMASK)?;
        let acl = text("x-ms-acl")?;
        acl::check_one(mode.is_some(), acl.is_some())?;
        Ok(Rights {
            mode: mode.as_deref().map(acl::parse_permissions).transpose()?,
            umask: match umask.as_deref() {
                Some(umask) => acl::parse_umask(umask)?,
                None => acl::UMASK_DEFAULT,
            },
            acl: acl
                .as_deref()
                .map(|acl| acl::parse_acl(acl, AclMode::Set))
                .transpose()?,
            owner: text("x-ms-owner")?,
            group: text("x-ms-group")?,
        })
    }

    fn of_new(
        &self,
        is_directory: bool,
        parent: &Posix,
        creator: Option<&str>,
    ) -> Result<Posix, StorageError> {
        let mut posix = Posix::of_new(is_directory, self.mode, self.umask, Some(parent))
            .created_by(creator, parent);
        if let Some(acl) = &self.acl {
            acl::check_default(acl, is_directory)?;
            posix.change(AclMode::Set, acl)?;
        }
        if let Some(owner) = &self.owner {
            posix.owner.clone_from(owner);
        }
        if let Some(group) = &self.group {
            posix.group.clone_from(group);
        }
        Ok(posix)
    }
}

/// The place of the new path, and what it gets.
pub struct Checked {
    place: Place,
    posix: Posix,
    encryption: Option<Encryption>,
}

impl Write for CreatePath {
    type Checked = Checked;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        check_empty(call)?;
        let is_leased = call.headers.contains_key(leasing::PROPOSED_LEASE_ID);
        let mut headers = content_headers(call)?;
        let usual = || CONTENT_TYPE_DEFAULT.to_owned();
        headers.content_type.get_or_insert_with(usual);
        let is_directory = call
            .query("resource")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("directory"));
        let expiry = Expiry::of_creation(call)?;
        if is_directory && expiry.is_some() {
            return Err(ErrorCode::InvalidHeaderValue.into());
        }
        let context = call.header("x-ms-encryption-context")?;
        let context = context.filter(|text| !text.is_empty());
        let has_context = !is_directory && call.version >= HAS_CONTEXT;
        Ok(CreatePath {
            name: BlobName::of_write(call)?,
            is_directory,
            may_overwrite: call.identity.may('w'),
            guard: Guard::of_write(call)?,
            headers,
            metadata: call.metadata()?,
            encryption: headers::encryption(call)?,
            rights: Rights::of(call)?,
            lease: is_leased.then(|| leasing::acquire(call)).transpose()?,
            expiry,
            encryption_context: context.filter(|_| has_context).map(str::to_owned),
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let place = self.name.find_place(view, stamp.now)?;
        tree::check_way(place.container.generation)?;
        // Recorded: the refusal of a file does not say what exists.
        let existing = place.blob.as_ref().filter(|_| self.is_directory);
        let taken = |code: ErrorCode| match existing {
            Some(blob) => {
                let kind = resource_type(blob.directory);
                StorageError::new(code).with_header(EXISTING, kind)
            }
            None => code.into(),
        };
        check_overwrite(self.may_overwrite, &place)?;
        let guarded = self.guard.check_path(&place);
        guarded.map_err(|error| match error.code() {
            ErrorCode::BlobAlreadyExists => taken(ErrorCode::PathAlreadyExists),
            _ => error,
        })?;
        if let Some(blob) = &place.blob
            && blob.directory.is_some() != self.is_directory
        {
            return Err(taken(ErrorCode::PathConflict));
        }
        self.expiry
            .map_or(Ok(()), |expiry| expiry.check(stamp.now))?;
        if let Some(action) = self.lease {
            let state = place.blob.as_ref().map(|blob| blob.lease);
            act(Leased::Blob, state.unwrap_or_default(), action, stamp.now)?;
        }
        let encryption = self.encryption.of_new(&place.container.encryption_scope)?;
        let parent = tree::parent_posix(view, &self.name, stamp.now)?;
        let creator = self.name.container.creator.as_deref();
        let posix = self.rights.of_new(self.is_directory, &parent, creator)?;
        Ok(Checked {
            place,
            posix,
            encryption,
        })
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let Checked {
            mut place,
            posix,
            encryption,
        } = checked;
        let name = &self.name;
        let folder = tree::make_folder(tx, name, place.container.generation, stamp)?;
        place.container.generation = folder;
        let mut blob = if self.is_directory {
            let made = match place.blob {
                Some(old) => old,
                None => {
                    removal::make_room(tx, folder, &name.blob, stamp.now)?;
                    tree::new_directory(tx, posix, stamp)?
                }
            };
            BlobRecord {
                etag: stamp.etag(),
                last_modified: stamp.now,
                headers: self.headers,
                metadata: self.metadata,
                encryption,
                lease: made.lease.after_write(),
                ..made
            }
        } else {
            let new = NewBlob {
                kind: BlobKind::Block,
                length: 0,
                content: BlobContent::Empty,
                headers: self.headers,
                metadata: self.metadata,
                tags: Vec::new(),
                access: Access::default(),
                copy: None,
                encryption,
                sequence_number: 0,
                marks: Marks::default(),
            };
            let blob = replace::replace(tx, name, &place, new, stamp)?;
            removal::drop_uncommitted(tx, folder, &name.blob)?;
            BlobRecord {
                posix: Some(Box::new(posix)),
                encryption_context: self.encryption_context,
                ..blob
            }
        };
        if let Some(action) = self.lease {
            blob.lease = act(Leased::Blob, blob.lease, action, stamp.now)?.state;
        }
        let expires = self
            .expiry
            .and_then(|expiry| expiry.of_blob(stamp.now, stamp.now));
        if expires.is_some() {
            expiry::set(tx, name.key(folder), &mut blob, expires)?;
        } else {
            blob.save(tx, name.key(folder))?;
        }
        Ok(blob)
    }

    fn render(blob: BlobRecord, call: &Call) -> Result<Reply, StorageError> {
        let told = (call.version >= TELLS_ENCRYPTION).then_some("true");
        let key = blob.encryption.as_ref().map(Encryption::header);
        let reply = Reply::new(201)
            .version(blob.etag, blob.last_modified)
            .maybe("x-ms-request-server-encrypted", told);
        Ok(match key {
            Some((name, value)) => reply.header(name, value),
            None => reply,
        })
    }
}
