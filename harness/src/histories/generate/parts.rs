//! Common parts of operations: names, leases, conditions.

use smalt_model::Model;
use smalt_model::hints::Hint;
use smalt_model::vocabulary::{
    BlobId, Condition, Guard, Labels, LeaseAction, LeaseId, Metadata, Moment, Operation,
    PROPOSED_LEASES, Tag,
};
use smalt_protocol::ErrorCode;

use super::dice::{Dice, Miss};
use super::space::{CONTAINERS, QUEUES};

/// Percentage of requests that create a blob with index tags.
const TAGS_PERCENT: u8 = 30;
/// Values of metadata and tags.
pub(super) const VALUES: [&str; 3] = ["v0", "v1", "v2"];
/// Percentage of operations with a condition, among those that may have one.
const CONDITION_PERCENT: u8 = 35;

/// Returns an existing container; for a near miss, one that does not exist.
pub(super) fn container(model: &Model, dice: &mut Dice<'_>) -> Option<String> {
    let wanted = !dice.misses(Miss::Absent);
    let all = &CONTAINERS[..dice.space.containers];
    let fitting: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| model.has_container(name) == wanted)
        .filter(|name| {
            dice.alone
                .is_none_or(|alone| model.has_alone(name, "", alone))
        })
        .collect();
    dice.one(&fitting).map(str::to_owned)
}

/// Returns an existing queue; for a near miss, one that does not exist.
pub(super) fn queue(model: &Model, dice: &mut Dice<'_>) -> Option<String> {
    let wanted = !dice.misses(Miss::Absent);
    let all = &QUEUES[..dice.space.queues];
    let fitting: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| model.has_queue(name) == wanted)
        .collect();
    dice.one(&fitting).map(str::to_owned)
}

fn id(container: &str, blob: &str) -> BlobId {
    BlobId {
        container: container.to_owned(),
        blob: blob.to_owned(),
    }
}

/// Returns a blob of one of these types; for a near miss, one of another type, none, or one in a
/// missing container.
pub(super) fn blob(model: &Model, kinds: &[&str], dice: &mut Dice<'_>) -> Option<BlobId> {
    if dice.alone.is_some() {
        return among(model, str::is_empty, dice);
    }
    if dice.misses(Miss::Absent) && dice.chance(50) {
        return spot(model, dice);
    }
    let absent = dice.misses(Miss::Absent);
    let other = dice.misses(Miss::Kind);
    let fits = |kind: &str| match (absent, other) {
        (true, _) => kind.is_empty(),
        (_, true) => !kind.is_empty() && !kinds.contains(&kind),
        _ => kinds.contains(&kind),
    };
    among(model, fits, dice)
}

/// Returns a blob of a suitable type in an existing container.
pub(super) fn among(
    model: &Model,
    fits: impl Fn(&str) -> bool,
    dice: &mut Dice<'_>,
) -> Option<BlobId> {
    let fits = |container: &str, blob: &str| fits(model.kind_at(container, blob));
    named(model, fits, dice)
}

/// Returns the name of a suitable blob in an existing container.
pub(super) fn named(
    model: &Model,
    fits: impl Fn(&str, &str) -> bool,
    dice: &mut Dice<'_>,
) -> Option<BlobId> {
    let blobs = dice.space.names();
    let containers = &CONTAINERS[..dice.space.containers];
    let there = containers.iter().filter(|name| model.has_container(name));
    let all = there.flat_map(|container| blobs.iter().map(move |blob| (*container, *blob)));
    let fitting: Vec<(&str, &str)> = all
        .filter(|(container, blob)| fits(container, blob))
        .filter(|(container, blob)| dice.suits(model.lease_at(container, blob)))
        .filter(|(container, blob)| {
            dice.alone.is_none() || dice.alone == model.alone_at(container, blob)
        })
        .collect();
    // The first one is chosen more often, so that one blob comes to a long history.
    let place = dice.below(fitting.len() + fitting.len() / 2);
    let (container, blob) = fitting.get(place).or_else(|| fitting.first())?;
    Some(id(container, blob))
}

/// Returns a name for a blob that is created or replaced.
pub(super) fn spot(model: &Model, dice: &mut Dice<'_>) -> Option<BlobId> {
    if dice.code.is_some() && !dice.misses(Miss::Absent) {
        return among(model, |_| true, dice);
    }
    let container = container(model, dice)?;
    let blob = dice.one(dice.space.names())?;
    Some(id(&container, blob))
}

fn any_lease(dice: &mut Dice<'_>) -> LeaseId {
    LeaseId(u32::try_from(dice.below(PROPOSED_LEASES as usize + 2)).unwrap_or(0))
}

/// Returns a lease id that a client proposes.
fn own_lease(dice: &mut Dice<'_>) -> LeaseId {
    LeaseId(u32::try_from(dice.below(PROPOSED_LEASES as usize)).unwrap_or(0))
}

/// Returns the valid lease id; for a near miss, none, another one, or a former one.
pub(super) fn lease(hint: &Hint, dice: &mut Dice<'_>) -> Option<LeaseId> {
    if !dice.misses(Miss::Lease) {
        return hint.lease;
    }
    match (dice.code, dice.below(3)) {
        (Some(ErrorCode::LeaseIdMissing), _) => None,
        (Some(ErrorCode::LeaseLost), _) => hint.lapsed,
        (Some(_), _) => Some(any_lease(dice)),
        (None, 0 | 1) if hint.lease.is_some() => None,
        (None, 1) if hint.lapsed.is_some() => hint.lapsed,
        _ => Some(any_lease(dice)),
    }
}

/// Returns a condition in this header that holds or, for a near miss, does not.
fn made(header: u8, hint: &Hint, model: &Model, dice: &mut Dice<'_>) -> Option<Condition> {
    let fails = dice.misses(Miss::Condition);
    let other = Some(Tag(u32::from(dice.byte()) % (model.numbers().tags + 1)));
    let before_s = hint.modified_s.saturating_sub(1);
    let now_s = model.now_s();
    Some(match header {
        1 => Condition::IfMatch(if fails { other } else { hint.tag.or(other) }),
        2 => Condition::IfMatch(None),
        3 => Condition::IfNoneMatch(if fails { hint.tag.or(other) } else { other }),
        4 => Condition::IfNoneMatch(None),
        5 => Condition::IfModifiedSince(if fails { now_s } else { before_s }),
        6 => Condition::IfUnmodifiedSince(if fails { before_s } else { now_s }),
        7 => Condition::IfTags(VALUES[dice.below(3)], dice.below(2) == 0),
        _ => return None,
    })
}

/// Returns a condition on a blob, usually none.
pub(super) fn condition(hint: &Hint, model: &Model, dice: &mut Dice<'_>) -> Option<Condition> {
    match dice.space.lake {
        // A hierarchical account has no index tags.
        true => chosen(&[1, 2, 3, 4, 5, 6], hint, model, dice),
        false => chosen(&[1, 2, 3, 4, 5, 6, 7], hint, model, dice),
    }
}

/// Returns a condition on a container, usually none.
pub(super) fn date(hint: &Hint, model: &Model, dice: &mut Dice<'_>) -> Option<Condition> {
    chosen(&[5, 6], hint, model, dice)
}

fn chosen(headers: &[u8], hint: &Hint, model: &Model, dice: &mut Dice<'_>) -> Option<Condition> {
    if let Some(header) = dice.header {
        return made(header.0, hint, model, dice).filter(|_| headers.contains(&header.0));
    }
    if dice.misses(Miss::Condition) || dice.chance(CONDITION_PERCENT) {
        let header = dice.one(headers)?;
        return made(header, hint, model, dice);
    }
    None
}

/// Returns the condition on a copy source, which does not hold if `fails`.
pub(super) fn source_condition(
    hint: &Hint,
    model: &Model,
    fails: bool,
    dice: &mut Dice<'_>,
) -> Option<Condition> {
    let header = match dice.header.map(|header| header.0) {
        Some(8) => 1,
        Some(9) => 2,
        Some(10) => 3,
        Some(11) => 5,
        Some(12) => 6,
        _ if fails || dice.chance(CONDITION_PERCENT) => dice.one(&[1, 2, 3, 5, 6])?,
        _ => return None,
    };
    let miss = dice.miss;
    dice.miss = fails.then_some(Miss::Condition);
    let condition = made(header, hint, model, dice);
    dice.miss = miss;
    condition
}

/// Returns lease id and condition for a write to a blob.
pub(super) fn guard(hint: &Hint, model: &Model, dice: &mut Dice<'_>) -> Guard {
    Guard {
        lease: lease(hint, dice),
        condition: condition(hint, model, dice),
    }
}

/// Returns a snapshot of a blob; for a near miss, one that does not exist.
pub(super) fn moment(hint: &Hint, dice: &mut Dice<'_>) -> Option<Moment> {
    if dice.misses(Miss::Absent) {
        return dice.chance(50).then(|| Moment(u32::from(dice.byte())));
    }
    let chosen = dice.chance(25);
    dice.one(&hint.snapshots).filter(|_| chosen)
}

/// Returns lease id and condition for a read; a read of a snapshot has no lease id.
pub(super) fn reader(
    hint: &Hint,
    snapshot: Option<Moment>,
    model: &Model,
    dice: &mut Dice<'_>,
) -> Guard {
    let guard = guard(hint, model, dice);
    Guard {
        lease: guard.lease.filter(|_| snapshot.is_none()),
        ..guard
    }
}

/// Returns the lease id for a lease operation.
fn held(hint: &Hint, dice: &mut Dice<'_>) -> LeaseId {
    let known = hint.lease.or(hint.lapsed);
    let known = known.filter(|_| !dice.misses(Miss::Lease));
    known.unwrap_or_else(|| any_lease(dice))
}

pub(super) fn acquire(hint: &Hint, dice: &mut Dice<'_>) -> LeaseAction {
    let again = hint.lease.filter(|_| !dice.misses(Miss::Lease));
    LeaseAction::Acquire {
        proposed: again.or_else(|| dice.chance(60).then(|| own_lease(dice))),
        duration_s: dice.one(&[Some(15), Some(60), None]).flatten(),
    }
}

pub(super) fn renew(hint: &Hint, dice: &mut Dice<'_>) -> LeaseAction {
    LeaseAction::Renew(held(hint, dice))
}

pub(super) fn change(hint: &Hint, dice: &mut Dice<'_>) -> LeaseAction {
    LeaseAction::Change(held(hint, dice), own_lease(dice))
}

pub(super) fn release(hint: &Hint, dice: &mut Dice<'_>) -> LeaseAction {
    LeaseAction::Release(held(hint, dice))
}

pub(super) fn end(_: &Hint, dice: &mut Dice<'_>) -> LeaseAction {
    LeaseAction::Break {
        period_s: dice
            .one(&[None, Some(10), Some(0), Some(60), Some(10)])
            .flatten(),
    }
}

/// Generates one kind of operation; `None` when the current state does not allow it.
pub(super) type Make = fn(&Model, &mut Dice<'_>) -> Option<Operation>;

/// A kind of operation: its name in the matrix, its weight, its generator.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) weight: u16,
    pub(super) wide: bool,
    pub(super) make: Make,
}

pub(super) const fn kind(name: &'static str, weight: u16, make: Make) -> Kind {
    Kind {
        name,
        weight,
        wide: false,
        make,
    }
}

pub(super) const fn wide(name: &'static str, weight: u16, make: Make) -> Kind {
    Kind {
        name,
        weight,
        wide: true,
        make,
    }
}

pub(super) fn metadata(dice: &mut Dice<'_>) -> Metadata {
    let names = ["mark", "owner"];
    let count = dice.below(3);
    let pair = |name: &&str| ((*name).to_owned(), VALUES[dice.below(3)].to_owned());
    names.iter().take(count).map(pair).collect()
}

/// Returns metadata, and sometimes tags.
pub(super) fn labels(dice: &mut Dice<'_>) -> Labels {
    let metadata = metadata(dice);
    // A hierarchical account has no index tags.
    let has_tags = dice.space.wide && !dice.space.lake && dice.chance(TAGS_PERCENT);
    let tags = has_tags.then(|| self::metadata(dice));
    Labels {
        metadata,
        tags: tags.unwrap_or_default(),
    }
}

/// Returns a page size: one that fits everything, or a small one.
pub(super) fn page(dice: &mut Dice<'_>) -> u32 {
    dice.one(&[5_000, 1, 2, 3]).unwrap_or(5_000)
}
