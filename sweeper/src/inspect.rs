//! Looking at one blob in storage: what a sweep would do with it, when and why. Writes nothing.

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

/// What will become of one blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// URL without credentials.
    pub url: String,
    /// The version that was looked at.
    pub etag: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last change.
    pub last_modified: String,
    /// The service's time that it was decided by.
    pub decided_at: String,
    /// What would become of it if a sweep came now.
    pub outcome: Outcome,
    /// Whether a sweep comes by at all.
    pub swept: bool,
    /// Where it goes, as `container/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// From when on it may go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goes_from: Option<String>,
    /// The first mark of the schedule at which it goes, as things are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_mark: Option<String>,
    /// Every check in the order of the decision.
    pub checks: Vec<Check>,
}

impl Explained {
    /// The check that the outcome comes from, when it keeps the blob.
    pub fn deciding(&self) -> Option<&Check> {
        self.checks.iter().find(|check| check.keeps.is_some())
    }
}

impl Sweeper {
    /// What will become of one blob, when and why.
    ///
    /// # Errors
    /// [`SweepError::BlobMissing`] when there is none, [`SweepError::Config`] when no account has
    /// it, else those of the calls.
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

    /// The state document; an empty one where there is none and none would be made.
    pub(crate) async fn document_or_none(&self, core: &Core) -> Result<Document, SweepError> {
        match self.document(core).await {
            Err(SweepError::Storage(error)) if error.kind == ErrorKind::NotFound => {
                Ok(Document::default())
            }
            other => other,
        }
    }

    /// What a sweep would run into after the decision: snapshots, and what stands at the
    /// destination.
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

/// What a place said when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What was asked.
    pub place: String,
    /// Why it did not answer well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The exit code for that.
    #[serde(skip)]
    pub exit_code: Option<u8>,
}

impl Sweeper {
    /// Asks the state document and every swept container for a line. Writes nothing.
    ///
    /// # Errors
    /// When the state document cannot be read although it is there.
    pub async fn probe(&self) -> Result<Vec<Answer>, SweepError> {
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
            answers.push(Answer {
                place: element.name.clone(),
                exit_code: failed.as_ref().map(SweepError::exit_code),
                error: failed.map(|error| smalt_sleeve::redact(&error.to_string())),
                note: None,
            });
        }
        Ok(answers)
    }

    /// The document that a sweep would go by, and what is to be said about it.
    async fn ask_state(&self, core: &Core) -> Result<(Document, Answer), SweepError> {
        let blob = &core.config.state_blob;
        let mut answer = Answer {
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
                answer.note = Some("not there yet; the first sweep makes it".to_owned());
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

/// Reads one blob; that there is none is said in plain words.
pub(crate) async fn look(
    core: &Core,
    storage: &dyn Storage,
    blob: &BlobId,
) -> Result<(BlobProperties, Timestamp), SweepError> {
    let looked = core.paced(storage, "").blob_properties(blob).await;
    looked.map_err(|error| missing(error, storage, blob))
}

/// The error for a blob that is not there, else the error as it is.
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

/// Whether a sweep comes by. It keeps nothing: a blob that is swept by nobody still has an outcome,
/// for the day on which it is.
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

/// What stands at the destination of a move.
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
        // Container or blob: HEAD does not tell them apart.
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Ok(said("nothing stands at the destination", None));
        }
        Err(error) if error.kind == ErrorKind::Denied => {
            return Ok(said(
                "the destination may not be read",
                Some(Outcome::Denied),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let policy = core.config.dead.on_collision;
    Ok(if origin.made_blob(&there) {
        said(
            "a copy of this version stands at the destination and is used",
            None,
        )
    } else if policy == Collision::Overwrite {
        said(
            "another blob stands at the destination and is overwritten",
            None,
        )
    } else if policy == Collision::Suffix || origin.made_earlier(&there.metadata) {
        let beside = origin.suffix();
        said(
            &format!("another blob stands there; this one goes beside it, as ...{beside}"),
            None,
        )
    } else {
        said(
            "another blob stands at the destination",
            Some(Outcome::Collision),
        )
    })
}

/// Whether the blob has snapshots, and what that does to its delete.
pub(crate) async fn snapshots(
    core: &Core,
    storage: &dyn Storage,
    blob: &BlobId,
) -> Result<Check, SweepError> {
    let asked = core.paced(storage, "").has_snapshots(blob).await;
    let include = core.config.snapshots == DeleteSnapshots::Include;
    let (found, keeps) = match asked {
        Ok(false) => ("none", None),
        Ok(true) if include => ("there are some; they go with it", None),
        Ok(true) => (
            "there are some, and policy refuses",
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
