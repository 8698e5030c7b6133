//! Restores one dead blob: copies it conditionally, verifies the copy, then deletes the dead copy
//! conditionally.

use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::{
    BlobId, BlobItem, BlobProperties, Conditions, CopyStatus, DeleteSnapshots, ErrorKind, Metadata,
    PortError, PortResult, StartCopy, Storage,
};
use tokio::time::Instant;

use crate::carried;
use crate::config::Collision;
use crate::decide;
use crate::destination;
use crate::provenance::{self, History};
use crate::shared::Core;
use crate::source;
use crate::state::Document;
use crate::undo::{Undo, Undone};
use crate::verify::{self, ComparedBlob, Unclear};

/// Initial and maximum delay between checks of a pending copy.
const POLL: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Maximum number of attempts to copy and to check the destination.
const ROUNDS_MAX: u32 = 4;

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

    /// Returns the alternative name beside an existing blob.
    pub(crate) fn beside(&self, place: &BlobId) -> Option<BlobId> {
        let kept = self.seen.etag.0.chars().filter(char::is_ascii_alphanumeric);
        let suffix = format!("~{}", kept.collect::<String>());
        let name = format!("{}{suffix}", place.name);
        let fits = !place.name.ends_with(&suffix) && destination::is_blob_name(&name);
        fits.then(|| BlobId::new(&place.container, name))
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
        None => match bring(core, dead, storage, &mut place, undo).await {
            Ok(()) => bury(core, dead).await,
            Err(ended) => ended,
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

/// Ensures that a verified copy exists at the original place or beside it.
async fn bring(
    core: &Core,
    dead: &Dead<'_>,
    storage: &dyn Storage,
    place: &mut BlobId,
    undo: &Undo,
) -> Result<(), RestoreResult> {
    let mut conditions = Conditions::absent();
    let mut made_container = false;
    for _ in 0..ROUNDS_MAX {
        let error = start(core, dead, storage, place, &conditions).await.err();
        match &error {
            Some(error) if error.kind == ErrorKind::NotFound => {
                // Either the dead copy or the original container is missing.
                let looked = head(core, dead.storage.as_ref(), &dead.blob).await;
                looked.map_err(|error| failed(&error))?;
                if made_container {
                    return Err(failed(error));
                }
                made_container = true;
                make_container(core, storage, &place.container).await?;
                continue;
            }
            Some(error) if !is_taken(error) => return Err(failed(error)),
            _ => {}
        }
        let there = match head(core, storage, place).await {
            Ok(there) => there,
            // The destination is free, so the refusal came from the dead copy.
            Err(e) if e.kind == ErrorKind::NotFound => return Err((Undone::Changed, None)),
            Err(error) => return Err(failed(&error)),
        };
        if dead.made(&there) {
            return settled(core, dead, storage, place, there).await;
        }
        if error.is_none() {
            return Err((
                Undone::Changed,
                Some("another client overwrote it immediately".into()),
            ));
        }
        match undo.on_collision {
            Collision::Fail => return Err((Undone::Collision, None)),
            Collision::Overwrite => conditions = Conditions::matching(&there.etag),
            Collision::Suffix => {
                *place = dead.beside(place).ok_or((Undone::Collision, None))?;
            }
        }
    }
    Err((Undone::Failed, Some("its old place kept changing".into())))
}

fn is_taken(error: &PortError) -> bool {
    matches!(
        error.kind,
        ErrorKind::AlreadyExists | ErrorKind::ConditionNotMet | ErrorKind::CopyPending
    )
}

async fn start(
    core: &Core,
    dead: &Dead<'_>,
    storage: &dyn Storage,
    place: &BlobId,
    conditions: &Conditions,
) -> Result<(), PortError> {
    let copy = StartCopy {
        source_url: source::url(core, dead.storage.as_ref(), &dead.blob, "undo").await?,
        source_if_match: Some(dead.seen.etag.clone()),
        metadata: Some(dead.metadata.clone()),
        conditions: conditions.clone(),
        synchronous: false,
        tags: dead.tags.clone(),
        tier: carried::tier(dead.seen),
    };
    let started = core.paced(storage, "undo").start_copy(place, &copy).await;
    started.map(|_| ())
}

async fn make_container(
    core: &Core,
    storage: &dyn Storage,
    name: &str,
) -> Result<(), RestoreResult> {
    let made = core.paced(storage, "undo").create_container(name).await;
    made.map(|_| ()).map_err(|error| failed(&error))
}

/// Waits until the copy ends, and verifies it.
async fn settled(
    core: &Core,
    dead: &Dead<'_>,
    storage: &dyn Storage,
    place: &BlobId,
    first: BlobProperties,
) -> Result<(), RestoreResult> {
    let began = Instant::now();
    let (mut wait, wait_max) = POLL;
    let mut there = first;
    loop {
        match there.copy.as_ref().map(|copy| copy.status) {
            Some(CopyStatus::Success) => return verified(core, dead, storage, place, &there).await,
            Some(CopyStatus::Pending) => {}
            _ => return Err((Undone::CopyFailed, None)),
        }
        if began.elapsed() >= core.config.dead.copy_deadline {
            let still = "the copy is still pending; undo it again later".to_owned();
            return Err((Undone::Incomplete, Some(still)));
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(wait_max);
        there = match head(core, storage, place).await {
            Ok(there) if dead.made(&there) => there,
            Ok(_) => return Err((Undone::Changed, None)),
            Err(error) => return Err(failed(&error)),
        };
    }
}

async fn verified(
    core: &Core,
    dead: &Dead<'_>,
    storage: &dyn Storage,
    place: &BlobId,
    there: &BlobProperties,
) -> Result<(), RestoreResult> {
    let source = ComparedBlob {
        account: &core.paced(dead.storage.as_ref(), "undo"),
        blob: &dead.blob,
        seen: dead.seen,
    };
    let copy = ComparedBlob {
        account: &core.paced(storage, "undo"),
        blob: place,
        seen: there,
    };
    match verify::is_equal(&source, &copy).await {
        Ok(true) => Ok(()),
        Ok(false) => Err((Undone::CopyFailed, None)),
        Err(Unclear::Source(error) | Unclear::Copy(error)) => Err(failed(&error)),
        Err(Unclear::Stopped) => {
            let unverified = "the copy is not verified; undo it again later".to_owned();
            Err((Undone::Incomplete, Some(unverified)))
        }
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
