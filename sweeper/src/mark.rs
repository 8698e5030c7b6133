//! Sets or removes `TimeToLive` and `DeadBlobContainer` in a blob's metadata, keeping all other
//! values.
//!
//! Each write is conditional on the version that was read, so a concurrent change by the owner is
//! never lost. Set Blob Metadata modifies the blob, so a duration such as `P7D` counts from this
//! write.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, BlobItem, Conditions, ErrorKind, ListBlobs, Metadata, PortError, Storage, Tag,
};

use crate::decide::{self, Policy};
use crate::destination;
use crate::error::SweepError;
use crate::paced::Paced;
use crate::provenance::METADATA_BYTES_MAX;
use crate::report::FAILURES_MAX;
use crate::shared::{Core, Stop};
use crate::sweeper::Sweeper;
use crate::target::Target;
use crate::ttl;

/// Maximum number of attempts for a blob that others write at the same time.
const TRIES_MAX: u32 = 3;

/// A change of one metadata value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Edit {
    /// Leaves the value unchanged.
    #[default]
    Keep,
    /// Sets the value.
    Set(String),
    /// Removes the value.
    Remove,
}

/// The changes to apply to each blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// Change of `TimeToLive`.
    pub ttl: Edit,
    /// Change of `DeadBlobContainer`.
    pub dead: Edit,
}

impl Marking {
    /// Rejects values that no sweep could use.
    ///
    /// # Errors
    /// One line of text for the operator.
    pub fn check(&self, policy: &Policy) -> Result<(), String> {
        if let Edit::Set(text) = &self.ttl {
            ttl::parse(text, &policy.ttl_formats).ok_or_else(|| {
                let examples = ttl::examples(&policy.ttl_formats);
                let use_this = "use a duration or an instant, such as";
                format!("invalid time to live `{text}`: {use_this} {examples}")
            })?;
        }
        if let Edit::Set(text) = &self.dead {
            destination::resolve(text, "blob").map_err(|why| format!("`{text}`: {why}"))?;
        }
        match (&self.ttl, &self.dead) {
            (Edit::Keep, Edit::Keep) => Err("no change was given".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns whether marked blobs are due immediately, because the time is an instant in the
    /// past.
    pub fn is_over(&self, policy: &Policy, now: Timestamp) -> bool {
        let Edit::Set(text) = &self.ttl else {
            return false;
        };
        let read = ttl::parse(text, &policy.ttl_formats);
        matches!(read, Some(ttl::TimeToLive::At(at)) if at <= now)
    }

    /// Returns the changed metadata, or `None` if nothing changes.
    ///
    /// # Errors
    /// [`TooMuch`] if the metadata would exceed [`METADATA_BYTES_MAX`].
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

/// The metadata would exceed Azure's limit of 8 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata would exceed {METADATA_BYTES_MAX} bytes")]
pub struct TooMuch;

/// The result for one blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Marked {
    /// The blob was changed, or would be in a dry run.
    Changed,
    /// The blob already has these values.
    Unchanged,
    /// It is a directory, which no sweep removes.
    Directory,
    /// Another client holds a lease on the blob.
    Leased,
    /// The blob was removed in the meantime.
    Gone,
    /// The blob could not be changed.
    Failed,
}

/// The results for all blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// Whether this was a dry run, which writes nothing.
    pub dry_run: bool,
    /// Number of blobs per result.
    pub outcomes: BTreeMap<Marked, u64>,
    /// The first blobs that could not be changed, each with the reason.
    pub failures: Vec<(String, String)>,
    /// Approximate time when the changed blobs are due; `None` if no time to live was set.
    pub due: Option<String>,
}

impl Marks {
    /// Returns the number of blobs with this result.
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
    /// [`SweepError::Config`] for invalid values; [`SweepError::BlobMissing`] if the blob does not
    /// exist.
    pub async fn mark(
        &self,
        target: &Target,
        marking: &Marking,
        dry_run: bool,
    ) -> Result<Marks, SweepError> {
        let core = self.core(Stop::default());
        let (marker, blob) = self.marker(&core, target, marking, dry_run).await?;
        // The listing returns metadata names in their original case, HEAD in lower case. The exact
        // name sorts first among the names with this prefix.
        let (items, now, _) = marker.page(&blob, None, 1).await?;
        let item = items.into_iter().find(|item| item.name == blob.name);
        let missing = || SweepError::BlobMissing(marker.storage.blob_url(&blob));
        let item = item.ok_or_else(missing)?;
        let mut marks = marker.begin(now);
        let (marked, reason) = marker.mark(&blob, item).await;
        marks.add(&blob, marked, reason);
        Ok(marks)
    }

    /// Marks every blob whose name starts with `prefix`; an empty prefix means the whole container.
    /// Calls `progress` after every blob.
    ///
    /// # Errors
    /// As [`Sweeper::mark`], and errors of the listing.
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

    /// Marks one blob, retrying with its newest version if it changed in the meantime.
    async fn mark(&self, blob: &BlobId, item: BlobItem) -> (Marked, Option<String>) {
        let (mut before, mut etag) = (item.properties.metadata, item.properties.etag);
        if decide::is_directory(&before) {
            return (Marked::Directory, None);
        }
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
        let why = "other clients kept changing it".to_owned();
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

    #[test]
    fn past_time_is_detected() {
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
    fn unreadable_values_are_rejected() {
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
