//! List Queues: lists the queues of an account, in pages.
//!
//! Source: "List Queues".
//!
//! ```http
//! GET /devstoreaccount1?comp=list&prefix=or&include=metadata
//!
//! 200 OK
//! ```

use std::ops::ControlFlow;

use smalt_protocol::xml::{ListHead, ListQueuesDocument};
use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::keys;
use crate::operation::{Read, Weight};
use crate::ops::listing::{NAMES_ONLY, check_include, includes};
use crate::ops::paging::{self, Paging};
use crate::records::{QueueRecord, Record};
use crate::reply::Reply;
use crate::store::{Store, View};

/// Values of `include`, with the versions that introduced them.
const INCLUDES: &[(&str, ApiVersion)] = &[("metadata", ApiVersion::V2009_09_19)];

/// The List Queues operation.
pub struct ListQueues {
    account: String,
    paging: Paging,
    from: String,
    with_metadata: bool,
}

/// A page: names and records, and the name that the next page starts with.
pub struct Page {
    queues: Vec<(String, QueueRecord)>,
    next: Option<String>,
}

impl Read for ListQueues {
    type Output = Page;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        check_include(call, INCLUDES)?;
        let paging = Paging::of(call)?;
        let marker = paging
            .marker
            .as_deref()
            .map(|marker| resume(call.account(), marker));
        Ok(ListQueues {
            account: call.account().to_owned(),
            from: marker.transpose()?.unwrap_or_default(),
            with_metadata: includes(call, "metadata"),
            paging,
        })
    }

    fn read(&self, view: &dyn View, _: Timestamp) -> Result<Page, StorageError> {
        let start = self.from.as_str().max(&self.paging.prefix);
        let from = keys::queue(&self.account, start);
        let to = keys::after(keys::queue(&self.account, &self.paging.prefix));
        let mut page = Page {
            queues: Vec::new(),
            next: None,
        };
        let mut failed = None;
        view.scan(&from, &to, &mut |key, value| {
            let name = keys::resource_name(key, &self.account).into_owned();
            match QueueRecord::decode(value) {
                Ok(queue) if queue.deleted_at.is_some() => ControlFlow::Continue(()),
                Ok(_) if page.queues.len() == self.paging.most => {
                    page.next = Some(name);
                    ControlFlow::Break(())
                }
                Ok(queue) => {
                    page.queues.push((name, queue));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(page), |error| Err(error.into()))
    }

    fn render(self, page: Page, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let endpoint = call.service_endpoint();
        let mut document = ListQueuesDocument::new(&ListHead {
            has_addresses: call.version < NAMES_ONLY,
            service_endpoint: &endpoint,
            prefix: call.query("prefix"),
            marker: call.query("marker"),
            max_results: paging::max_results(call)?,
            ..ListHead::default()
        });
        for (name, queue) in &page.queues {
            document.push(name, self.with_metadata.then_some(&queue.metadata));
        }
        let next = page
            .next
            .map(|name| format!("/{}/{name}", self.account))
            .unwrap_or_default();
        Ok(Reply::xml(200, document.finish(&next)).header("cache-control", "no-cache"))
    }
}

/// Parses the name in a marker: `/account/queue`.
fn resume(account: &str, marker: &str) -> Result<String, StorageError> {
    let name = marker
        .strip_prefix('/')
        .and_then(|rest| rest.strip_prefix(account));
    let name = name.and_then(|rest| rest.strip_prefix('/'));
    name.map(str::to_owned)
        .ok_or_else(|| ErrorCode::InvalidMarker.into())
}
