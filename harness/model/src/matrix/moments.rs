//! Requests around the ends of leases, of visibility timeouts, of times to live and of retention.

use super::area::{Area, NONE};
use super::watch::Watch;
use crate::lease::Lease;
use crate::state::{Container, Model};
use crate::tiers::Waking;
use crate::vocabulary::{
    BlobId, BlobOperation, ContainerOperation, Guard, LeaseAction, LeaseId, QueueOperation,
};

const TERM: &str = "blob lease";
const BREAK: &str = "break of a blob lease";
const CONTAINER_TERM: &str = "container lease";
const CONTAINER_BREAK: &str = "break of a container lease";
const HIDDEN: &str = "visibility timeout";
const LIFE: &str = "time to live";
const DORMANT: &str = "retention";

/// A request whose answer depends on whether something has ended.
pub(super) const ENDS: Area = Area {
    name: "end",
    axes: [
        &[
            TERM,
            BREAK,
            CONTAINER_TERM,
            CONTAINER_BREAK,
            HIDDEN,
            LIFE,
            DORMANT,
        ],
        &[
            "acquire",
            "renew",
            "change",
            "write without the id",
            "write with the id",
            "get",
            "peek",
            "update",
            "delete",
            "count",
            "undelete",
            "list",
        ],
        &["its last second", "its end", "later"],
        NONE,
    ],
    exists: |[what, request, ..]| {
        let requests: &[&str] = match *what {
            HIDDEN => &["get", "peek"],
            LIFE => &["get", "peek", "update", "delete", "count"],
            DORMANT => &["undelete", "list"],
            _ => &[
                "acquire",
                "renew",
                "change",
                "write without the id",
                "write with the id",
            ],
        };
        requests.contains(request)
    },
    counts_refusals: true,
};

fn moment(now_s: u64, end_s: u64) -> Option<&'static str> {
    match now_s.checked_sub(end_s) {
        None if now_s + 1 == end_s => Some("its last second"),
        None => None,
        Some(0) => Some("its end"),
        Some(_) => Some("later"),
    }
}

/// Names the use of a lease with this id by a lease operation.
fn action(action: LeaseAction, id: LeaseId) -> Option<&'static str> {
    match action {
        LeaseAction::Acquire { .. } => Some("acquire"),
        LeaseAction::Renew(given) if given == id => Some("renew"),
        LeaseAction::Change(given, _) if given == id => Some("change"),
        _ => None,
    }
}

/// Names the use of a lease with this id by a write.
fn write(guard: Guard, id: LeaseId) -> Option<&'static str> {
    match guard.lease {
        _ if guard.condition.is_some() => None,
        None => Some("write without the id"),
        Some(given) => (given == id).then_some("write with the id"),
    }
}

impl Watch {
    fn ends(&mut self, what: &'static str, request: &'static str, now_s: u64, end_s: u64) {
        if let Some(moment) = moment(now_s, end_s) {
            self.saw(&ENDS, [what, request, moment, ""]);
        }
    }

    fn lease_ends(
        &mut self,
        lease: Lease,
        now_s: u64,
        [term, breaking]: [&'static str; 2],
        used: impl Fn(LeaseId) -> Option<&'static str>,
    ) {
        let what = match lease {
            Lease::Breaking { .. } => breaking,
            _ => term,
        };
        if let (Some(end_s), Some(request)) = (lease.end_s(), lease.id().and_then(used)) {
            self.ends(what, request, now_s, end_s);
        }
    }

    pub(super) fn blob_ends(&mut self, model: &Model, id: &BlobId, operation: &BlobOperation) {
        use BlobOperation as On;
        let Some(container) = model.containers.get(&id.container) else {
            return;
        };
        let now_s = model.now_s;
        if *operation == On::Undelete {
            for end_s in container.ends_of_deleted(|name| name == id.blob) {
                self.ends(DORMANT, "undelete", now_s, end_s);
            }
        }
        let Some(blob) = container.blobs.get(&id.blob) else {
            return;
        };
        let of = [TERM, BREAK];
        match operation {
            On::Lease(given, None) => {
                self.lease_ends(blob.lease, now_s, of, |id| action(*given, id));
            }
            On::Put(.., guard) | On::SetMetadata(_, guard) | On::SetProperties(_, guard) => {
                self.lease_ends(blob.lease, now_s, of, |id| write(*guard, id));
            }
            _ => {}
        }
    }

    pub(super) fn container_ends(
        &mut self,
        model: &Model,
        name: &str,
        operation: &ContainerOperation,
    ) {
        use ContainerOperation as On;
        let Some(container) = model.containers.get(name) else {
            return;
        };
        let now_s = model.now_s;
        let of = [CONTAINER_TERM, CONTAINER_BREAK];
        match operation {
            On::Lease(given, None) => {
                self.lease_ends(container.lease, now_s, of, |id| action(*given, id));
            }
            On::Delete(guard) => {
                self.lease_ends(container.lease, now_s, of, |id| write(*guard, id));
            }
            On::List {
                deleted: true,
                prefix,
                ..
            } => {
                for end_s in container.ends_of_deleted(|name| name.starts_with(prefix)) {
                    self.ends(DORMANT, "list", now_s, end_s);
                }
            }
            _ => {}
        }
    }

    pub(super) fn message_ends(&mut self, model: &Model, name: &str, operation: &QueueOperation) {
        let (now_s, Some(queue)) = (model.now_s, model.queues.get(name)) else {
            return;
        };
        // Otherwise the answer depends on the other messages as well.
        let has_room = |most: u32| most as usize >= queue.messages.len();
        for (id, message) in &queue.messages {
            let is_alive = message.is_alive(now_s);
            let is_visible = message.visible_s <= now_s;
            let request = match operation {
                QueueOperation::Receive { most, .. } if has_room(*most) => "get",
                QueueOperation::Peek { most } if has_room(*most) => "peek",
                QueueOperation::Update {
                    id: of, receipt, ..
                } if of == id && *receipt == message.receipt => "update",
                QueueOperation::DeleteMessage { id: of, receipt }
                    if of == id && *receipt == message.receipt =>
                {
                    "delete"
                }
                QueueOperation::Get => "count",
                _ => continue,
            };
            let is_read = ["get", "peek"].contains(&request);
            if is_read && is_alive {
                self.ends(HIDDEN, request, now_s, message.visible_s);
            }
            if let Some(end_s) = message.expires_s.filter(|_| !is_read || is_visible) {
                self.ends(LIFE, request, now_s, end_s);
            }
        }
    }
}

impl Lease {
    /// Returns when it ends by itself, if it does.
    fn end_s(self) -> Option<u64> {
        match self {
            Lease::Leased { term, .. } => term.map(|(_, end_s)| end_s),
            Lease::Breaking { until_s, .. } => Some(until_s),
            _ => None,
        }
    }
}

impl Container {
    /// Returns until when what was deleted under these names is kept.
    fn ends_of_deleted(&self, fits: impl Fn(&str) -> bool) -> impl Iterator<Item = u64> {
        let snapshots = self.snapshots.iter();
        let snapshots =
            snapshots.flat_map(|(name, taken)| taken.values().map(move |it| (name, it)));
        let deleted = self.dormant.iter().chain(snapshots);
        deleted.filter_map(move |(name, kept)| kept.until_s.filter(|_| fits(name)))
    }
}

impl Model {
    /// Returns when something ends that has not ended yet, the next end first.
    pub fn ends_s(&self) -> Vec<u64> {
        let mut ends = Vec::new();
        for container in self.containers.values() {
            ends.extend(container.ends_of_deleted(|_| true));
            ends.extend(container.lease.end_s());
            for blob in container.blobs.values() {
                ends.extend(blob.lease.end_s());
                ends.extend(blob.state.expires_s);
                ends.extend(blob.state.tier.waking.map(Waking::end_s));
            }
        }
        for message in self
            .queues
            .values()
            .flat_map(|queue| queue.messages.values())
        {
            ends.extend(message.expires_s);
            ends.push(message.visible_s);
        }
        ends.retain(|end_s| *end_s > self.now_s);
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}
