//! List Containers: a page of an account's containers by name.
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
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::keys;
use crate::operation::Read;
use crate::ops::container::properties::Shown;
use crate::ops::listing::{bad_marker, check_include, given, includes};
use crate::ops::paging::{self, Paging};
use crate::records::{ContainerRecord, Record};
use crate::reply::Reply;
use crate::store::{Store, View};

/// Containers of the service itself, listed with `include=system` only.
const SYSTEM: [&str; 2] = ["$logs", "$blobchangefeed"];

/// List Containers.
pub struct ListContainers {
    account: String,
    paging: Paging,
    start: String,
    system: bool,
}

/// A page.
#[derive(Default)]
pub struct Page {
    containers: Vec<(String, ContainerRecord)>,
    next: Option<String>,
}

impl Read for ListContainers {
    type Output = Page;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        check_include(call, &["metadata", "deleted", "system"])?;
        let paging = Paging::of(call)?;
        let marked = match &paging.marker {
            Some(marker) => marked_name(marker).ok_or_else(bad_marker)?,
            None => "",
        };
        Ok(ListContainers {
            account: call.account().to_owned(),
            start: marked.max(&paging.prefix).to_owned(),
            paging,
            system: includes(call, "system"),
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Page, StorageError> {
        let from = keys::container(&self.account, &self.start);
        let to = keys::after(keys::container(&self.account, &self.paging.prefix));
        let mut page = Page::default();
        let mut damaged = None;
        view.scan(&from, &to, &mut |key, value| {
            let name = keys::resource_name(key, &self.account);
            let mut container = match ContainerRecord::decode(value) {
                Ok(container) => container,
                Err(error) => {
                    damaged = Some(error);
                    return ControlFlow::Break(());
                }
            };
            let is_hidden = SYSTEM.contains(&name.as_ref()) && !self.system;
            if container.deleted_at.is_some() || is_hidden {
                return ControlFlow::Continue(());
            }
            if page.containers.len() == self.paging.most {
                page.next = Some(name.into_owned());
                return ControlFlow::Break(());
            }
            container.lease = container.lease.at(now);
            page.containers.push((name.into_owned(), container));
            ControlFlow::Continue(())
        })?;
        damaged.map_or(Ok(page), |error| Err(error.into()))
    }

    fn render(self, page: Page, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let endpoint = call.service_endpoint();
        let prefix = given(call, "prefix");
        let mut list = ListContainersDocument::new(&ListHead {
            service_endpoint: &endpoint,
            prefix: prefix.as_deref(),
            marker: self.paging.marker.as_deref(),
            max_results: paging::max_results(call)?,
            ..ListHead::default()
        });
        let metadata = includes(call, "metadata");
        for (name, container) in &page.containers {
            let shown = Shown::of(container, call.version);
            list.push(&ContainerEntry {
                name,
                deleted_version: None,
                last_modified: container.last_modified,
                etag: Some(container.etag),
                lease: BlobLease {
                    status: Some(container.lease.status_str()),
                    state: Some(container.lease.state_str()),
                    duration: container.lease.duration_str(),
                },
                public_access: shown.public_access,
                encryption_scope: shown.encryption_scope,
                immutability: shown.immutability,
                immutable_with_versioning: shown.immutable_with_versioning,
                deletion: None,
                metadata: metadata.then_some(&container.metadata),
            });
        }
        let next = page.next.map(|name| format!("/{}/{name}", self.account));
        Ok(Reply::xml(200, list.finish(&next.unwrap_or_default())))
    }
}

/// The container that a marker `/account/container` names.
fn marked_name(marker: &str) -> Option<&str> {
    let (_, name) = marker.strip_prefix('/')?.split_once('/')?;
    Some(name)
}
