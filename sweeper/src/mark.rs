//! Marking blobs: setting or removing `TimeToLive` and `DeadBlobContainer`, everything else kept.
//!
//! Each write names the version that it was made from, so a change by the owner in between is never
//! lost. Set Blob Metadata is a change of the blob: a duration such as `P7D` counts from it.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, BlobItem, Conditions, ErrorKind, ListBlobs, Metadata, PortError, Storage, Tag,
};

use crate::decide::Policy;
use crate::destination;
use crate::error::SweepError;
use crate::paced::Paced;
use crate::provenance::METADATA_BYTES_MAX;
use crate::report::FAILURES_MAX;
use crate::shared::{Core, Stop};
use crate::sweeper::Sweeper;
use crate::target::Target;
use crate::ttl;

/// Most tries for a blob that others write at the same time.
const TRIES_MAX: u32 = 3;

/// What happens to one metadata value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Edit {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is set.
    Set(String),
    /// It is removed.
    Remove,
}

/// What is to be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// The time to live.
    pub ttl: Edit,
    /// The place for the dead blob.
    pub dead: Edit,
}

impl Marking {
    /// Refuses what no sweep would understand.
    ///
    /// # Errors
    /// A line for the operator.
    pub fn check(&self, policy: &Policy) -> Result<(), String> {
        if let Edit::Set(text) = &self.ttl {
            ttl::parse(text, &policy.ttl_formats).ok_or_else(|| {
                let formats = policy.ttl_formats.iter().map(ToString::to_string);
                let formats: Vec<_> = formats.collect();
                format!(
                    "invalid time to live `{text}`: use a duration (`P7D`) or an instant in one of \
                     these formats: {}",
                    formats.join(", ")
                )
            })?;
        }
        if let Edit::Set(text) = &self.dead {
            destination::resolve(text, "blob").map_err(|why| format!("`{text}`: {why}"))?;
        }
        match (&self.ttl, &self.dead) {
            (Edit::Keep, Edit::Keep) => Err("nothing to change was given".to_owned()),
            _ => Ok(()),
        }
    }

    /// Whether blobs that are marked so are due at once: their time is an instant that has passed.
    pub fn is_over(&self, policy: &Policy, now: Timestamp) -> bool {
        let Edit::Set(text) = &self.ttl else {
            return false;
        };
        let read = ttl::parse(text, &policy.ttl_formats);
        matches!(read, Some(ttl::TimeToLive::At(at)) if at <= now)
    }

    /// The metadata after it; `None` when nothing changes.
    ///
    /// # Errors
    /// When they would be more than Azure keeps.
    pub fn apply(&self, policy: &Policy, before: &Metadata) -> Result<Option<Metadata>, TooMuch> {
        let mut after = before.clone();
        for (key, edit) in [(&policy.ttl_key, &self.ttl), (&policy.dbc_key, &self.dead)] {
            match edit {
                Edit::Keep => continue,
                Edit::Remove => after.retain(|name, _| !name.eq_ignore_ascii_case(key)),
                Edit::Set(value) => {
                    after.retain(|name, _| !name.eq_ignore_ascii_case(key));
                    after.insert(key.clone(), value.clone());
                }
            }
        }
        let size: usize = after.iter().map(|(n, v)| n.len() + v.len()).sum();
        match size > METADATA_BYTES_MAX {
            true => Err(TooMuch),
            false => Ok((after != *before).then_some(after)),
        }
    }
}

/// More metadata than Azure keeps with a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata would be more than {METADATA_BYTES_MAX} bytes")]
pub struct TooMuch;

/// What became of one blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Marked {
    /// It was changed, or would be in a dry run.
    Changed,
    /// It said so already.
    Unchanged,
    /// Somebody holds a lease on it.
    Leased,
    /// Somebody removed it meanwhile.
    Gone,
    /// It could not be changed.
    Failed,
}

/// What became of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Blobs by what became of them.
    pub outcomes: BTreeMap<Marked, u64>,
    /// The first blobs that were not changed although they should have been, with the reason.
    pub failures: Vec<(String, String)>,
    /// When a changed blob is due, where all have the same time.
    pub due: Option<String>,
}

impl Marks {
    /// How many ended so.
    pub fn count(&self, marked: Marked) -> u64 {
        self.outcomes.get(&marked).copied().unwrap_or(0)
    }

    fn add(&mut self, blob: &BlobId, marked: Marked, reason: Option<String>) {
        *self.outcomes.entry(marked).or_insert(0) += 1;
        if let Some(reason) = reason
            && self.failures.len() < FAILURES_MAX
        {
            let name = format!("{}/{}", blob.container, blob.name);
            self.failures.push((name, smalt_sleeve::redact(&reason)));
        }
    }
}

/// One marking under way.
struct Marker<'a> {
    core: &'a Core,
    storage: Arc<dyn Storage>,
    marking: &'a Marking,
    dry_run: bool,
}

impl Sweeper {
    /// Marks one blob.
    ///
    /// # Errors
    /// [`SweepError::Config`] for a marking that no sweep could read; [`SweepError::BlobMissing`].
    pub async fn mark(
        &self,
        target: &Target,
        marking: &Marking,
        dry_run: bool,
    ) -> Result<Marks, SweepError> {
        let core = self.core(Stop::default());
        let (marker, blob) = self.marker(&core, target, marking, dry_run).await?;
        // The listing has the names of the metadata as they were written; HEAD has them in lower
        // case. The exact name is the first of those that begin with it.
        let (items, now, _) = marker.page(&blob, None, 1).await?;
        let item = items.into_iter().find(|item| item.name == blob.name);
        let missing = || SweepError::BlobMissing(marker.storage.blob_url(&blob));
        let item = item.ok_or_else(missing)?;
        let mut marks = marker.begin(now);
        let (marked, reason) = marker.mark(&blob, item).await;
        marks.add(&blob, marked, reason);
        Ok(marks)
    }

    /// Marks every blob whose name begins with the target's; an empty name means all of its
    /// container. `progress` hears of every blob.
    ///
    /// # Errors
    /// As [`Sweeper::mark`]; those of the listing.
    pub async fn mark_all(
        &self,
        container: &str,
        prefix: &str,
        marking: &Marking,
        dry_run: bool,
        progress: impl Fn(&Marks) + Send,
    ) -> Result<Marks, SweepError> {
        if !destination::is_container_name(container) {
            let why = format!("`{container}` is not a container name");
            return Err(SweepError::Config(why));
        }
        let core = self.core(Stop::default());
        let start = Target::Path(BlobId::new(container, prefix));
        let (marker, start) = self.marker(&core, &start, marking, dry_run).await?;
        let mut marks: Option<Marks> = None;
        let mut token = None;
        loop {
            let size = core.config.page_size;
            let (items, now, next) = marker.page(&start, token, size).await?;
            let marks = marks.get_or_insert_with(|| marker.begin(now));
            let running = stream::iter(items).map(|item| {
                let blob = BlobId::new(&start.container, &item.name);
                async {
                    let (marked, reason) = marker.mark(&blob, item).await;
                    (blob, marked, reason)
                }
            });
            let mut running = pin!(running.buffer_unordered(core.config.parallelism));
            while let Some((blob, marked, reason)) = running.next().await {
                marks.add(&blob, marked, reason);
                progress(marks);
            }
            token = next;
            if token.is_none() {
                break;
            }
        }
        Ok(marks.unwrap_or_default())
    }

    async fn marker<'a>(
        &self,
        core: &'a Core,
        target: &Target,
        marking: &'a Marking,
        dry_run: bool,
    ) -> Result<(Marker<'a>, BlobId), SweepError> {
        let policy = &core.config.policy;
        marking.check(policy).map_err(SweepError::Config)?;
        let document = self.document_or_none(core).await?;
        let located = core.accounts.locate(&document, target);
        let (storage, blob) = located.map_err(SweepError::Config)?;
        let marker = Marker {
            core,
            storage,
            marking,
            dry_run,
        };
        Ok((marker, blob))
    }
}

impl Marker<'_> {
    fn begin(&self, now: Timestamp) -> Marks {
        let ttl = match &self.marking.ttl {
            Edit::Set(text) => ttl::parse(text, &self.core.config.policy.ttl_formats),
            Edit::Keep | Edit::Remove => None,
        };
        Marks {
            dry_run: self.dry_run,
            due: ttl.map(|ttl| ttl.due(now).iso_s()),
            ..Marks::default()
        }
    }

    async fn page(
        &self,
        start: &BlobId,
        marker: Option<String>,
        page_size: u32,
    ) -> Result<(Vec<BlobItem>, Timestamp, Option<String>), SweepError> {
        let list = ListBlobs {
            prefix: start.name.clone(),
            marker,
            page_size,
            tags: false,
        };
        let page = self.account().list_blobs(&start.container, &list).await?;
        Ok((page.blobs, page.server_time, page.next_marker))
    }

    /// One blob; once more with its newest version when somebody wrote it meanwhile.
    async fn mark(&self, blob: &BlobId, item: BlobItem) -> (Marked, Option<String>) {
        let (mut before, mut etag) = (item.properties.metadata, item.properties.etag);
        for _ in 0..TRIES_MAX {
            let policy = &self.core.config.policy;
            let after = match self.marking.apply(policy, &before) {
                Ok(Some(after)) => after,
                Ok(None) => return (Marked::Unchanged, None),
                Err(error) => return (Marked::Failed, Some(error.to_string())),
            };
            if self.dry_run {
                return (Marked::Changed, None);
            }
            let error = match self.write(blob, &after, &etag).await {
                Ok(()) => return (Marked::Changed, None),
                Err(error) => error,
            };
            match error.kind {
                ErrorKind::ConditionNotMet => {}
                ErrorKind::NotFound => return (Marked::Gone, None),
                ErrorKind::Leased => return (Marked::Leased, Some(error.to_string())),
                _ => return (Marked::Failed, Some(error.to_string())),
            }
            (before, etag) = match self.page(blob, None, 1).await {
                Ok((items, _, _)) => match items.into_iter().find(|i| i.name == blob.name) {
                    Some(item) => (item.properties.metadata, item.properties.etag),
                    None => return (Marked::Gone, None),
                },
                Err(error) => return (Marked::Failed, Some(error.to_string())),
            };
        }
        let why = "others kept writing it".to_owned();
        (Marked::Failed, Some(why))
    }

    async fn write(&self, blob: &BlobId, after: &Metadata, etag: &Tag) -> Result<(), PortError> {
        let on = Conditions::matching(etag);
        let written = self.account().set_blob_metadata(blob, after, &on).await;
        written.map(|_| ())
    }

    fn account(&self) -> Paced<'_> {
        self.core.paced(self.storage.as_ref(), "tag")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Edit {
        Edit::Set(text.to_owned())
    }

    /// An instant that has passed is told; a span counts from the marking.
    #[test]
    fn a_time_that_is_over_is_told() {
        let (policy, now) = (Policy::default(), "2026-11-21T10:00:00Z");
        let now = Timestamp::parse_iso(now).unwrap();
        for (ttl, is_over) in [
            (set("2026-11-21T10:00:00Z"), true),
            (set("2026-11-21T10:00:01Z"), false),
            (set("PT0S"), false),
            (Edit::Keep, false),
            (Edit::Remove, false),
        ] {
            let dead = Edit::Keep;
            assert_eq!(Marking { ttl, dead }.is_over(&policy, now), is_over);
        }
    }

    #[test]
    fn what_no_sweep_could_read_is_refused() {
        let policy = Policy::default();
        for (ttl, dead, fits) in [
            (set("P7D"), Edit::Keep, true),
            (set("2027-01-01T00:00:00Z"), set("dbc/old/"), true),
            (Edit::Remove, Edit::Keep, true),
            (Edit::Keep, Edit::Remove, true),
            (Edit::Keep, Edit::Keep, false),
            (set("7 days"), Edit::Keep, false),
            (set("2027-01-01"), Edit::Keep, false),
            (set(""), Edit::Keep, false),
            (Edit::Keep, set("DBC"), false),
            (set("P7D"), set("dbc/.."), false),
        ] {
            let marking = Marking { ttl, dead };
            assert_eq!(marking.check(&policy).is_ok(), fits, "{marking:?}");
        }
    }

    #[test]
    fn other_metadata_stay_whatever_their_case() {
        let metadata = |pairs: &[(&str, &str)]| -> Metadata {
            let pairs = pairs.iter();
            pairs
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        let policy = Policy::default();
        let before = metadata(&[("Owner", "me"), ("timetolive", "P1D")]);
        for (ttl, after) in [
            (
                set("P7D"),
                Some(metadata(&[("Owner", "me"), ("TimeToLive", "P7D")])),
            ),
            (Edit::Remove, Some(metadata(&[("Owner", "me")]))),
            (Edit::Keep, None),
        ] {
            let marking = Marking {
                ttl,
                dead: Edit::Keep,
            };
            assert_eq!(marking.apply(&policy, &before), Ok(after));
        }
        let marking = Marking {
            ttl: set("P7D"),
            dead: Edit::Keep,
        };
        let full = metadata(&[("a", &"x".repeat(METADATA_BYTES_MAX - 2))]);
        assert_eq!(marking.apply(&policy, &full), Err(TooMuch));
    }
}
