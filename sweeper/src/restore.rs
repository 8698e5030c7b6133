//! Restores one dead blob: copies it conditionally, verifies the copy, then deletes the dead copy
//! conditionally.

use std::sync::Arc;

use smalt_sleeve::port::{
    BlobId, BlobItem, BlobProperties, Conditions, CopyStatus, DeleteSnapshots, ErrorKind, Metadata,
    PortError, PortResult, Storage,
};

use crate::carried;
use crate::config::Collision;
use crate::copying::{self, Copying, Maker, NoCopy};
use crate::decide;
use crate::destination;
use crate::provenance::{self, History};
use crate::shared::Core;
use crate::state::Document;
use crate::undo::{Undo, Undone};

pub(crate) struct Dead<'a> {
    storage: &'a Arc<dyn Storage>,
    blob: BlobId,
    seen: &'a BlobProperties,
    metadata: Metadata,
    tags: Option<Metadata>,
}

impl<'a> Dead<'a> {
    /// Creates it from a listed blob; `None` without an account for dead blobs.
    pub(crate) async fn new(core: &'a Core, container: &str, item: &'a BlobItem) -> Option<Self> {
        let name = core.config.dead.account.as_deref().unwrap_or("default");
        let seen = &item.properties;
        let policy = &core.config.policy;
        let storage = core.accounts.get(name)?;
        let blob = BlobId::new(container, &item.name);
        let tags = carried::tags(core, "undo", storage.as_ref(), &blob, seen).await;
        Some(Dead {
            storage,
            blob,
            seen,
            // Without permission to read the tags, the blob is restored without them.
            tags: tags.unwrap_or(None),
            metadata: provenance::restored(&seen.metadata, &policy.ttl_key, &policy.dbc_key),
        })
    }

    fn url(&self) -> String {
        self.storage.blob_url(&self.blob)
    }

    /// Returns whether the existing blob is a complete copy of exactly this one. Names of metadata
    /// read from headers have lost their case.
    fn made(&self, there: &BlobProperties) -> bool {
        let lower = |metadata: &Metadata| -> Metadata {
            let pairs = metadata.iter();
            pairs
                .map(|(n, v)| (n.to_ascii_lowercase(), v.clone()))
                .collect()
        };
        let source = there.copy.as_ref().and_then(|copy| copy.source.as_deref());
        let plain = source.and_then(|url| url.split('?').next());
        plain == Some(self.url().as_str()) && lower(&self.metadata) == lower(&there.metadata)
    }

    /// Ensures that a verified copy exists at the original place or beside it.
    async fn copy(
        &self,
        core: &Core,
        account: &dyn Storage,
        place: &mut BlobId,
        undo: &Undo,
    ) -> Result<(), NoCopy> {
        let copying = Copying {
            core,
            page: "undo",
            source: self.storage.as_ref(),
            blob: &self.blob,
            seen: self.seen,
            account,
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
            on_collision: undo.on_collision,
            creates_container: true,
            maker: &|there| match self.made(there) {
                true => Maker::Us,
                false => Maker::Other,
            },
        };
        copying.copy_to(place).await
    }

    /// Returns the alternative name beside an existing blob.
    pub(crate) fn beside(&self, place: &BlobId) -> Option<BlobId> {
        copying::beside(place, &self.seen.etag)
    }
}

/// Returns the account and blob that a dead blob came from, but only if the URL reads back exactly
/// as written, so that no other blob is mistaken for it.
pub(crate) fn origin(
    core: &Core,
    document: &Document,
    history: &History,
) -> Option<(Arc<dyn Storage>, BlobId)> {
    let (storage, blob) = core.accounts.by_url(document, &history.source_uri)?;
    let same = provenance::as_recorded(&storage.blob_url(&blob)) == history.source_uri;
    same.then_some((storage, blob))
}

/// Returns whether a sweep covers a place, so that it may have moved the blob from there: by the
/// state document, including elements that are off, or by the configuration. Without this check, a
/// dead blob's metadata could make an undo write anywhere.
pub(crate) fn is_swept(
    core: &Core,
    document: &Document,
    storage: &dyn Storage,
    source: &BlobId,
) -> bool {
    let config = &core.config;
    let same = |other: &dyn Storage| destination::same_account(other.account(), storage.account());
    let state = core.accounts.get(&config.state_account);
    if state.is_some_and(|state| same(state.as_ref()))
        && source.container == config.state_blob.container
    {
        return false;
    }
    let mut elements = document.containers.iter();
    let by_document = elements.any(|element| {
        let place = core.accounts.place(element);
        place.is_ok_and(|p| same(p.storage.as_ref()) && p.container == source.container)
            && source.name.starts_with(&element.prefix)
    });
    let by_config = config.containers.iter().any(|swept| {
        let account = core.accounts.get(&swept.account);
        account.is_some_and(|account| same(account.as_ref()))
            && swept.container == source.container
            && source.name.starts_with(&swept.prefix)
    });
    by_document || by_config
}

type RestoreResult = (Undone, Option<String>);

/// Restores the blob; returns its new place, the result and the reason.
pub(crate) async fn restore(
    core: &Core,
    dead: &Dead<'_>,
    storage: &dyn Storage,
    place: BlobId,
    undo: &Undo,
) -> (String, Undone, Option<String>) {
    let mut place = place;
    let ended = match fit(dead) {
        Some(undone) => (undone, None),
        None if undo.dry_run => foretell(core, dead, storage, &mut place, undo).await,
        None => match dead.copy(core, storage, &mut place, undo).await {
            Ok(()) => bury(core, dead).await,
            Err(why) => ended(why),
        },
    };
    let detail = ended.1.map(|detail| smalt_sleeve::redact(&detail));
    (storage.blob_url(&place), ended.0, detail)
}

/// Returns why the dead copy itself cannot be copied from, if so.
fn fit(dead: &Dead<'_>) -> Option<Undone> {
    let complete = match &dead.seen.copy {
        Some(copy) => copy.status == CopyStatus::Success,
        None => true,
    };
    if !complete {
        Some(Undone::Incomplete)
    } else if decide::is_archived(dead.seen) {
        Some(Undone::Archived)
    } else {
        None
    }
}

async fn head(core: &Core, storage: &dyn Storage, blob: &BlobId) -> PortResult<BlobProperties> {
    let looked = core.paced(storage, "undo").blob_properties(blob).await;
    looked.map(|(there, _)| there)
}

async fn foretell(
    core: &Core,
    dead: &Dead<'_>,
    storage: &dyn Storage,
    place: &mut BlobId,
    undo: &Undo,
) -> RestoreResult {
    match head(core, storage, place).await {
        Err(error) if error.kind == ErrorKind::NotFound => (Undone::Restored, None),
        Err(error) => failed(&error),
        Ok(there) if dead.made(&there) => (Undone::Restored, Some("it is already restored".into())),
        Ok(_) => match undo.on_collision {
            Collision::Fail => (Undone::Collision, None),
            Collision::Overwrite => (Undone::Restored, Some("overwrites the blob there".into())),
            Collision::Suffix => {
                if let Some(beside) = dead.beside(place) {
                    *place = beside;
                }
                (Undone::Restored, None)
            }
        },
    }
}

/// Deletes the dead copy once its content exists elsewhere.
async fn bury(core: &Core, dead: &Dead<'_>) -> RestoreResult {
    let conditions = Conditions::matching(&dead.seen.etag);
    let refuse = DeleteSnapshots::Refuse;
    let account = core.paced(dead.storage.as_ref(), "undo");
    match account.delete_blob(&dead.blob, &conditions, refuse).await {
        Ok(()) => (Undone::Restored, None),
        Err(error) if error.kind == ErrorKind::NotFound => (Undone::Restored, None),
        Err(error) => (Undone::CopyKept, Some(error.to_string())),
    }
}

/// Returns the result for a dead blob whose copy could not be made.
fn ended(why: NoCopy) -> RestoreResult {
    let later = |what: &str| Some(format!("{what}; undo it again later"));
    match why {
        NoCopy::Changed | NoCopy::Vanished => (Undone::Changed, None),
        NoCopy::Taken(_) => (Undone::Collision, None),
        NoCopy::Failed(_) => (Undone::CopyFailed, None),
        NoCopy::Restless => (Undone::Failed, Some("its old place kept changing".into())),
        NoCopy::Pending => (Undone::Incomplete, later("the copy is still pending")),
        NoCopy::Stopped => (Undone::Incomplete, later("the copy is not verified")),
        NoCopy::ContainerMissing => (Undone::Failed, Some("its container is missing".into())),
        NoCopy::InTheWay(error) | NoCopy::Call(error) | NoCopy::CopyChanged(error) => {
            failed(&error)
        }
    }
}

fn failed(error: &PortError) -> RestoreResult {
    let undone = match error.kind {
        ErrorKind::NotFound | ErrorKind::ConditionNotMet => Undone::Changed,
        ErrorKind::Denied => Undone::Denied,
        ErrorKind::Archived => Undone::Archived,
        ErrorKind::Leased => Undone::Collision,
        _ => Undone::Failed,
    };
    (undone, Some(error.to_string()))
}
