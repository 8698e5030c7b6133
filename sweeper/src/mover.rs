//! Moves a blob: copies it, verifies the copy, then deletes the source, each step conditionally.
//!
//! At any time the content is in its source or in a verified copy (SS3). A finished copy is never
//! removed, even if the source has changed in the meantime: another worker may have deleted that
//! version because of this copy, and a delete whose response was lost looks the same. A left-over
//! copy costs bytes, a removed one data.

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobId, BlobProperties, ErrorKind, Metadata, PortError, metadata_value};

use crate::carried;
use crate::claim::ClaimedPage;
use crate::copying::{Copying, Maker, NoCopy};
use crate::destination::Destination;
use crate::outcome::Outcome;
use crate::provenance::{self, Origin};
use crate::shared::Core;
use crate::work::{self, Done};

pub(crate) struct Moving<'a> {
    pub(crate) core: &'a Core,
    pub(crate) page: &'a ClaimedPage,
    pub(crate) blob: &'a BlobId,
    pub(crate) seen: &'a BlobProperties,
    pub(crate) due: Timestamp,
}

pub(crate) async fn move_blob(moving: &Moving<'_>, destination: &Destination) -> Done {
    match copy(moving, destination).await {
        Ok(()) => {}
        Err(done) => return done,
    }
    let Moving {
        core,
        page,
        blob,
        seen,
        ..
    } = moving;
    match work::delete(core, page, blob, seen).await {
        Ok(()) => Outcome::Moved.into(),
        // The copy is complete, so the blob has moved, whoever deleted the source.
        Err(error) if error.kind == ErrorKind::NotFound => Outcome::Moved.into(),
        Err(error) => work::failed(&error),
    }
}

/// Ensures that a verified copy of this version exists at the destination or beside it.
async fn copy(moving: &Moving<'_>, destination: &Destination) -> Result<(), Done> {
    let config = &moving.core.config.dead;
    let name = config.account.as_deref().unwrap_or_default();
    let account = moving.core.accounts.get(name);
    let account = account.ok_or(Outcome::DbcUnconfigured)?.as_ref();
    let source = moving.page.place.storage.as_ref();
    let url = source.blob_url(moving.blob);
    let origin = Origin::new(&url, &moving.seen.etag);
    let mut place = BlobId::new(&destination.container, &destination.name);
    if url == account.blob_url(&place) {
        return Err(Outcome::DbcSelf.into());
    }
    let metadata = metadata(moving, &origin);
    let copying = Copying {
        core: moving.core,
        page: &moving.page.page.id,
        source,
        blob: moving.blob,
        seen: moving.seen,
        account,
        metadata: metadata.map_err(|error| work::failed(&error))?,
        tags: tags(moving).await?,
        on_collision: config.on_collision,
        creates_container: config.create_container,
        maker: &|there| {
            if origin.made_earlier(&there.metadata) {
                Maker::UsEarlier
            } else if origin.made_blob(there) {
                Maker::Us
            } else {
                Maker::Other
            }
        },
    };
    let ended = |why| done(why, destination);
    if config.create_container {
        let made = copying.make_container(&place.container, false).await;
        made.map_err(ended)?;
    }
    copying.copy_to(&mut place).await.map_err(ended)
}

/// Returns the outcome of a blob whose copy could not be made.
fn done(why: NoCopy, destination: &Destination) -> Done {
    match why {
        NoCopy::Changed => Outcome::Changed.into(),
        NoCopy::Taken(detail) => Done::with(Outcome::Collision, detail),
        NoCopy::InTheWay(error) => Done::with(Outcome::Collision, error),
        NoCopy::Failed(detail) => Done::with(Outcome::CopyFailed, detail),
        NoCopy::Vanished => Done::with(Outcome::CopyFailed, "another client deleted the copy"),
        NoCopy::Restless => Done::with(Outcome::CopyFailed, "the destination kept changing"),
        NoCopy::Pending => Done::with(Outcome::Deferred, "the copy is still pending"),
        NoCopy::Stopped => Outcome::Stopped.into(),
        NoCopy::ContainerMissing => Done::with(
            Outcome::DbcMissing,
            format!("container {} is missing", destination.container),
        ),
        NoCopy::Call(error) => work::failed(&error),
        // A later cycle decides again.
        NoCopy::CopyChanged(error) => Done::with(Outcome::Deferred, error),
    }
}

/// Returns the source's index tags, according to policy and permissions.
async fn tags(moving: &Moving<'_>) -> Result<Option<Metadata>, Done> {
    let Moving {
        core, page, blob, ..
    } = moving;
    let storage = page.place.storage.as_ref();
    let read = carried::tags(core, &page.page.id, storage, blob, moving.seen).await;
    read.map_err(|error| match carried::is_forbidden(&error) {
        true => Done::with(Outcome::TagsDenied, error),
        false => work::failed(&error),
    })
}

/// Returns the metadata of the copy: the blob's own and its history.
fn metadata(moving: &Moving<'_>, origin: &Origin) -> Result<Metadata, PortError> {
    let Moving {
        core,
        page,
        blob,
        seen,
        due,
    } = moving;
    let policy = core.policy();
    let optional = if core.config.dead.add_metadata {
        // The most important values come first; the last ones are dropped if they do not all fit.
        let mut said = vec![
            (provenance::SWEEP_ID, page.page.id.clone()),
            (provenance::DELETED_DUE, due.iso_s()),
            (provenance::SOURCE_LAST_MODIFIED, seen.last_modified.iso_s()),
        ];
        for (name, key) in [
            (provenance::ORIGINAL_DBC, &policy.dbc_key),
            (provenance::ORIGINAL_TTL, &policy.ttl_key),
        ] {
            let value = metadata_value(&seen.metadata, key);
            said.extend(value.map(|value| (name, value.to_owned())));
        }
        said
    } else {
        Vec::new()
    };
    let dropped = [policy.ttl_key.as_str(), policy.dbc_key.as_str()];
    let metadata = provenance::metadata(&seen.metadata, &dropped, origin, &optional);
    metadata.ok_or_else(|| {
        let why = "cannot add the ETag that the copy is recognised by: the blob's metadata would \
                   exceed 8 KiB";
        let resource = format!("{}/{}", blob.container, blob.name);
        PortError::new(ErrorKind::Invalid, "Copy Blob", resource, why)
    })
}
