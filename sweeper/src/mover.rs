//! Moves a blob: copies it, verifies the copy, then deletes the source, each step conditionally.
//!
//! At any time the content is in its source or in a verified copy (SS3). A finished copy is never
//! removed, even if the source has changed in the meantime: another worker may have deleted that
//! version because of this copy, and a delete whose response was lost looks the same. A left-over
//! copy costs bytes, a removed one data.

use std::sync::Arc;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, BlobProperties, Conditions, CopyStatus, ErrorKind, Metadata, PortError, StartCopy,
    metadata_value,
};
use tokio::time::Instant;

use crate::calls::lock;
use crate::carried;
use crate::claim::ClaimedPage;
use crate::config::Collision;
use crate::destination::{self, Destination};
use crate::outcome::Outcome;
use crate::paced::Paced;
use crate::provenance::{self, Origin};
use crate::shared::{Core, Made};
use crate::source;
use crate::verify::{self, ComparedBlob, Unclear};
use crate::work::{self, Done};

/// Initial and maximum delay between checks of a pending copy.
const POLL: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Maximum number of attempts to copy and to check the destination.
const ROUNDS_MAX: u32 = 6;

pub(crate) struct Moving<'a> {
    pub(crate) core: &'a Core,
    pub(crate) page: &'a ClaimedPage,
    pub(crate) blob: &'a BlobId,
    pub(crate) seen: &'a BlobProperties,
    pub(crate) due: Timestamp,
}

enum Standing {
    Nothing,
    Ours,
    /// An aborted or failed copy of this version.
    Broken(BlobProperties),
    /// A copy of another version of the same source.
    Earlier(BlobProperties),
    Foreign(BlobProperties),
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
    let account = &moving.core.paced(account, &moving.page.page.id);
    let source = moving.page.place.storage.as_ref();
    let origin = Origin::new(&source.blob_url(moving.blob), &moving.seen.etag);
    let mut place = BlobId::new(&destination.container, &destination.name);
    ensure_container(moving, account, &place.container, false).await?;
    let tags = tags(moving).await?;
    let mut conditions = Conditions::absent();
    let mut broken = 0;
    for _ in 0..ROUNDS_MAX {
        if source.blob_url(moving.blob) == account.storage.blob_url(&place) {
            return Err(Outcome::DbcSelf.into());
        }
        let started = start(moving, account, &place, &origin, &conditions, &tags).await;
        let error = started.err();
        if let Some(error) = &error {
            judge_start(moving, account, &place, error).await?;
        }
        match look(moving, account, &place, &origin, error.is_none()).await? {
            Standing::Ours => return Ok(()),
            Standing::Nothing
                if error
                    .as_ref()
                    .is_some_and(|e| e.kind == ErrorKind::NotFound) =>
            {
                conditions = Conditions::absent();
            }
            // The destination is free, but the copy was refused: the source has changed.
            Standing::Nothing if error.is_some() => return Err(Outcome::Changed.into()),
            Standing::Nothing => {
                let detail = "another client deleted the copy";
                return Err(Done::with(Outcome::CopyFailed, detail));
            }
            // The condition allowed this blob to be overwritten, so the refusal came from the
            // source.
            Standing::Broken(there) | Standing::Earlier(there) | Standing::Foreign(there)
                if error.is_some() && conditions.if_match.as_ref() == Some(&there.etag) =>
            {
                return Err(Outcome::Changed.into());
            }
            Standing::Broken(there) => {
                broken += u32::from(error.is_none());
                if broken > 1 {
                    return Err(failed(there));
                }
                conditions = Conditions::matching(&there.etag);
            }
            Standing::Earlier(there) | Standing::Foreign(there)
                if config.on_collision == Collision::Overwrite =>
            {
                conditions = Conditions::matching(&there.etag);
            }
            Standing::Foreign(_) if config.on_collision == Collision::Fail => {
                let detail = format!("{}/{} is taken", place.container, place.name);
                return Err(Done::with(Outcome::Collision, detail));
            }
            Standing::Earlier(_) | Standing::Foreign(_) => {
                place = beside(moving, &place, &origin)?;
                conditions = Conditions::absent();
            }
        }
    }
    let kept = "the destination kept changing";
    Err(Done::with(Outcome::CopyFailed, kept))
}

/// Reports an aborted or failed copy with the service's own description.
fn failed(there: BlobProperties) -> Done {
    let detail = there.copy.and_then(|copy| copy.description);
    let detail = detail.unwrap_or_else(|| "the copy was aborted or failed".to_owned());
    Done::with(Outcome::CopyFailed, detail)
}

/// Returns the alternative name beside an existing blob. It contains the version, so that a later
/// worker finds the same copy.
fn beside(moving: &Moving<'_>, place: &BlobId, origin: &Origin) -> Result<BlobId, Done> {
    let suffix = origin.suffix();
    let name = format!("{}{suffix}", place.name);
    let taken = place.name.ends_with(&suffix);
    let itself = name == moving.blob.name && place.container == moving.blob.container;
    if taken || itself || !destination::is_blob_name(&name) {
        return Err(Done::with(
            Outcome::Collision,
            format!("{name} is also taken"),
        ));
    }
    Ok(BlobId::new(&place.container, name))
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

async fn start(
    moving: &Moving<'_>,
    account: &Paced<'_>,
    place: &BlobId,
    origin: &Origin,
    conditions: &Conditions,
    tags: &Option<Metadata>,
) -> Result<(), PortError> {
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
    let metadata = metadata.ok_or_else(|| too_much_metadata(blob))?;
    let copy = StartCopy {
        source_url: source::url(core, page.place.storage.as_ref(), blob, &page.page.id).await?,
        source_if_match: Some(seen.etag.clone()),
        metadata: Some(metadata),
        conditions: conditions.clone(),
        synchronous: false,
        tags: tags.clone(),
        tier: carried::tier(seen),
    };
    account.start_copy(place, &copy).await.map(|_| ())
}

fn too_much_metadata(blob: &BlobId) -> PortError {
    let why = "cannot add the ETag that the copy is recognised by: the blob's metadata would \
               exceed 8 KiB";
    let resource = format!("{}/{}", blob.container, blob.name);
    PortError::new(ErrorKind::Invalid, "Copy Blob", resource, why)
}

/// Ends the move if the refusal of the copy is conclusive. After 409 and 412 the destination has to
/// be checked, because they do not say what is in the way.
async fn judge_start(
    moving: &Moving<'_>,
    account: &Paced<'_>,
    place: &BlobId,
    error: &PortError,
) -> Result<(), Done> {
    let is_code = |code: &str| error.code.as_deref() == Some(code);
    let suffixes = moving.core.config.dead.on_collision == Collision::Suffix;
    match error.kind {
        ErrorKind::AlreadyExists | ErrorKind::ConditionNotMet | ErrorKind::CopyPending => Ok(()),
        // The source, the destination container or both are missing; a missing source is the
        // owner's decision.
        ErrorKind::NotFound => {
            let Moving {
                core, page, blob, ..
            } = moving;
            let source = page.source(core).blob_properties(blob).await;
            source.map_err(|error| work::failed(&error))?;
            ensure_container(moving, account, &place.container, true).await
        }
        ErrorKind::Leased => Err(Done::with(Outcome::Collision, error)),
        _ if is_code("ResourceTypeMismatch") && suffixes => Ok(()),
        // In a hierarchical account there is a directory in place of the copy, or a blob in place
        // of its directory.
        _ if is_code("ResourceTypeMismatch") || is_code("PathConflict") => {
            Err(Done::with(Outcome::Collision, error))
        }
        _ => Err(work::failed(error)),
    }
}

/// Waits until the copy at the destination is decided (DS3). `fresh` is true if this worker has
/// just started it. An older, complete copy that no longer equals the source was overwritten and
/// counts as a foreign blob.
async fn look(
    moving: &Moving<'_>,
    account: &Paced<'_>,
    place: &BlobId,
    origin: &Origin,
    fresh: bool,
) -> Result<Standing, Done> {
    let core = moving.core;
    let began = Instant::now();
    let (mut wait, wait_max) = POLL;
    loop {
        let there = match account.blob_properties(place).await {
            Ok((there, _)) => there,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Standing::Nothing),
            Err(error) => return Err(work::failed(&error)),
        };
        if origin.made_earlier(&there.metadata) {
            return Ok(Standing::Earlier(there));
        }
        if !origin.made_blob(&there) {
            return Ok(Standing::Foreign(there));
        }
        match there.copy.as_ref().map(|copy| copy.status) {
            Some(CopyStatus::Pending) => {}
            Some(CopyStatus::Aborted | CopyStatus::Failed) => return Ok(Standing::Broken(there)),
            Some(CopyStatus::Success) | None => {
                return match (verified(moving, account, place, &there).await?, fresh) {
                    (true, _) => Ok(Standing::Ours),
                    (false, false) => Ok(Standing::Foreign(there)),
                    (false, true) => Err(Done::with(
                        Outcome::CopyFailed,
                        "the copy differs from its source",
                    )),
                };
            }
        }
        if began.elapsed() >= core.config.dead.copy_deadline {
            return Err(Done::with(Outcome::Deferred, "the copy is still pending"));
        }
        if core.stop.is_set() {
            return Err(Outcome::Stopped.into());
        }
        core.stop.sleep(wait).await;
        wait = (wait * 2).min(wait_max);
    }
}

async fn verified(
    moving: &Moving<'_>,
    account: &Paced<'_>,
    place: &BlobId,
    there: &BlobProperties,
) -> Result<bool, Done> {
    let source = ComparedBlob {
        account: &moving.page.source(moving.core),
        blob: moving.blob,
        seen: moving.seen,
    };
    let copy = ComparedBlob {
        account,
        blob: place,
        seen: there,
    };
    let equal = verify::is_equal(&source, &copy).await;
    equal.map_err(|unclear| match unclear {
        Unclear::Source(error) => work::failed(&error),
        // Another client changed the copy; a later cycle decides again.
        Unclear::Copy(error) => Done::with(Outcome::Deferred, error),
        Unclear::Stopped => Outcome::Stopped.into(),
    })
}

/// Creates the destination container once per worker (S11, DS20), however many blobs move there
/// concurrently; creates it again if it was found missing.
async fn ensure_container(
    moving: &Moving<'_>,
    account: &Paced<'_>,
    container: &str,
    missing: bool,
) -> Result<(), Done> {
    let core = moving.core;
    let key = (account.storage.account().to_owned(), container.to_owned());
    if !core.config.dead.create_container {
        return if missing {
            Err(Done::with(
                Outcome::DbcMissing,
                format!("container {container} is missing"),
            ))
        } else {
            Ok(())
        };
    }
    let made = if missing {
        // Later callers wait for this new call, or find it done.
        let anew = Made::default();
        lock(&core.made).insert(key, Arc::clone(&anew));
        anew
    } else {
        Arc::clone(lock(&core.made).entry(key).or_default())
    };
    let make = async || account.create_container(container).await.map(|_| ());
    let made = made.get_or_try_init(make).await;
    made.copied().map_err(|error| work::failed(&error))
}
