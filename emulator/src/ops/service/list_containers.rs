//! List Containers: lists the containers of an account by name, in pages.
//!
//! Source: "List Containers". A marker names the first container of its page.
//!
//! ```http
//! GET /devstoreaccount1/?comp=list&prefix=ev&maxresults=2
//!
//! 200 OK
//!
//! <?xml version="1.0" encoding="utf-8"?><EnumerationResults ...><Containers>...</Containers>
//! <NextMarker>/devstoreaccount1/events-old</NextMarker></EnumerationResults>
//! ```

use std::ops::ControlFlow;

use smalt_protocol::xml::{BlobLease, ContainerEntry, ListContainersDocument, ListHead};
use smalt_protocol::{ApiVersion, StorageError, Timestamp};

use crate::call::Call;
use crate::keys;
use crate::operation::{Read, Weight};
use crate::ops::container::deleted;
use crate::ops::container::properties::ContainerHeaders;
use crate::ops::listing::{NAMES_ONLY, bad_marker, check_include, given, includes};
use crate::ops::paging::{self, Paging};
use crate::records::{ContainerRecord, Record};
use crate::reply::Reply;
use crate::store::{Store, StoreResult, View};

/// Values of `include`, with the versions that introduced them. Same page.
const INCLUDES: [(&str, ApiVersion); 3] = [
    ("metadata", ApiVersion::V2009_09_19),
    ("deleted", ApiVersion::V2019_12_12),
    ("system", ApiVersion::V2020_10_02),
];

/// Containers of the service itself, listed only with `include=system`.
const SYSTEM: [&str; 2] = ["$logs", "$blobchangefeed"];

/// The List Containers operation.
pub struct ListContainers {
    account: String,
    paging: Paging,
    start: Place,
    system: bool,
    deleted: bool,
    being_deleted_s: u64,
}

/// The position of a container in a listing: by name, and within one name deleted ones first,
/// oldest first, and the container itself last.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    name: String,
    /// Deletion time; [`Timestamp::MAX`] for the container itself.
    deleted_at: Timestamp,
}

/// A page of containers.
#[derive(Default)]
pub struct Page {
    containers: Vec<(Place, ContainerRecord)>,
    next: Option<Place>,
    now: Timestamp,
}

impl Read for ListContainers {
    type Output = Page;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        check_include(call, &INCLUDES)?;
        let paging = Paging::of(call)?;
        let marked = match &paging.marker {
            Some(marker) => marked_place(marker).ok_or_else(bad_marker)?,
            None => Place::default(),
        };
        let first = Place {
            name: paging.prefix.clone(),
            ..Place::default()
        };
        Ok(ListContainers {
            account: call.account().to_owned(),
            start: marked.max(first),
            paging,
            system: includes(call, "system"),
            deleted: includes(call, "deleted"),
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Page, StorageError> {
        let mut containers = self.living(view, now)?;
        if self.deleted {
            containers.extend(self.kept(view, now)?);
            containers.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        let next = containers.get(self.paging.most);
        let next = next.map(|(place, _)| place.clone());
        containers.truncate(self.paging.most);
        Ok(Page {
            containers,
            next,
            now,
        })
    }

    fn render(self, page: Page, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let endpoint = call.service_endpoint();
        let prefix = given(call, "prefix");
        let mut list = ListContainersDocument::new(&ListHead {
            has_addresses: call.version < NAMES_ONLY,
            service_endpoint: &endpoint,
            prefix: prefix.as_deref(),
            marker: self.paging.marker.as_deref(),
            max_results: paging::max_results(call)?,
            ..ListHead::default()
        });
        let metadata = includes(call, "metadata");
        for (place, container) in &page.containers {
            let shown = ContainerHeaders::of(container, call);
            let kept = container.kept();
            let version = kept.map(|_| deleted::version(place.deleted_at));
            list.push(&ContainerEntry {
                name: &place.name,
                deleted_version: version.as_deref(),
                last_modified: container.last_modified,
                etag: Some(container.etag),
                lease: lease(container, self.being_deleted_s, page.now),
                public_access: shown.public_access,
                encryption_scope: shown.encryption_scope,
                immutability: shown.immutability,
                immutable_with_versioning: shown.immutable_with_versioning,
                deletion: kept.map(|kept| (kept.at, deleted::remaining_days(kept, page.now))),
                metadata: metadata.then_some(&container.metadata),
            });
        }
        let next = page.next.map(|next| self.marker(&next));
        Ok(Reply::xml(200, list.finish(&next.unwrap_or_default())))
    }
}

impl ListContainers {
    /// Returns the names and records of a page, and the marker of the next one.
    pub fn names(&self, page: Page) -> (Vec<(String, ContainerRecord)>, Option<String>) {
        let next = page.next.map(|next| self.marker(&next));
        let shown = page.containers.into_iter();
        (
            shown.map(|(place, found)| (place.name, found)).collect(),
            next,
        )
    }

    /// Returns the existing containers of a page and the one after it.
    fn living(
        &self,
        view: &dyn View,
        now: Timestamp,
    ) -> StoreResult<Vec<(Place, ContainerRecord)>> {
        let from = keys::container(&self.account, &self.start.name);
        let to = keys::after(keys::container(&self.account, &self.paging.prefix));
        self.page(view, &from, &to, |key, mut container| {
            let name = keys::resource_name(key, &self.account).into_owned();
            let is_hidden = SYSTEM.contains(&name.as_str()) && !self.system;
            if container.deleted_at.is_some() || is_hidden {
                return None;
            }
            container.lease = container.lease.at(now);
            let place = Place {
                name,
                deleted_at: Timestamp::MAX,
            };
            Some((place, container))
        })
    }

    /// Returns the deleted containers of a page and the one after it.
    fn kept(&self, view: &dyn View, now: Timestamp) -> StoreResult<Vec<(Place, ContainerRecord)>> {
        let from = keys::deleted_containers_from(&self.account, &self.start.name);
        let to = keys::deleted_containers_from(&self.account, &self.paging.prefix);
        self.page(view, &from, &keys::after(to), |key, container| {
            let (name, deleted_at) = keys::deleted_container_name(key, &self.account);
            let place = Place { name, deleted_at };
            let is_kept = container.kept().is_some_and(|kept| !kept.is_over(now));
            (is_kept && place >= self.start).then_some((place, container))
        })
    }

    fn page(
        &self,
        view: &dyn View,
        from: &[u8],
        to: &[u8],
        shown: impl Fn(&[u8], ContainerRecord) -> Option<(Place, ContainerRecord)>,
    ) -> StoreResult<Vec<(Place, ContainerRecord)>> {
        let mut found = Vec::new();
        let mut damaged = None;
        view.scan(from, to, &mut |key, value| {
            match ContainerRecord::decode(value) {
                Ok(container) => found.extend(shown(key, container)),
                Err(error) => damaged = Some(error),
            }
            if damaged.is_some() || found.len() > self.paging.most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        damaged.map_or(Ok(found), Err)
    }

    /// Returns the marker: `/account/container` and, if deleted ones are listed, which one of that
    /// name.
    fn marker(&self, next: &Place) -> String {
        let (account, name) = (&self.account, &next.name);
        if self.deleted {
            format!("/{account}/{name}/{}", deleted::version(next.deleted_at))
        } else {
            format!("/{account}/{name}")
        }
    }
}

/// Returns the lease to show. Recorded: the service leases a deleted container while its name is
/// reserved, and the lease expires after that.
fn lease(container: &ContainerRecord, being_deleted_s: u64, now: Timestamp) -> BlobLease<'static> {
    let lease = container.lease;
    let (status, state, duration) = match container.deleted_at {
        None => (lease.status_str(), lease.state_str(), lease.duration_str()),
        Some(at) if now < at.plus_s(being_deleted_s) => ("locked", "leased", Some("fixed")),
        Some(_) => ("unlocked", "expired", None),
    };
    BlobLease {
        status: Some(status),
        state: Some(state),
        duration,
    }
}

fn marked_place(marker: &str) -> Option<Place> {
    let (_, rest) = marker.strip_prefix('/')?.split_once('/')?;
    let (name, deleted_at) = match rest.split_once('/') {
        Some((name, version)) => (name, deleted::parse_version(version)?),
        None => (rest, Timestamp::default()),
    };
    Some(Place {
        name: name.to_owned(),
        deleted_at,
    })
}
