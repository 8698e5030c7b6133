//! Tiers. They have a blob of their own, because most operations are refused while it is archived.

use smalt_model::Model;
use smalt_model::tiers::Tiered;
use smalt_model::vocabulary::{BlobId, BlobOperation, Guard, Labels, Operation, Priority, Tier};

use super::blobs;
use super::dice::{Dice, Miss};
use super::parts::{Kind, metadata, wide};

pub(super) const KINDS: &[Kind] = &[wide("blob set tier", 44, set)];

/// Not among the names of other generators, and before them in listings.
const BLOB: &str = "archive";
/// Percentage of requests that touch the blob without a change of its tier.
const TOUCH_PERCENT: u8 = 55;

fn blob(container: &str) -> BlobId {
    BlobId {
        container: container.to_owned(),
        blob: BLOB.to_owned(),
    }
}

/// Creates, archives, rehydrates and reads a blob; for a near miss, the blob is absent, offline or
/// on its way to another tier.
fn set(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let name = super::parts::container(model, dice)?;
    let id = blob(&name);
    let tiered = model.tier_at(&id);
    let operation = match tiered {
        None if dice.miss.is_none() => {
            BlobOperation::Put(blobs::content(dice), Labels::default(), Guard::default())
        }
        Some(tiered) if dice.chance(TOUCH_PERCENT) => touch(tiered, dice),
        _ => {
            let high = Some(Priority::High);
            let priorities = [None, Some(Priority::Standard), high, high];
            let priority = dice.one(&priorities).flatten();
            BlobOperation::SetTier(tier(tiered.unwrap_or_default(), dice), priority)
        }
    };
    Some(Operation::Blob(id, operation))
}

fn tier(tiered: Tiered, dice: &mut Dice<'_>) -> Tier {
    match tiered.waking {
        Some(waking) if !dice.misses(Miss::Absent) && dice.miss.is_none() => waking.to,
        _ => dice
            .one(&[Tier::Archive, Tier::Cool, Tier::Archive, Tier::Hot])
            .unwrap_or(Tier::Archive),
    }
}

fn touch(tiered: Tiered, dice: &mut Dice<'_>) -> BlobOperation {
    let guard = Guard::default();
    let head = BlobOperation::Head {
        snapshot: None,
        guard,
    };
    let get = BlobOperation::Get {
        snapshot: None,
        range: None,
        guard,
    };
    let is_offline = tiered.waking.is_some() || tiered.tier == Some(Tier::Archive);
    let count = match (dice.miss, is_offline) {
        (Some(_), _) => 2,
        (None, true) => 1,
        (None, false) => 4,
    };
    match (dice.miss, dice.below(count)) {
        (Some(_), 0) => get,
        (Some(_), _) => BlobOperation::SetMetadata(metadata(dice), guard),
        (None, 0) => head,
        (None, 1) => get,
        (None, 2) => BlobOperation::SetMetadata(metadata(dice), guard),
        (None, _) => BlobOperation::Delete {
            snapshot: None,
            snapshots: None,
            guard,
        },
    }
}
