//! List Blobs: lists a container in pages, flat or by hierarchy.
//!
//! Source: "List Blobs". A page starts at the position in its marker and ends after `maxresults`
//! blobs and prefixes; it has a continuation marker exactly when something follows.
//!
//! ```http
//! GET /devstoreaccount1/events?restype=container&comp=list&prefix=2026/&delimiter=/
//!
//! 200 OK
//!
//! <?xml version="1.0" encoding="utf-8"?><EnumerationResults ...><Prefix>2026/</Prefix>...
//! ```

mod entry;
pub mod marker;
pub mod tree;
pub mod walk;

use smalt_protocol::xml::{ListBlobsDocument, ListHead};
use smalt_protocol::{ApiVersion, StorageError, Timestamp};

use crate::call::Call;
use crate::keys::tree::is_hierarchical;
use crate::operation::{Read, Weight};
use crate::ops::listing::{NAMES_ONLY, check_include, given, includes};
use crate::ops::lookup::ContainerName;
use crate::ops::paging::{self, Paging};
use crate::reply::Reply;
use crate::store::{Store, View};

use entry::ShownParts;
use marker::Position;
use tree::{Order, TreeWalk};
use walk::{HIDDEN_MAX, Includes, Item, Range};

/// Values of `include`, with the versions that introduced them. Same page.
const INCLUDES: [(&str, ApiVersion); 11] = [
    ("snapshots", ApiVersion::V2009_09_19),
    ("metadata", ApiVersion::V2009_09_19),
    ("uncommittedblobs", ApiVersion::V2009_09_19),
    ("copy", ApiVersion::V2012_02_12),
    ("deleted", ApiVersion::V2017_07_29),
    ("tags", ApiVersion::V2019_10_10),
    ("versions", ApiVersion::V2019_10_10),
    ("deletedwithversions", ApiVersion::V2020_10_02),
    ("immutabilitypolicy", ApiVersion::V2020_06_12),
    ("legalhold", ApiVersion::V2020_06_12),
    ("permissions", ApiVersion::V2020_06_12),
];

/// Since this version, a listing can start at a name; before, the parameter is unknown. "Version
/// 2026-02-06".
pub const STARTS_FROM: ApiVersion = ApiVersion::V2026_02_06;

/// Since this version, the response repeats the marker; before, the blob that it names. "Version
/// 2017-04-17".
const ECHOES_MARKER: ApiVersion = ApiVersion::V2017_04_17;

/// The List Blobs operation.
pub struct ListBlobs {
    name: ContainerName,
    paging: Paging,
    delimiter: Option<String>,
    start: Option<Position>,
    start_from: Option<String>,
    includes: Includes,
    /// Whether the listing shows the deleted paths of a hierarchical container, and nothing else.
    only_deleted: bool,
}

/// A page of items.
pub struct Page {
    entries: Vec<Entry>,
    next: Option<Position>,
    now: Timestamp,
}

enum Entry {
    Prefix(String),
    Item(Position, Item),
}

impl Read for ListBlobs {
    type Output = Page;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        check_include(call, &INCLUDES)?;
        let paging = Paging::of(call)?;
        let only_deleted = match given(call, "showonly").as_deref() {
            None => false,
            Some("deleted") => true,
            Some(other) => return Err(StorageError::invalid_query("showonly", other, "")),
        };
        let marker = paging.marker.as_deref().map(|marker| match only_deleted {
            true => Position::parse_of_deleted(marker),
            false => Position::parse(marker),
        });
        let list = ListBlobs {
            name: ContainerName::of(call)?,
            delimiter: given(call, "delimiter"),
            start: marker.transpose()?,
            start_from: given(call, "startFrom").filter(|_| call.version >= STARTS_FROM),
            paging,
            includes: Includes {
                snapshots: includes(call, "snapshots"),
                versions: includes(call, "versions"),
                deleted: only_deleted || includes(call, "deleted"),
                versions_only: includes(call, "deletedwithversions"),
                uncommitted: includes(call, "uncommittedblobs"),
            },
            only_deleted,
        };
        // "The delimiter parameter cannot be combined with include=snapshots": same page.
        if list.delimiter.is_some() && list.includes.snapshots {
            return Err(StorageError::invalid_query("include", "snapshots", ""));
        }
        Ok(list)
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Page, StorageError> {
        let range = Range {
            generation: self.name.find(view, now)?.generation,
            prefix: self.paging.prefix.clone(),
            start: self.start.clone(),
            start_from: self.start_from.clone(),
            includes: self.includes,
        };
        // One more item shows whether there is a next page.
        let by_directory =
            is_hierarchical(range.generation) && self.delimiter.as_deref() == Some("/");
        let reads_ahead = self.delimiter.is_none() || by_directory;
        let items = reads_ahead.then_some(self.paging.most + 1);
        let order = if by_directory {
            Order::Children
        } else {
            Order::Paths
        };
        let mut walk = TreeWalk::new(view, &range, now, items, order)?;
        let mut entries = Vec::new();
        let mut next = None;
        let mut patience = HIDDEN_MAX;
        while let Some(position) = walk.peek()? {
            if entries.len() == self.paging.most || patience == 0 {
                next = Some(position);
                break;
            }
            if self.only_deleted {
                match walk.next()? {
                    Some((position, item @ Item::Deleted(_))) => {
                        entries.push(Entry::Item(position, item));
                    }
                    _ => patience -= 1,
                }
            } else if let Some(prefix) = self.common_prefix(&position.name) {
                walk.jump(prefix)?;
                entries.push(Entry::Prefix(prefix.to_owned()));
            } else {
                match walk.next()? {
                    None | Some((_, Item::Gone)) => {}
                    Some((position, Item::Blob(blob)))
                        if by_directory && blob.directory.is_some() =>
                    {
                        entries.push(Entry::Prefix(format!("{}/", position.name)));
                    }
                    Some((position, item)) => entries.push(Entry::Item(position, item)),
                }
            }
        }
        let next = match next {
            Some(next) => Some(next),
            None => walk.stopped()?,
        };
        Ok(Page { entries, next, now })
    }

    fn render(self, page: Page, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let endpoint = call.service_endpoint();
        let prefix = given(call, "prefix");
        let mut list = ListBlobsDocument::new(&ListHead {
            has_addresses: call.version < NAMES_ONLY,
            service_endpoint: &endpoint,
            container_name: Some(&self.name.container),
            prefix: prefix.as_deref(),
            marker: if call.version >= ECHOES_MARKER {
                self.paging.marker.as_deref()
            } else {
                self.start.as_ref().map(|start| start.name.as_str())
            },
            max_results: paging::max_results(call)?,
            delimiter: self.delimiter.as_deref(),
        });
        let shown = ShownParts::of(call, page.now);
        for entry in &page.entries {
            match entry {
                Entry::Prefix(prefix) => list.push_prefix(prefix),
                Entry::Item(position, item) => shown.push(&mut list, position, item),
            }
        }
        let next = page.next.map(|next| match self.only_deleted {
            true => next.marker_of_deleted(page.now),
            false => next.marker(),
        });
        let next = next.unwrap_or_default();
        Ok(Reply::xml(200, list.finish(&next)))
    }
}

impl ListBlobs {
    /// Returns the part of a name up to and including the first delimiter after the prefix.
    fn common_prefix<'a>(&self, name: &'a str) -> Option<&'a str> {
        let delimiter = self.delimiter.as_deref()?;
        let from = self.paging.prefix.len();
        let rest = name.get(from..)?;
        let at = rest.find(delimiter)?;
        name.get(..from + at + delimiter.len())
    }
}

#[cfg(test)]
mod tests;
