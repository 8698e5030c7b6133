//! Explains one blob in storage: what a sweep would do with it, when and why. Writes nothing.

use std::sync::Arc;

use serde::Serialize;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, BlobProperties, DeleteSnapshots, ErrorKind, ListBlobs, PortError, Storage,
};

use crate::accounts::Place;
use crate::carried;
use crate::config::Collision;
use crate::decide::Decision;
use crate::destination::Destination;
use crate::error::SweepError;
use crate::explain::{self, Check};
use crate::listing;
use crate::outcome::Outcome;
use crate::provenance::Origin;
use crate::schedule;
use crate::scope;
use crate::shared::{Core, Stop};
use crate::state::{Container, Document, Status, ledger};
use crate::store;
use crate::sweeper::Sweeper;
use crate::target::Target;

/// The expected fate of one blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// URL without credentials.
    pub url: String,
    /// ETag of the inspected version.
    pub etag: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last change.
    pub last_modified: String,
    /// The service's time of the decision.
    pub decided_at: String,
    /// The outcome if a sweep ran now.
    pub outcome: Outcome,
    /// Whether any sweep covers the blob.
    pub swept: bool,
    /// Place of the copy, as `container/name`, if it would be moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// When the blob may be removed at the earliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goes_from: Option<String>,
    /// The first mark at which the blob is removed, if nothing changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_mark: Option<String>,
    /// Every check in the order of the decision.
    pub checks: Vec<Check>,
}

impl Explained {
    /// Returns the check that determined the outcome, if it keeps the blob.
    pub fn deciding(&self) -> Option<&Check> {
        self.checks.iter().find(|check| check.keeps.is_some())
    }
}

impl Sweeper {
    /// Explains what will happen to one blob, when and why.
    ///
    /// # Errors
    /// [`SweepError::BlobMissing`] if the blob does not exist, [`SweepError::Config`] if no account
    /// contains it, otherwise errors of the storage calls.
    pub async fn explain(&self, target: &Target) -> Result<Explained, SweepError> {
        let core = self.core(Stop::default());
        let document = self.document_or_none(&core).await?;
        let located = core.accounts.locate(&document, target);
        let (storage, blob) = located.map_err(SweepError::Config)?;
        let place = Place {
            storage,
            container: blob.container.clone(),
        };
        let (seen, now) = look(&core, place.storage.as_ref(), &blob).await?;
        let seen = carried::with_tags(&core, place.storage.as_ref(), &blob, seen).await;
        let swept = core.accounts.swept(&document);
        let scene = listing::scene(&core, &place, &swept);
        let policy = &core.config.policy;
        let told = explain::explain(policy, &scene, &blob.name, &seen, now);
        let mut checks = vec![sweep_check(&core, &document, &place, &blob)];
        checks.extend(told.checks);
        if told.decision.removes() {
            checks.extend(
                self.hindrances(&core, &place, &blob, &seen, &told.decision)
                    .await?,
            );
        }
        let keeps = checks.iter().find_map(|check| check.keeps);
        let destination = match &told.decision {
            Decision::Move { destination, .. } => Some(destination),
            _ => None,
        };
        let goes = destination.map_or(Outcome::Deleted, |_| Outcome::Moved);
        let swept = checks[0].keeps.is_none() && is_swept(&core, &document, &place, &blob);
        let next_mark = told.goes_from.filter(|_| swept).map(|from| {
            let marks = &core.config.schedule;
            let earliest = from.max(now);
            match document.next_due {
                Some(due) if due >= earliest => due,
                due => schedule::next_mark(marks, due, earliest),
            }
        });
        Ok(Explained {
            url: place.storage.blob_url(&blob),
            etag: seen.etag.0,
            bytes: seen.length,
            last_modified: seen.last_modified.iso_s(),
            decided_at: now.iso_s(),
            outcome: keeps.unwrap_or(goes),
            swept,
            destination: destination.map(|d| format!("{}/{}", d.container, d.name)),
            goes_from: told.goes_from.map(Timestamp::iso_s),
            next_mark: next_mark.map(Timestamp::iso_s),
            checks,
        })
    }

    /// Returns the state document, or an empty one if it does not exist and would not be created.
    pub(crate) async fn document_or_none(&self, core: &Core) -> Result<Document, SweepError> {
        match self.document(core).await {
            Err(SweepError::Storage(error)) if error.kind == ErrorKind::NotFound => {
                Ok(Document::default())
            }
            other => other,
        }
    }

    /// Checks for obstacles after the decision: snapshots, and a blob at the destination.
    async fn hindrances(
        &self,
        core: &Core,
        place: &Place,
        blob: &BlobId,
        seen: &BlobProperties,
        decision: &Decision,
    ) -> Result<Vec<Check>, SweepError> {
        let mut checks = Vec::new();
        if let Decision::Move { destination, .. } = decision {
            checks.push(standing(core, place, blob, seen, destination).await?);
        }
        checks.push(snapshots(core, place.storage.as_ref(), blob).await?);
        Ok(checks)
    }
}

/// The response of one probed place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeResult {
    /// Probed place: the state document or a container.
    pub place: String,
    /// Why the probe failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Further information.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Exit code for the failure.
    #[serde(skip)]
    pub exit_code: Option<u8>,
}

impl Sweeper {
    /// Probes the state document and every swept container with one small request each. Writes
    /// nothing.
    ///
    /// # Errors
    /// If the state document exists but cannot be read.
    pub async fn probe(&self) -> Result<Vec<ProbeResult>, SweepError> {
        let core = self.core(Stop::default());
        let (document, state) = self.ask_state(&core).await?;
        let mut answers = vec![state];
        for element in document
            .containers
            .iter()
            .filter(|c| c.status != Status::Off)
        {
            let asked = ask(&core, element).await;
            let failed = asked.err();
            answers.push(ProbeResult {
                place: element.name.clone(),
                exit_code: failed.as_ref().map(SweepError::exit_code),
                error: failed.map(|error| smalt_sleeve::redact(&error.to_string())),
                note: None,
            });
        }
        Ok(answers)
    }

    /// Returns the document that a sweep would use, with the result of the probe.
    async fn ask_state(&self, core: &Core) -> Result<(Document, ProbeResult), SweepError> {
        let blob = &core.config.state_blob;
        let mut answer = ProbeResult {
            place: format!("state {}/{}", blob.container, blob.name),
            error: None,
            note: None,
            exit_code: None,
        };
        let storage = self.state_account()?.as_ref();
        let read = store::read(core, storage).await;
        let missing = |error: &SweepError| match error {
            SweepError::Storage(error) => error.kind == ErrorKind::NotFound,
            _ => false,
        };
        let (document, wrong) = match read {
            Ok((document, _)) => {
                let wrong = scope::agree(&core.config, &core.accounts, &document).err();
                (document, wrong)
            }
            Err(error) if !missing(&error) => return Err(error),
            Err(_) if core.config.create_state => {
                answer.note = Some("does not exist yet; the first sweep creates it".to_owned());
                (store::initial(core), None)
            }
            Err(_) => {
                let wrong = SweepError::StateMissing(storage.blob_url(blob));
                (Document::default(), Some(wrong))
            }
        };
        answer.exit_code = wrong.as_ref().map(SweepError::exit_code);
        answer.error = wrong.map(|error| error.to_string());
        Ok((document, answer))
    }
}

async fn ask(core: &Core, element: &Container) -> Result<(), SweepError> {
    let place = core.accounts.place(element).map_err(SweepError::Config)?;
    let list = ListBlobs {
        prefix: element.prefix.clone(),
        marker: None,
        page_size: 1,
        tags: false,
    };
    let account = core.paced(place.storage.as_ref(), "validate");
    account.list_blobs(&place.container, &list).await?;
    Ok(())
}

/// Reads one blob's properties; a missing one is [`SweepError::BlobMissing`].
pub(crate) async fn look(
    core: &Core,
    storage: &dyn Storage,
    blob: &BlobId,
) -> Result<(BlobProperties, Timestamp), SweepError> {
    let looked = core.paced(storage, "").blob_properties(blob).await;
    looked.map_err(|error| missing(error, storage, blob))
}

/// Converts a missing blob to [`SweepError::BlobMissing`]; keeps other errors.
pub(crate) fn missing(error: PortError, storage: &dyn Storage, blob: &BlobId) -> SweepError {
    match error.kind {
        ErrorKind::NotFound => SweepError::BlobMissing(storage.blob_url(blob)),
        _ => error.into(),
    }
}

fn covering<'a>(
    core: &'a Core,
    document: &'a Document,
    place: &'a Place,
    blob: &'a BlobId,
) -> impl Iterator<Item = &'a Container> {
    document.containers.iter().filter(move |element| {
        let same = core.accounts.place(element).is_ok_and(|p| {
            Arc::ptr_eq(&p.storage, &place.storage) && p.container == place.container
        });
        same && blob.name.starts_with(&element.prefix)
    })
}

fn is_swept(core: &Core, document: &Document, place: &Place, blob: &BlobId) -> bool {
    let mut elements = covering(core, document, place, blob);
    elements.any(|element| element.status != Status::Off)
}

/// Reports whether a sweep covers the blob. It never keeps the blob, so that a blob outside any
/// sweep still has an outcome.
fn sweep_check(core: &Core, document: &Document, place: &Place, blob: &BlobId) -> Check {
    let now = core.now();
    let elements: Vec<_> = covering(core, document, place, blob).collect();
    let found = match elements.iter().find(|e| e.status != Status::Off) {
        None if elements.is_empty() => "no element of the state document covers it".to_owned(),
        None => format!("switched off in the state document ({})", elements[0].name),
        Some(element) if ledger::is_parked(element, now) => format!(
            "by {}, which failed last: {}",
            element.name,
            element.last_error.as_deref().unwrap_or("unknown")
        ),
        Some(element) => format!("by {}, cycle {}", element.name, document.cycle),
    };
    Check {
        check: "swept",
        found,
        keeps: None,
    }
}

/// Checks for a blob at the destination of a move.
pub(crate) async fn standing(
    core: &Core,
    place: &Place,
    blob: &BlobId,
    seen: &BlobProperties,
    destination: &Destination,
) -> Result<Check, SweepError> {
    let origin = Origin::new(&place.storage.blob_url(blob), &seen.etag);
    let said = |found: &str, keeps| Check {
        check: "collision",
        found: found.to_owned(),
        keeps,
    };
    let name = core.config.dead.account.as_deref().unwrap_or_default();
    let Some(account) = core.accounts.get(name) else {
        let keeps = Some(Outcome::DbcUnconfigured);
        return Ok(said("the account for dead blobs is not configured", keeps));
    };
    let there = BlobId::new(&destination.container, &destination.name);
    let account = core.paced(account.as_ref(), "");
    let (there, _) = match account.blob_properties(&there).await {
        Ok(there) => there,
        // Container or blob: HEAD does not distinguish them.
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Ok(said("the destination is free", None));
        }
        Err(error) if error.kind == ErrorKind::Denied => {
            return Ok(said(
                "the destination cannot be read with this credential",
                Some(Outcome::Denied),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let policy = core.config.dead.on_collision;
    Ok(if origin.made_blob(&there) {
        said(
            "the destination already holds a copy of this version, which is used",
            None,
        )
    } else if policy == Collision::Overwrite {
        said(
            "another blob exists at the destination and is overwritten",
            None,
        )
    } else if policy == Collision::Suffix || origin.made_earlier(&there.metadata) {
        let beside = origin.suffix();
        said(
            &format!("another blob exists there; this one is written beside it, as ...{beside}"),
            None,
        )
    } else {
        said(
            "another blob exists at the destination",
            Some(Outcome::Collision),
        )
    })
}

/// Checks whether the blob has snapshots, and whether they prevent its delete.
pub(crate) async fn snapshots(
    core: &Core,
    storage: &dyn Storage,
    blob: &BlobId,
) -> Result<Check, SweepError> {
    let asked = core.paced(storage, "").has_snapshots(blob).await;
    let include = core.config.snapshots == DeleteSnapshots::Include;
    let (found, keeps) = match asked {
        Ok(false) => ("none", None),
        Ok(true) if include => ("they exist, and are deleted with it", None),
        Ok(true) => (
            "they exist, and policy refuses to delete them",
            Some(Outcome::SnapshotsPresent),
        ),
        Err(error) if matches!(error.kind, ErrorKind::Denied | ErrorKind::Refused) => {
            ("cannot be listed with this credential", None)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Check {
        check: "snapshots",
        found: found.to_owned(),
        keeps,
    })
}
