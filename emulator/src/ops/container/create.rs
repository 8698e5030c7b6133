//! Create Container: creates an empty container.
//!
//! Source: "Create Container".
//!
//! ```http
//! PUT /devstoreaccount1/events?restype=container
//! x-ms-meta-team: billing
//!
//! 201 Created
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{ETag, ErrorCode, Metadata, StorageError, Timestamp};

use crate::call::Call;
use crate::keys::tree;
use crate::operation::Write;
use crate::ops::container::access::parse_public_access;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, PublicAccess, Record};
use crate::reply::Reply;
use crate::rules::encryption;
use crate::rules::lease::LeaseState;
use crate::store::{Stamp, Transaction, View};

/// The Create Container operation.
pub struct CreateContainer {
    name: ContainerName,
    fresh: Fresh,
    being_deleted_s: u64,
}

/// What a request says of a new container.
#[derive(Default)]
pub struct Fresh {
    metadata: Metadata,
    public_access: PublicAccess,
    encryption_scope: Option<(String, bool)>,
}

/// ETag and last-modified time of the new container.
pub struct Created {
    etag: ETag,
    last_modified: Timestamp,
}

impl Write for CreateContainer {
    type Checked = ();
    type Output = Created;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(CreateContainer {
            name: ContainerName::of(call)?,
            fresh: Fresh {
                metadata: call.metadata()?,
                public_access: parse_public_access(call)?,
                encryption_scope: parse_encryption_scope(call)?,
            },
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<(), StorageError> {
        check_free(view, &self.name, self.being_deleted_s, stamp.now)
    }

    fn apply(
        self,
        (): (),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Created, StorageError> {
        make(tx, &self.name, self.fresh, stamp)
    }

    fn render(created: Created, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(201).version(created.etag, created.last_modified))
    }
}

/// Writes a new container under a free name.
///
/// # Errors
/// When the store fails.
pub fn make(
    tx: &mut Transaction<'_>,
    name: &ContainerName,
    fresh: Fresh,
    stamp: &Stamp,
) -> Result<Created, StorageError> {
    let etag = stamp.etag();
    let generation = match name.settings.hierarchical_namespace {
        true => tree::directory(stamp.tick.ticks()),
        false => stamp.tick.ticks(),
    };
    let container = ContainerRecord {
        generation,
        etag,
        last_modified: stamp.now,
        metadata: fresh.metadata,
        public_access: fresh.public_access,
        policies: Vec::new(),
        lease: LeaseState::Available,
        deleted_at: None,
        retention_days: None,
        encryption_scope: fresh.encryption_scope,
        worm: Default::default(),
        posix: None,
    };
    container.save(tx, name.key())?;
    Ok(Created {
        etag,
        last_modified: stamp.now,
    })
}

/// Rejects a name that is taken.
///
/// # Errors
/// 409 `ContainerAlreadyExists`, 409 `ContainerBeingDeleted`.
pub fn check_free(
    view: &dyn View,
    name: &ContainerName,
    being_deleted_s: u64,
    now: Timestamp,
) -> Result<(), StorageError> {
    let Some(container) = name.load(view)? else {
        return Ok(());
    };
    match container.deleted_at {
        None => Err(ErrorCode::ContainerAlreadyExists.into()),
        Some(deleted_at) if now < deleted_at.plus_s(being_deleted_s) => {
            Err(StorageError::new(ErrorCode::ContainerBeingDeleted)
                .with_message("The specified container is being deleted. Try operation later."))
        }
        Some(_) => Ok(()),
    }
}

/// Parses the default encryption scope, and whether other scopes are forbidden. Nothing is
/// encrypted: the emulator only stores and shows the names.
fn parse_encryption_scope(call: &Call) -> Result<Option<(String, bool)>, StorageError> {
    const DENY: &str = "x-ms-deny-encryption-scope-override";
    let deny = match call.header(DENY)? {
        None => false,
        Some(text) if text.eq_ignore_ascii_case("true") => true,
        Some(text) if text.eq_ignore_ascii_case("false") => false,
        Some(text) => return Err(StorageError::invalid_header(DENY, text)),
    };
    let scope = call.header("x-ms-default-encryption-scope")?;
    if let Some(scope) = scope {
        encryption::check_scope(scope, call.settings.encryption_scopes.as_ref())?;
    }
    Ok(scope.map(|scope| (scope.to_owned(), deny)))
}
