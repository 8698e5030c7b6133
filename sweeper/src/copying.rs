//! Copies one version of a blob and verifies the copy: for a move, and for its undo.
//!
//! Each step is conditional on the version that was read. A copy that an earlier worker made is
//! recognised and used.

use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::{
    BlobId, BlobProperties, Conditions, CopyStatus, ErrorKind, Metadata, PortError, StartCopy,
    Storage, Tag,
};
use tokio::time::Instant;

use crate::calls::lock;
use crate::carried;
use crate::config::Collision;
use crate::destination;
use crate::paced::Paced;
use crate::provenance::Origin;
use crate::shared::{Core, Made};
use crate::source;
use crate::verify::{self, ComparedBlob, Unclear};

/// Initial and maximum delay between checks of a pending copy.
const POLL: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Maximum number of attempts to copy and to check the destination.
const ROUNDS_MAX: u32 = 6;

/// Who made a blob at the destination.
pub(crate) enum Maker {
    /// A sweep or an undo, as a copy of this version.
    Us,
    /// A sweep, as a copy of another version of the same source.
    UsEarlier,
    Other,
}

/// One version of a blob, and where and how it is copied.
pub(crate) struct Copying<'a> {
    pub(crate) core: &'a Core,
    /// The page or the command that makes the calls.
    pub(crate) page: &'a str,
    pub(crate) source: &'a dyn Storage,
    pub(crate) blob: &'a BlobId,
    pub(crate) seen: &'a BlobProperties,
    /// The account of the copy.
    pub(crate) account: &'a dyn Storage,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Option<Metadata>,
    pub(crate) on_collision: Collision,
    pub(crate) creates_container: bool,
    pub(crate) maker: &'a (dyn Fn(&BlobProperties) -> Maker + Sync),
}

/// Why there is no verified copy.
pub(crate) enum NoCopy {
    /// The source has changed.
    Changed,
    /// Another blob stands at the destination, and policy keeps it.
    Taken(String),
    /// The service refused the copy because of what stands at the destination.
    InTheWay(PortError),
    /// The copy was aborted, failed, or differs from its source.
    Failed(String),
    /// Another client deleted the copy.
    Vanished,
    /// Others kept changing the destination.
    Restless,
    /// The copy was not complete before the deadline.
    Pending,
    Stopped,
    /// The container does not exist and may not be created.
    ContainerMissing,
    Call(PortError),
    /// Another client changed the copy while it was compared.
    CopyChanged(PortError),
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

/// Returns the alternative name beside an existing blob; `None` if it is not valid. It contains the
/// version, so that a later worker finds the same copy.
pub(crate) fn beside(place: &BlobId, version: &Tag) -> Option<BlobId> {
    let suffix = Origin::new("", version).suffix();
    let name = format!("{}{suffix}", place.name);
    let fits = !place.name.ends_with(&suffix) && destination::is_blob_name(&name);
    fits.then(|| BlobId::new(&place.container, name))
}

impl Copying<'_> {
    /// Ensures that a verified copy of this version exists at `place` or beside it; `place` is then
    /// where it is.
    pub(crate) async fn copy_to(&self, place: &mut BlobId) -> Result<(), NoCopy> {
        let mut conditions = Conditions::absent();
        let mut broken = 0;
        for _ in 0..ROUNDS_MAX {
            let error = self.start(place, &conditions).await.err();
            if let Some(error) = &error {
                self.judge_start(place, error).await?;
            }
            match self.look(place, error.is_none()).await? {
                Standing::Ours => return Ok(()),
                Standing::Nothing
                    if error
                        .as_ref()
                        .is_some_and(|e| e.kind == ErrorKind::NotFound) =>
                {
                    conditions = Conditions::absent();
                }
                // The destination is free, but the copy was refused: the source has changed.
                Standing::Nothing if error.is_some() => return Err(NoCopy::Changed),
                Standing::Nothing => return Err(NoCopy::Vanished),
                // The condition allowed this blob to be overwritten, so the refusal came from the
                // source.
                Standing::Broken(there) | Standing::Earlier(there) | Standing::Foreign(there)
                    if error.is_some() && conditions.if_match.as_ref() == Some(&there.etag) =>
                {
                    return Err(NoCopy::Changed);
                }
                Standing::Broken(there) => {
                    broken += u32::from(error.is_none());
                    if broken > 1 {
                        return Err(failed(there));
                    }
                    conditions = Conditions::matching(&there.etag);
                }
                Standing::Earlier(there) | Standing::Foreign(there)
                    if self.on_collision == Collision::Overwrite =>
                {
                    conditions = Conditions::matching(&there.etag);
                }
                Standing::Foreign(_) if self.on_collision == Collision::Fail => {
                    let taken = format!("{}/{} is taken", place.container, place.name);
                    return Err(NoCopy::Taken(taken));
                }
                Standing::Earlier(_) | Standing::Foreign(_) => {
                    let free = beside(place, &self.seen.etag).filter(|free| free != self.blob);
                    let taken = || format!("the name beside {} is also taken", place.name);
                    *place = free.ok_or_else(|| NoCopy::Taken(taken()))?;
                    conditions = Conditions::absent();
                }
            }
        }
        Err(NoCopy::Restless)
    }

    fn source(&self) -> Paced<'_> {
        self.core.paced(self.source, self.page)
    }

    fn target(&self) -> Paced<'_> {
        self.core.paced(self.account, self.page)
    }

    async fn start(&self, place: &BlobId, conditions: &Conditions) -> Result<(), PortError> {
        let (core, seen) = (self.core, self.seen);
        let copy = StartCopy {
            source_url: source::url(core, self.source, self.blob, self.page).await?,
            source_if_match: Some(seen.etag.clone()),
            metadata: Some(self.metadata.clone()),
            conditions: conditions.clone(),
            synchronous: false,
            tags: self.tags.clone(),
            tier: carried::tier(seen),
        };
        self.target().start_copy(place, &copy).await.map(|_| ())
    }

    /// Ends the copy if its refusal is conclusive. After 409 and 412 the destination has to be
    /// checked, because they do not say what is in the way.
    async fn judge_start(&self, place: &BlobId, error: &PortError) -> Result<(), NoCopy> {
        let is_code = |code: &str| error.code.as_deref() == Some(code);
        let suffixes = self.on_collision == Collision::Suffix;
        match error.kind {
            ErrorKind::AlreadyExists | ErrorKind::ConditionNotMet | ErrorKind::CopyPending => {
                Ok(())
            }
            // The source, the destination container or both are missing; a missing source is the
            // owner's decision.
            ErrorKind::NotFound => {
                let source = self.source().blob_properties(self.blob).await;
                source.map_err(NoCopy::Call)?;
                match self.creates_container {
                    true => self.make_container(&place.container, true).await,
                    false => Err(NoCopy::ContainerMissing),
                }
            }
            ErrorKind::Leased => Err(NoCopy::InTheWay(error.clone())),
            _ if is_code("ResourceTypeMismatch") && suffixes => Ok(()),
            // In a hierarchical account there is a directory in place of the copy, or a blob in
            // place of its directory.
            _ if is_code("ResourceTypeMismatch") || is_code("PathConflict") => {
                Err(NoCopy::InTheWay(error.clone()))
            }
            _ => Err(NoCopy::Call(error.clone())),
        }
    }

    /// Waits until the copy at the destination is decided (DS3). `fresh` is true if this worker has
    /// just started it. An older, complete copy that no longer equals the source was overwritten
    /// and counts as a foreign blob.
    async fn look(&self, place: &BlobId, fresh: bool) -> Result<Standing, NoCopy> {
        let core = self.core;
        let began = Instant::now();
        let (mut wait, wait_max) = POLL;
        loop {
            let there = match self.target().blob_properties(place).await {
                Ok((there, _)) => there,
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(Standing::Nothing),
                Err(error) => return Err(NoCopy::Call(error)),
            };
            match (self.maker)(&there) {
                Maker::Us => {}
                Maker::UsEarlier => return Ok(Standing::Earlier(there)),
                Maker::Other => return Ok(Standing::Foreign(there)),
            }
            match there.copy.as_ref().map(|copy| copy.status) {
                Some(CopyStatus::Pending) => {}
                Some(CopyStatus::Aborted | CopyStatus::Failed) => {
                    return Ok(Standing::Broken(there));
                }
                Some(CopyStatus::Success) | None => {
                    return match (self.verified(place, &there).await?, fresh) {
                        (true, _) => Ok(Standing::Ours),
                        (false, false) => Ok(Standing::Foreign(there)),
                        (false, true) => {
                            let differs = "the copy differs from its source";
                            Err(NoCopy::Failed(differs.to_owned()))
                        }
                    };
                }
            }
            if began.elapsed() >= core.config.dead.copy_deadline {
                return Err(NoCopy::Pending);
            }
            if core.stop.is_set() {
                return Err(NoCopy::Stopped);
            }
            core.stop.sleep(wait).await;
            wait = (wait * 2).min(wait_max);
        }
    }

    async fn verified(&self, place: &BlobId, there: &BlobProperties) -> Result<bool, NoCopy> {
        let source = ComparedBlob {
            account: &self.source(),
            blob: self.blob,
            seen: self.seen,
        };
        let copy = ComparedBlob {
            account: &self.target(),
            blob: place,
            seen: there,
        };
        let equal = verify::is_equal(&source, &copy).await;
        equal.map_err(|unclear| match unclear {
            Unclear::Source(error) => NoCopy::Call(error),
            Unclear::Copy(error) => NoCopy::CopyChanged(error),
            Unclear::Stopped => NoCopy::Stopped,
        })
    }

    /// Creates the destination container once per worker (S11, DS20), however many blobs are copied
    /// there concurrently; creates it again if it was found missing.
    pub(crate) async fn make_container(
        &self,
        container: &str,
        missing: bool,
    ) -> Result<(), NoCopy> {
        let core = self.core;
        let key = (self.account.account().to_owned(), container.to_owned());
        let made = if missing {
            // Later callers wait for this new call, or find it done.
            let anew = Made::default();
            lock(&core.made).insert(key, Arc::clone(&anew));
            anew
        } else {
            Arc::clone(lock(&core.made).entry(key).or_default())
        };
        let make = async || {
            let made = self.target().create_container(container).await;
            made.map(|_| ())
        };
        let made = made.get_or_try_init(make).await;
        made.copied().map_err(NoCopy::Call)
    }
}

/// Reports an aborted or failed copy with the service's own description.
fn failed(there: BlobProperties) -> NoCopy {
    let detail = there.copy.and_then(|copy| copy.description);
    NoCopy::Failed(detail.unwrap_or_else(|| "the copy was aborted or failed".to_owned()))
}
