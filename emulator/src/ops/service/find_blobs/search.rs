//! Searching the index of tags: container by container in the order of their names, in each the
//! blobs that have the tag which narrows the query most, in the order of its values.
//!
//! A page ends when it is full or when enough was looked at: "In certain cases, the service might
//! return fewer results than maxresults specifies, but still return a continuation token."

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

/// Entries of the index that one request looks at.
pub const SEEN_MAX: usize = 20_000;
/// Containers that one request looks into.
const CONTAINERS_MAX: usize = 5_000;
/// Entries and containers read at once.
const CHUNK: usize = 256;

/// Where a search is to be done.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Account.
    pub account: String,
    /// The one container, where there is one.
    pub container: Option<String>,
}

/// A place in the order of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    container: String,
    value: String,
    blob: String,
    at: Timestamp,
}

/// A blob that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Container.
    pub container: String,
    /// Blob.
    pub blob: String,
    /// Its record.
    pub record: Box<BlobRecord>,
}

/// A page.
#[derive(Debug, Default)]
pub struct Page {
    /// What was found.
    pub found: Vec<Found>,
    /// Where the next page starts.
    pub next: Option<Place>,
}

impl Place {
    /// The start of a container.
    fn start_of(container: String) -> Self {
        Place {
            container,
            value: String::new(),
            blob: String::new(),
            at: Timestamp::from_ticks(0),
        }
    }

    /// The marker of a page that starts here.
    pub fn marker(&self) -> String {
        let at = self.at.iso_ticks();
        marker::write(&[&self.container, &self.value, &self.blob, &at])
    }

    /// Reads a marker.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for what no page gave out.
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

/// One search.
pub struct Search<'a> {
    /// State of one moment.
    pub view: &'a dyn View,
    /// The time that it is looked at.
    pub now: Timestamp,
    /// What is looked for.
    pub query: &'a TagQuery,
    /// Blobs of a page.
    pub most: usize,
    /// Entries of the index that are looked at: [`SEEN_MAX`].
    pub seen_most: usize,
    /// Whether previous versions are found as well.
    pub versions: bool,
}

impl Search<'_> {
    /// The page that starts at a place.
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
            // The name behind the last one.
            from = Place::start_of(format!("{}\0", from.container));
        }
        page.next = Some(from);
        Ok(page)
    }

    /// The next containers, from this name on.
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

    /// Looks through the index of one container.
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

    /// What stands at an entry of the index, if it is looked for.
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

    /// The next entries of the index.
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

/// The keys of the index that have these values.
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
