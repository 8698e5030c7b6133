//! Chooses the next operation of a client in a burst on one partition, from what any client has
//! seen.
//!
//! All clients use the same few names. Conditions name recently seen ETags, lease ids of other
//! clients, and the last receipts: most operations could succeed, and the order decides which do.

mod entity;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;
use smalt_model::vocabulary::{
    BlobId, BlobOperation, Condition, ContainerOperation, Content, Guard, INLINE_BYTES,
    INLINE_TEXT_BYTES, LeaseAction, LeaseId, MessageId, Metadata, Operation, PROPOSED_LEASES,
    PathOperation, QueueOperation, Receipt, Rename, Tag,
};

pub use entity::{PARTITIONS, TABLE, create_table, entity};

use super::known::Known;
use crate::histories::names::NOBODYS;

/// The container of every burst on one partition.
pub const CONTAINER: &str = "con0";
/// The queue of such a burst.
pub const QUEUE: &str = "que0";
/// Blobs of a burst on blobs.
pub const BLOBS: [&str; 2] = ["b0", "b1"];
/// Blobs of a burst on listings.
pub const LISTED: [&str; 4] = ["b0", "b1", "dir/b0", "dir/b1"];

/// Percentage of contents and texts that become payloads. The search for an order copies them.
const LONG_PERCENT: u32 = 4;

/// Paths of a burst on a hierarchical container.
const TREE: [&str; 5] = ["a", "a/f", "b", "b/f", "b/a"];

/// Random numbers, and the values that operations may name.
pub struct Draw<'a> {
    /// Source of random numbers.
    pub random: &'a mut ChaCha8Rng,
    /// Values that operations may name.
    pub known: &'a Known,
}

impl Draw<'_> {
    fn below(&mut self, end: u32) -> u32 {
        self.random.next_u32() % end.max(1)
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let end = u32::try_from(of.len()).unwrap_or(u32::MAX);
        of.get(self.below(end) as usize).cloned()
    }

    /// Returns a number below `end`, usually one of the last, sometimes one that is unknown.
    fn recent(&mut self, end: u32) -> u32 {
        if end == 0 || self.chance(5) {
            return NOBODYS;
        }
        let back = if self.chance(70) { 2 } else { end };
        end - 1 - self.below(back.min(end))
    }

    fn metadata(&mut self) -> Metadata {
        let value = self.below(4);
        match value {
            0 => Metadata::new(),
            _ => [("mark".to_owned(), format!("v{value}"))].into(),
        }
    }

    fn lease_id(&mut self) -> LeaseId {
        match self.chance(70) {
            true => LeaseId(self.below(PROPOSED_LEASES)),
            false => LeaseId(self.recent(self.known.leases())),
        }
    }

    fn own_lease(&mut self) -> LeaseId {
        LeaseId(self.below(PROPOSED_LEASES))
    }

    fn lease_action(&mut self) -> LeaseAction {
        match self.below(10) {
            0..3 => LeaseAction::Acquire {
                proposed: self.chance(70).then(|| self.own_lease()),
                duration_s: self.one(&[Some(15), Some(60), None]).flatten(),
            },
            3 => LeaseAction::Renew(self.lease_id()),
            4 => LeaseAction::Change(self.lease_id(), self.own_lease()),
            5 | 6 => LeaseAction::Release(self.lease_id()),
            _ => LeaseAction::Break {
                period_s: self.one(&[None, Some(0), Some(10)]).flatten(),
            },
        }
    }

    fn condition(&mut self) -> Option<Condition> {
        let tag = Tag(self.recent(self.known.tags()));
        match self.below(20) {
            0..3 => Some(Condition::IfMatch(Some(tag))),
            3 => Some(Condition::IfMatch(None)),
            4 => Some(Condition::IfNoneMatch(Some(tag))),
            5 => Some(Condition::IfNoneMatch(None)),
            _ => None,
        }
    }

    fn guard(&mut self) -> Guard {
        Guard {
            lease: self.chance(20).then(|| self.lease_id()),
            condition: self.condition(),
        }
    }
}

/// Returns an operation on one of these blobs.
pub fn blob(draw: &mut Draw<'_>, names: &[&str]) -> Operation {
    let id = BlobId {
        container: CONTAINER.to_owned(),
        blob: draw.one(names).unwrap_or(BLOBS[0]).to_owned(),
    };
    let guard = draw.guard();
    let operation = match draw.below(100) {
        0..28 => BlobOperation::Put(content(draw), draw.metadata().into(), guard),
        28..44 => BlobOperation::Get {
            snapshot: None,
            range: None,
            guard,
        },
        44..54 => BlobOperation::Head {
            snapshot: None,
            guard,
        },
        54..66 => BlobOperation::SetMetadata(draw.metadata(), guard),
        66..74 => BlobOperation::Delete {
            snapshot: None,
            snapshots: None,
            guard,
        },
        74..87 => BlobOperation::Lease(draw.lease_action(), guard.condition),
        87..94 => BlobOperation::SetTags(draw.metadata(), guard.lease),
        _ => BlobOperation::GetTags(guard.lease),
    };
    Operation::Blob(id, operation)
}

fn content(draw: &mut Draw<'_>) -> Content {
    let length = match draw.chance(LONG_PERCENT) {
        true => INLINE_BYTES + 1,
        false => draw.one(&[3, 1, 0, 40]).unwrap_or(3),
    };
    Content {
        seed: draw.random.next_u32().to_le_bytes()[0],
        length,
    }
}

/// Returns an operation on the container.
pub fn container(draw: &mut Draw<'_>) -> Operation {
    let lease = draw.chance(25).then(|| draw.lease_id());
    let guard = Guard {
        lease,
        condition: None,
    };
    let operation = match draw.below(100) {
        0..18 => ContainerOperation::Create(draw.metadata()),
        18..30 => ContainerOperation::Delete(guard),
        30..52 => ContainerOperation::Get { lease },
        52..68 => ContainerOperation::SetMetadata(draw.metadata(), guard),
        _ => ContainerOperation::Lease(draw.lease_action(), None),
    };
    Operation::Container(CONTAINER.to_owned(), operation)
}

/// Returns an operation on a path of a hierarchical container, through either interface.
pub fn lake(draw: &mut Draw<'_>) -> Operation {
    let path = |draw: &mut Draw<'_>| BlobId {
        container: CONTAINER.to_owned(),
        blob: draw.one(&TREE).unwrap_or(TREE[0]).to_owned(),
    };
    let id = path(draw);
    let guard = match draw.chance(15) {
        true => draw.guard(),
        false => Guard::default(),
    };
    let operation = match draw.below(100) {
        0..24 => {
            let operation = match blob(draw, &TREE) {
                // A hierarchical account has no index tags.
                Operation::Blob(id, BlobOperation::SetTags(..) | BlobOperation::GetTags(_)) => {
                    let head = BlobOperation::Head {
                        snapshot: None,
                        guard,
                    };
                    Operation::Blob(id, head)
                }
                other => other,
            };
            return operation;
        }
        24..42 => PathOperation::Create {
            directory: draw.chance(60),
            metadata: draw.metadata(),
            guard,
        },
        42..49 => PathOperation::Append {
            content: Content { seed: 7, length: 3 },
            position: draw.one(&[0, 3]).unwrap_or(0),
            flush: draw.chance(70),
            lease: guard.lease,
        },
        49..51 => PathOperation::Flush {
            position: 3,
            retain: false,
            guard,
        },
        51..67 => PathOperation::Rename(Rename {
            source: path(draw),
            source_condition: None,
            source_lease: None,
            guard,
        }),
        67..72 => PathOperation::Delete {
            recursive: draw.chance(70),
            guard,
        },
        72..77 => PathOperation::Status(guard),
        77..80 => PathOperation::Lease(draw.lease_action(), None),
        _ => {
            let list = PathOperation::List {
                recursive: true,
                page: 5_000,
            };
            let root = BlobId {
                blob: String::new(),
                ..id
            };
            return Operation::Path(root, list);
        }
    };
    Operation::Path(id, operation)
}

/// Returns a write to one of some blobs, or a listing of all of them in small pages.
pub fn listing(draw: &mut Draw<'_>) -> Operation {
    if draw.chance(35) {
        let list = ContainerOperation::List {
            prefix: String::new(),
            delimited: false,
            page: draw.one(&[1, 2, 5_000]).unwrap_or(1),
            snapshots: false,
            uncommitted: false,
            deleted: false,
        };
        return Operation::Container(CONTAINER.to_owned(), list);
    }
    let id = BlobId {
        container: CONTAINER.to_owned(),
        blob: draw.one(&LISTED).unwrap_or(LISTED[0]).to_owned(),
    };
    let guard = Guard::default();
    let operation = match draw.below(10) {
        0..5 => BlobOperation::Put(content(draw), draw.metadata().into(), guard),
        5 | 6 => BlobOperation::SetMetadata(draw.metadata(), guard),
        _ => BlobOperation::Delete {
            snapshot: None,
            snapshots: None,
            guard,
        },
    };
    Operation::Blob(id, operation)
}

/// Returns a text, sometimes so long that it becomes a payload.
fn text(word: &str, draw: &mut Draw<'_>) -> String {
    let is_long = draw.chance(LONG_PERCENT);
    let width = if is_long { INLINE_TEXT_BYTES + 1 } else { 0 };
    format!("{:.<width$}", format!("{word} {}", draw.below(3)))
}

/// Returns an operation on the queue.
pub fn queue(draw: &mut Draw<'_>) -> Operation {
    let (id, receipt) = message(draw);
    let operation = match draw.below(100) {
        0..30 => QueueOperation::Put {
            text: text("text", draw),
            ttl_s: draw.one(&[None, Some(-1), Some(3_601)]).flatten(),
            visibility_timeout_s: draw.one(&[0, 0, 0, 30]).unwrap_or(0),
        },
        30..58 => QueueOperation::Receive {
            most: draw.one(&[1, 1, 2, 32]).unwrap_or(1),
            visibility_timeout_s: draw.one(&[30, 1]).unwrap_or(30),
        },
        58..66 => QueueOperation::Peek {
            most: draw.one(&[1, 32]).unwrap_or(1),
        },
        66..78 => QueueOperation::Update {
            id,
            receipt,
            visibility_timeout_s: draw.one(&[0, 0, 30, 604_800]).unwrap_or(0),
            text: draw.chance(50).then(|| text("new", draw)),
        },
        78..90 => QueueOperation::DeleteMessage { id, receipt },
        90..93 => QueueOperation::Get,
        93..96 => QueueOperation::Create(draw.metadata()),
        96 => QueueOperation::SetMetadata(draw.metadata()),
        97 => QueueOperation::Delete,
        _ => QueueOperation::Clear,
    };
    Operation::Queue(QUEUE.to_owned(), operation)
}

/// Returns a message and a receipt, usually among the last ones shown.
fn message(draw: &mut Draw<'_>) -> (MessageId, Receipt) {
    let count = u32::try_from(draw.known.shown.len()).unwrap_or(u32::MAX);
    let at = draw.recent(count) as usize;
    let nobodys = (MessageId(NOBODYS), Receipt(NOBODYS));
    draw.known.shown.get(at).copied().unwrap_or(nobodys)
}

/// Returns the operation that creates the container.
pub fn create_container() -> Operation {
    let create = ContainerOperation::Create(Metadata::new());
    Operation::Container(CONTAINER.to_owned(), create)
}

/// Returns the operation that creates the queue.
pub fn create_queue() -> Operation {
    Operation::Queue(QUEUE.to_owned(), QueueOperation::Create(Metadata::new()))
}
