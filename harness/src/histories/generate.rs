//! The next operation, out of random bytes: about seven in ten can succeed as things stand, one in
//! four misses narrowly, one in twenty breaks a rule of syntax.
//!
//! Names are few, so that histories meet themselves again and again. Zero bytes are the simplest
//! choice: shrinking leads there.

use smalt_model::Model;
use smalt_model::vocabulary::{
    BlobId, BlobOperation, BlockSource, Condition, ContainerOperation, Content, Guard, LeaseAction,
    LeaseId, Malformed, MessageId, Metadata, Moment, Operation, PROPOSED_LEASES, QueueOperation,
    Receipt, Snapshots, Tag,
};

/// Bytes that one choice may take.
pub const DICE: usize = 24;

const CONTAINERS: [&str; 3] = ["con0", "con1", "con2"];
const BLOBS: [&str; 4] = ["b0", "b1", "dir/b0", "dir/b1"];
const QUEUES: [&str; 2] = ["que0", "que1"];
const BLOCK_IDS: [&[u8]; 4] = [b"aa", b"bb", b"cc", b"longer"];
/// Steps of time in seconds: around the ends of leases, visibility and lives.
const SECONDS: [u64; 10] = [1, 5, 14, 15, 16, 30, 60, 61, 3_600, 7 * 24 * 3_600];

/// Random bytes, taken one after the other.
struct Dice<'a>(&'a [u8], Space);

impl Dice<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below this one.
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let place = self.below(of.len());
        of.get(place).cloned()
    }

    /// True in about so many of a hundred.
    fn chance(&mut self, percent: u8) -> bool {
        // High bytes are the chance, so that zero is the simple side.
        u16::from(self.byte()) * 100 >= (100 - u16::from(percent)) * 256
    }
}

/// What a history is about.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    containers: usize,
    blobs: usize,
    queues: usize,
    /// Time passes.
    advances: bool,
    /// The service is stopped and started.
    restarts: bool,
}

impl Space {
    /// Few names, and time.
    pub const HISTORY: Space = Space {
        containers: CONTAINERS.len(),
        blobs: BLOBS.len(),
        queues: QUEUES.len(),
        advances: true,
        restarts: false,
    };
    /// The same with restarts.
    pub const RESTARTS: Space = Space {
        restarts: true,
        ..Space::HISTORY
    };
    /// One name of each kind in one moment: everybody meets there.
    pub const BURST: Space = Space {
        containers: 1,
        blobs: 1,
        queues: 1,
        advances: false,
        restarts: false,
    };
}

/// An operation for the state at hand.
pub fn choose(model: &Model, space: Space, dice: &[u8]) -> Operation {
    let dice = &mut Dice(dice, space);
    let has = |name: &&str| model.hint_of_container(name).tag.is_some();
    if !CONTAINERS.iter().any(has) && dice.below(10) < 8 {
        let name = CONTAINERS[0].to_owned();
        return Operation::Container(name, ContainerOperation::Create(metadata(dice)));
    }
    match dice.below(100) {
        0..55 => blob(model, dice),
        55..70 => container(model, dice),
        88..93 if space.advances => Operation::Malformed(
            dice.one(&Malformed::ALL)
                .unwrap_or(Malformed::ContainerName),
        ),
        93..95 if space.restarts => Operation::Restart,
        88..100 if space.advances => Operation::Advance {
            seconds: dice.one(&SECONDS).unwrap_or(1),
        },
        _ => queue(model, dice),
    }
}

fn metadata(dice: &mut Dice<'_>) -> Metadata {
    let names = ["mark", "owner"];
    let count = dice.below(3);
    let pair = |name: &&str| ((*name).to_owned(), format!("v{}", dice.below(3)));
    names.iter().take(count).map(pair).collect()
}

fn container_name(model: &Model, dice: &mut Dice<'_>) -> String {
    let all = &CONTAINERS[..dice.1.containers];
    let there: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| model.hint_of_container(name).tag.is_some())
        .collect();
    // One that is there, most of the time.
    let chosen = if there.is_empty() || dice.chance(8) {
        dice.one(all)
    } else {
        dice.one(&there)
    };
    chosen.unwrap_or(CONTAINERS[0]).to_owned()
}

fn blob_id(model: &Model, dice: &mut Dice<'_>, there: bool) -> BlobId {
    let container = container_name(model, dice);
    let id = |blob: &&str| BlobId {
        container: container.clone(),
        blob: (*blob).to_owned(),
    };
    let all: Vec<BlobId> = BLOBS[..dice.1.blobs].iter().map(id).collect();
    let known: Vec<BlobId> = all
        .iter()
        .filter(|id| model.hint_of_blob(id).tag.is_some())
        .cloned()
        .collect();
    let chosen = if there && !known.is_empty() && !dice.chance(10) {
        dice.one(&known)
    } else {
        dice.one(&all)
    };
    chosen.unwrap_or_else(|| all[0].clone())
}

/// The lease id that passes, or another now and then.
fn lease_id(active: Option<LeaseId>, dice: &mut Dice<'_>) -> Option<LeaseId> {
    if dice.chance(15) {
        return dice.chance(50).then(|| any_lease(dice));
    }
    active
}

fn any_lease(dice: &mut Dice<'_>) -> LeaseId {
    LeaseId(u32::try_from(dice.below(PROPOSED_LEASES as usize + 2)).unwrap_or(0))
}

/// An id that clients propose.
fn own_lease(dice: &mut Dice<'_>) -> LeaseId {
    LeaseId(u32::try_from(dice.below(PROPOSED_LEASES as usize)).unwrap_or(0))
}

fn condition(tag: Option<Tag>, model: &Model, dice: &mut Dice<'_>) -> Option<Condition> {
    if !dice.chance(35) {
        return None;
    }
    let right = dice.chance(60);
    let other = Some(Tag(u32::from(dice.byte()) % (model.numbers().tags + 1)));
    let now_s = model.now_s();
    Some(match dice.below(6) {
        0 | 1 => Condition::IfMatch(if right { tag.or(other) } else { other }),
        2 => Condition::IfNoneMatch(if right { other } else { tag.or(other) }),
        3 => Condition::IfNoneMatch(None),
        4 => Condition::IfModifiedSince(if right { now_s - 3_600 } else { now_s }),
        _ => Condition::IfUnmodifiedSince(if right { now_s } else { now_s - 3_600 }),
    })
}

fn lease_action(active: Option<LeaseId>, dice: &mut Dice<'_>) -> LeaseAction {
    let held = active.filter(|_| !dice.chance(20));
    let held = held.unwrap_or_else(|| any_lease(dice));
    match dice.below(7) {
        0 | 1 => LeaseAction::Acquire {
            proposed: dice.chance(60).then(|| own_lease(dice)),
            duration_s: dice.one(&[Some(15), Some(60), None]).flatten(),
        },
        2 => LeaseAction::Renew(held),
        3 => LeaseAction::Change(held, own_lease(dice)),
        4 => LeaseAction::Release(held),
        _ => LeaseAction::Break {
            period_s: dice.one(&[None, Some(0), Some(10), Some(60)]).flatten(),
        },
    }
}

fn container(model: &Model, dice: &mut Dice<'_>) -> Operation {
    let kind = dice.below(12);
    if kind < 2 {
        let all = &CONTAINERS[..dice.1.containers];
        let name = dice.one(all).unwrap_or(CONTAINERS[0]).to_owned();
        return Operation::Container(name, ContainerOperation::Create(metadata(dice)));
    }
    let name = container_name(model, dice);
    let hint = model.hint_of_container(&name);
    let dates_only = |condition: Option<Condition>| {
        condition.filter(|c| !matches!(c, Condition::IfMatch(_) | Condition::IfNoneMatch(_)))
    };
    let operation = match kind {
        2 => ContainerOperation::Delete(Guard {
            lease: lease_id(hint.lease, dice),
            condition: dates_only(condition(hint.tag, model, dice)),
        }),
        3 | 4 => ContainerOperation::Get {
            lease: lease_id(hint.lease, dice),
        },
        5 => ContainerOperation::SetMetadata(
            metadata(dice),
            Guard {
                lease: lease_id(hint.lease, dice),
                condition: None,
            },
        ),
        6..9 => ContainerOperation::Lease(
            lease_action(hint.lease, dice),
            dates_only(condition(hint.tag, model, dice)),
        ),
        _ => ContainerOperation::List {
            prefix: dice.one(&["", "b", "dir/"]).unwrap_or("").to_owned(),
            delimited: dice.chance(30),
            page: dice.one(&[5_000, 1, 2, 3]).unwrap_or(5_000),
            snapshots: dice.chance(30),
            uncommitted: dice.chance(50),
        },
    };
    Operation::Container(name, operation)
}

fn content(dice: &mut Dice<'_>) -> Content {
    Content {
        seed: dice.byte(),
        length: dice.one(&[3, 1, 0, 600]).unwrap_or(3),
    }
}

fn moment(known: &[Moment], dice: &mut Dice<'_>) -> Moment {
    let known = dice.one(known).filter(|_| !dice.chance(10));
    known.unwrap_or(Moment(u32::from(dice.byte())))
}

fn blob(model: &Model, dice: &mut Dice<'_>) -> Operation {
    let kind = dice.below(24);
    let id = blob_id(model, dice, kind > 3);
    let hint = model.hint_of_blob(&id);
    let guard = Guard {
        lease: lease_id(hint.lease, dice),
        condition: condition(hint.tag, model, dice),
    };
    let snapshot =
        (!hint.snapshots.is_empty() && dice.chance(30)).then(|| moment(&hint.snapshots, dice));
    let reader = Guard {
        // A snapshot has no lease to name.
        lease: guard.lease.filter(|_| snapshot.is_none()),
        ..guard
    };
    let operation = match kind {
        0..3 => BlobOperation::Put(content(dice), metadata(dice), guard),
        3 | 4 => BlobOperation::PutBlock(
            dice.one(&BLOCK_IDS).unwrap_or(BLOCK_IDS[0]).to_vec(),
            content(dice),
            guard.lease,
        ),
        5 | 6 => BlobOperation::PutBlockList(
            block_list(&hint.committed, &hint.uncommitted, dice),
            metadata(dice),
            guard,
        ),
        7 => BlobOperation::GetBlockList { lease: guard.lease },
        8 | 9 => BlobOperation::Get {
            snapshot,
            range: dice.chance(40).then(|| range(dice)),
            guard: reader,
        },
        10 | 11 => BlobOperation::Head {
            snapshot,
            guard: reader,
        },
        12 => BlobOperation::SetMetadata(metadata(dice), guard),
        13 | 14 => BlobOperation::Delete {
            snapshot,
            snapshots: dice
                .one(&[None, Some(Snapshots::Include), Some(Snapshots::Only)])
                .flatten(),
            guard: reader,
        },
        15 | 16 => BlobOperation::Snapshot(metadata(dice), guard),
        17..20 => BlobOperation::Lease(lease_action(hint.lease, dice), guard.condition),
        20 => BlobOperation::SetTags(metadata(dice), guard.lease),
        21 => BlobOperation::GetTags(guard.lease),
        _ => copy(model, guard, dice),
    };
    Operation::Blob(id, operation)
}

fn copy(model: &Model, guard: Guard, dice: &mut Dice<'_>) -> BlobOperation {
    let source = blob_id(model, dice, true);
    let found = model.hint_of_blob(&source);
    BlobOperation::Copy {
        snapshot: (!found.snapshots.is_empty() && dice.chance(30))
            .then(|| moment(&found.snapshots, dice)),
        source_condition: condition(found.tag, model, dice),
        metadata: metadata(dice),
        source,
        guard,
    }
}

fn range(dice: &mut Dice<'_>) -> (u64, Option<u64>) {
    let first = dice.one(&[0, 1, 2, 3, 500, 700]).unwrap_or(0);
    let length = dice.one(&[None, Some(0), Some(1), Some(1_000)]).flatten();
    (first, length.map(|length| first + length))
}

fn block_list(
    committed: &[Vec<u8>],
    uncommitted: &[Vec<u8>],
    dice: &mut Dice<'_>,
) -> Vec<(BlockSource, Vec<u8>)> {
    let mut list = Vec::new();
    for _ in 0..dice.below(4) {
        let near = BLOCK_IDS[dice.below(BLOCK_IDS.len())].to_vec();
        let entry = match dice.below(8) {
            0..3 => dice.one(uncommitted).map(|id| (BlockSource::Latest, id)),
            3 | 4 => dice.one(committed).map(|id| (BlockSource::Committed, id)),
            5 | 6 => dice
                .one(uncommitted)
                .map(|id| (BlockSource::Uncommitted, id)),
            _ => Some((BlockSource::Latest, near)),
        };
        list.extend(entry);
    }
    list
}

fn queue(model: &Model, dice: &mut Dice<'_>) -> Operation {
    let other = dice.chance(30) && dice.1.queues > 1;
    let name = QUEUES[usize::from(other)];
    let messages = model.receipts(name);
    if !model.has_queue(name) && dice.below(10) < 7 {
        return Operation::Queue(name.to_owned(), QueueOperation::Create(metadata(dice)));
    }
    let near = (
        MessageId(u32::from(dice.byte()) % (model.numbers().messages + 1)),
        Receipt(u32::from(dice.byte()) % (model.numbers().receipts + 1)),
    );
    let known = dice.one(&messages).unwrap_or(near);
    let (id, receipt) = if dice.chance(25) {
        (known.0, near.1)
    } else {
        known
    };
    let seconds = |dice: &mut Dice<'_>| dice.one(&[0, 1, 30, 3_600]).unwrap_or(0);
    let operation = match dice.below(20) {
        0..3 => QueueOperation::Create(metadata(dice)),
        3..8 => {
            let ttl_s = dice
                .one(&[None, Some(-1), Some(3_601), Some(7_200)])
                .flatten();
            QueueOperation::Put {
                text: format!("text {}", dice.below(4)),
                ttl_s,
                visibility_timeout_s: seconds(dice),
            }
        }
        8..12 => QueueOperation::Receive {
            most: dice.one(&[1, 2, 32]).unwrap_or(1),
            visibility_timeout_s: dice.one(&[30, 1, 3_600]).unwrap_or(30),
        },
        12 => QueueOperation::Peek {
            most: dice.one(&[1, 32]).unwrap_or(1),
        },
        13..15 => QueueOperation::Update {
            id,
            receipt,
            visibility_timeout_s: dice.one(&[0, 1, 30, 3_600, 604_800]).unwrap_or(0),
            text: dice.chance(50).then(|| format!("new {}", dice.below(4))),
        },
        15..17 => QueueOperation::DeleteMessage { id, receipt },
        17 => QueueOperation::Get,
        18 => QueueOperation::SetMetadata(metadata(dice)),
        _ => match dice.below(4) {
            0 => QueueOperation::Delete,
            _ => QueueOperation::Clear,
        },
    };
    Operation::Queue(name.to_owned(), operation)
}
