//! Searches the tag index: container by container in name order, and in each the blobs with the
//! most selective tag, in the order of its values.
//!
//! A page ends when it is full or when enough entries were scanned: "In certain cases, the service
//! might return fewer results than maxresults specifies, but still return a continuation token."

use std::ops::ControlFlow;
use std::sync::Arc;

use smalt_protocol::{StorageError, Timestamp};

use crate::keys::{self, Generation};
use crate::ops::listing::bad_marker;
use crate::ops::lookup::{BlobName, ContainerName};
use crate::ops::marker;
use crate::records::{BlobRecord, ContainerRecord, Record};
use crate::rules::tag_query::{TagQuery, Values};
use crate::store::{StoreResult, View};

/// Maximum index entries that one request scans.
pub const SEEN_MAX: usize = 20_000;
const CONTAINERS_MAX: usize = 5_000;
/// Number of entries and containers read at once.
const CHUNK: usize = 256;

/// Where to search.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The account's name.
    pub account: String,
    /// The container; `None` for all containers.
    pub container: Option<String>,
}

/// A position in the order of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    container: String,
    value: String,
    blob: String,
    at: Timestamp,
}

/// A blob that matches.
#[derive(Clone, Debug)]
pub struct Found {
    /// The container's name.
    pub container: String,
    /// The blob's name.
    pub blob: String,
    /// The blob's record.
    pub record: Box<BlobRecord>,
}

/// A page of matches.
#[derive(Debug, Default)]
pub struct Page {
    /// The blobs that match.
    pub found: Vec<Found>,
    /// Where the next page starts.
    pub next: Option<Place>,
}

impl Place {
    fn start_of(container: String) -> Self {
        Place {
            container,
            value: String::new(),
            blob: String::new(),
            at: Timestamp::from_ticks(0),
        }
    }

    /// Returns the marker of a page that starts here.
    pub fn marker(&self) -> String {
        let at = self.at.iso_ticks();
        marker::write(&[&self.container, &self.value, &self.blob, &at])
    }

    /// Parses a marker.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for an invalid marker.
    pub fn parse(text: &str) -> Result<Self, StorageError> {
        let [container, value, blob, at] = marker::read(text).ok_or_else(bad_marker)?;
        let at = Timestamp::parse_iso(&at).ok_or_else(bad_marker)?;
        Ok(Place {
            container,
            value,
            blob,
            at,
        })
    }
}

/// A search of the index in one view.
pub struct Search<'a> {
    /// The state to search.
    pub view: &'a dyn View,
    /// The time at which leases, tiers and expiry are evaluated.
    pub now: Timestamp,
    /// The parsed query.
    pub query: &'a TagQuery,
    /// Maximum number of blobs in the page.
    pub most: usize,
    /// Maximum number of index entries scanned: [`SEEN_MAX`] except in tests.
    pub seen_most: usize,
    /// Whether previous versions can match.
    pub versions: bool,
}

impl Search<'_> {
    /// Returns the page that starts at a position.
    pub fn page(&self, scope: &Scope, start: Option<&Place>) -> Result<Page, StorageError> {
        let mut page = Page::default();
        let mut seen = 0;
        let mut from = match (start, &scope.container) {
            (Some(start), _) => start.clone(),
            (None, only) => Place::start_of(only.clone().unwrap_or_default()),
        };
        for _ in 0..CONTAINERS_MAX / CHUNK {
            let containers = self.containers(scope, &from.container)?;
            let is_last = containers.len() < CHUNK;
            for (name, generation) in containers {
                if name != from.container {
                    from = Place::start_of(name);
                }
                self.search(generation, &from, &scope.account, &mut page, &mut seen)?;
                if page.next.is_some() {
                    return Ok(page);
                }
            }
            if is_last {
                return Ok(page);
            }
            // The first name after the last one.
            from = Place::start_of(format!("{}\0", from.container));
        }
        page.next = Some(from);
        Ok(page)
    }

    /// Returns the next containers, from this name on.
    fn containers(&self, scope: &Scope, from: &str) -> StoreResult<Vec<(String, Generation)>> {
        let key = |name: &str| keys::container(&scope.account, name);
        let (from, to) = match &scope.container {
            Some(only) if from <= only.as_str() => (key(only), key(&format!("{only}\0"))),
            Some(_) => return Ok(Vec::new()),
            None => (key(from), keys::after(key(""))),
        };
        let mut found = Ok(Vec::new());
        self.view.scan(&from, &to, &mut |key, value| {
            let name = keys::resource_name(key, &scope.account).into_owned();
            match (ContainerRecord::decode(value), &mut found) {
                (Ok(record), Ok(list)) => {
                    if record.deleted_at.is_none() {
                        list.push((name, record.generation));
                    }
                    if list.len() < CHUNK {
                        return ControlFlow::Continue(());
                    }
                }
                (Err(error), _) => found = Err(error),
                (Ok(_), Err(_)) => {}
            }
            ControlFlow::Break(())
        })?;
        found
    }

    fn search(
        &self,
        generation: Generation,
        start: &Place,
        account: &str,
        page: &mut Page,
        seen: &mut usize,
    ) -> Result<(), StorageError> {
        let values = self.query.driver();
        let (mut from, to) = range(generation, &values);
        let started = keys::tag(generation, values.key, &start.value, &start.blob, start.at);
        from = from.max(started);
        let container = ContainerName {
            account: account.to_owned(),
            container: start.container.clone(),
            settings: Arc::default(),
            data_lake: false,
        };
        loop {
            let entries = self.entries(&from, &to)?;
            let is_last = entries.len() < CHUNK;
            for (value, blob, at) in entries {
                let name = BlobName {
                    container: container.clone(),
                    blob,
                };
                let record = self.load(&name, generation, at)?;
                *seen += 1;
                if *seen > self.seen_most || (record.is_some() && page.found.len() == self.most) {
                    page.next = Some(Place {
                        container: start.container.clone(),
                        value,
                        blob: name.blob,
                        at,
                    });
                    return Ok(());
                }
                from = keys::tag(generation, values.key, &value, &name.blob, at);
                from.push(0);
                page.found.extend(record.map(|record| Found {
                    container: start.container.clone(),
                    blob: name.blob,
                    record: Box::new(record),
                }));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Loads the blob of an index entry, if it matches.
    fn load(
        &self,
        name: &BlobName,
        generation: Generation,
        at: Timestamp,
    ) -> Result<Option<BlobRecord>, StorageError> {
        let record = if at == Timestamp::MAX {
            name.load(self.view, generation, self.now)?
        } else if self.versions {
            BlobRecord::load(self.view, &keys::version(generation, &name.blob, at))?
        } else {
            None
        };
        let is_wanted =
            |record: &BlobRecord| record.deleted.is_none() && self.query.holds(&record.tags);
        Ok(record.filter(is_wanted))
    }

    fn entries(&self, from: &[u8], to: &[u8]) -> StoreResult<Vec<(String, String, Timestamp)>> {
        let mut found = Vec::new();
        self.view.scan(from, to, &mut |key, _| {
            found.push(keys::tag_place(key));
            if found.len() < CHUNK {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(found)
    }
}

/// Returns the range of index keys with these values.
fn range(generation: Generation, values: &Values<'_>) -> (Vec<u8>, Vec<u8>) {
    let value = |value| keys::tag_value(generation, values.key, value);
    let all = keys::tag_values(generation, values.key);
    let from = match values.least {
        Some((least, true)) => value(least),
        Some((least, false)) => keys::after(value(least)),
        None => all.clone(),
    };
    let to = match values.most {
        Some((most, true)) => keys::after(value(most)),
        Some((most, false)) => value(most),
        None => keys::after(all),
    };
    (from, to)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
