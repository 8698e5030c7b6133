//! Operations on blobs.

use smalt_model::Model;
use smalt_model::hints::Hint;
use smalt_model::vocabulary::{
    BlobId, BlobOperation, BlockSource, Content, ContentHeaders, INLINE_BYTES, LeaseAction,
    NewBlob, Operation, PAGE_BYTES, Position, Property, Sequence, Snapshots,
};

use smalt_protocol::ErrorCode;

use super::dice::{Dice, Miss};
use super::parts::{self, Kind, kind, labels, metadata, wide};

pub(super) const KINDS: &[Kind] = &[
    kind("blob put", 46, put),
    wide("blob put append", 16, |m, d| {
        create(m, d, |_| NewBlob::Append)
    }),
    wide("blob put pages", 16, |m, d| create(m, d, pages)),
    kind("blob get", 36, get),
    kind("blob head", 30, head),
    kind("blob set metadata", 22, set_metadata),
    wide("blob set properties", 16, |m, d| set(m, d, ANY, headers)),
    wide("blob resize", 12, |m, d| set(m, d, &[PAGE], resize)),
    wide("blob set number", 14, |m, d| set(m, d, &[PAGE], number)),
    kind("blob delete", 34, delete),
    wide("blob undelete", 14, undelete),
    kind("blob snapshot", 30, snapshot),
    kind("blob lease acquire", 44, |m, d| lease(m, d, parts::acquire)),
    kind("blob lease renew", 14, |m, d| lease(m, d, parts::renew)),
    kind("blob lease change", 14, |m, d| lease(m, d, parts::change)),
    kind("blob lease release", 16, |m, d| lease(m, d, parts::release)),
    kind("blob lease break", 18, |m, d| lease(m, d, parts::end)),
    kind("blob put block", 34, put_block),
    kind("blob put block list", 34, put_block_list),
    kind("blob get block list", 14, get_block_list),
    kind("blob copy", 26, copy),
    wide("blob copy from url", 16, |m, d| from_url(m, d, true)),
    wide("blob put from url", 16, |m, d| from_url(m, d, false)),
    kind("blob set tags", 24, set_tags),
    kind("blob get tags", 10, get_tags),
    wide("blob append", 26, append),
    wide("blob seal", 12, seal),
    wide("blob put pages data", 24, |m, d| write_pages(m, d, true)),
    wide("blob clear pages", 14, |m, d| write_pages(m, d, false)),
    wide("blob get page ranges", 16, get_pages),
];

const BLOCK: &str = "BlockBlob";
const APPEND: &str = "AppendBlob";
const PAGE: &str = "PageBlob";
pub(super) const ANY: &[&str] = &[BLOCK, APPEND, PAGE];
/// Percentage of requests about blocks that go to a blob with uncommitted blocks, if there is one:
/// a block list needs blocks to commit.
const WAITING_PERCENT: u8 = 60;
const BLOCK_IDS: [&[u8]; 4] = [b"aa", b"bb", b"cc", b"longer"];
/// The largest sequence number, which cannot be incremented.
const NUMBER_MAX: u64 = i64::MAX as u64;

fn on(
    model: &Model,
    kinds: &[&str],
    dice: &mut Dice<'_>,
    make: impl FnOnce(&BlobId, &Hint, &mut Dice<'_>) -> Option<BlobOperation>,
) -> Option<Operation> {
    let id = parts::blob(model, kinds, dice)?;
    let hint = model.hint_of_blob(&id);
    let operation = make(&id, &hint, dice)?;
    Some(Operation::Blob(id, operation))
}

/// Returns an operation on a name that need not be in use.
fn at(
    model: &Model,
    dice: &mut Dice<'_>,
    make: impl FnOnce(&Hint, &mut Dice<'_>) -> Option<BlobOperation>,
) -> Option<Operation> {
    let id = parts::spot(model, dice)?;
    let hint = model.hint_of_blob(&id);
    let operation = make(&hint, dice)?;
    Some(Operation::Blob(id, operation))
}

pub(super) fn content(dice: &mut Dice<'_>) -> Content {
    let lengths: &[u16] = match dice.is_long() {
        true => &[INLINE_BYTES + 1, INLINE_BYTES],
        false => &[3, 1, 0, 600],
    };
    Content {
        seed: dice.byte(),
        length: dice.one(lengths).unwrap_or(3),
    }
}

pub(super) fn put(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    at(model, dice, |hint, dice| {
        let guard = parts::guard(hint, model, dice);
        Some(BlobOperation::Put(content(dice), labels(dice), guard))
    })
}

fn create(
    model: &Model,
    dice: &mut Dice<'_>,
    new: fn(&mut Dice<'_>) -> NewBlob,
) -> Option<Operation> {
    at(model, dice, |hint, dice| {
        let guard = parts::guard(hint, model, dice);
        Some(BlobOperation::Create(new(dice), labels(dice), guard))
    })
}

fn pages(dice: &mut Dice<'_>) -> NewBlob {
    NewBlob::Pages {
        pages: dice.one(&[3, 1, 0, 4]).unwrap_or(3),
        number: dice.one(&[0, 1, 7]).unwrap_or(0),
    }
}

pub(super) fn get(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        let snapshot = parts::moment(hint, dice);
        let guard = parts::reader(hint, snapshot, model, dice);
        let range = match dice.misses(Miss::Detail) {
            true => Some((hint.length + u64::from(dice.byte()), None)),
            false => dice.chance(40).then(|| range(dice)),
        };
        Some(BlobOperation::Get {
            snapshot,
            range,
            guard,
        })
    })
}

fn range(dice: &mut Dice<'_>) -> (u64, Option<u64>) {
    let first = dice.one(&[0, 1, 2, 3, 500, 700]).unwrap_or(0);
    let length = dice.one(&[None, Some(0), Some(1), Some(1_000)]).flatten();
    (first, length.map(|length| first + length))
}

pub(super) fn head(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        let snapshot = parts::moment(hint, dice);
        let guard = parts::reader(hint, snapshot, model, dice);
        Some(BlobOperation::Head { snapshot, guard })
    })
}

fn get_pages(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, &[PAGE], dice, |_, hint, dice| {
        let snapshot = parts::moment(hint, dice);
        let guard = parts::reader(hint, snapshot, model, dice);
        Some(BlobOperation::GetPages { snapshot, guard })
    })
}

pub(super) fn set_metadata(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        let guard = parts::guard(hint, model, dice);
        Some(BlobOperation::SetMetadata(metadata(dice), guard))
    })
}

fn set(
    model: &Model,
    dice: &mut Dice<'_>,
    kinds: &[&str],
    property: fn(&Hint, &mut Dice<'_>) -> Property,
) -> Option<Operation> {
    let id = if dice.misses(Miss::Detail) {
        // Blobs whose sequence number cannot grow are rare, so prefer them.
        let largest = |id: &BlobId| model.hint_of_blob(id).number == NUMBER_MAX;
        parts::blob(model, kinds, dice).filter(|id| largest(id) || dice.chance(50))
    } else {
        parts::blob(model, kinds, dice)
    }?;
    let hint = model.hint_of_blob(&id);
    let guard = parts::guard(&hint, model, dice);
    let operation = BlobOperation::SetProperties(property(&hint, dice), guard);
    Some(Operation::Blob(id, operation))
}

fn headers(_: &Hint, dice: &mut Dice<'_>) -> Property {
    let types = ["text/plain", "application/json"];
    Property::Content(ContentHeaders {
        content_type: dice.one(&types).unwrap_or(types[0]),
        cache_control: dice.one(&[None, Some("no-cache")]).flatten(),
        disposition: dice.one(&[None, Some("attachment")]).flatten(),
    })
}

fn resize(_: &Hint, dice: &mut Dice<'_>) -> Property {
    Property::Pages(dice.one(&[2, 0, 1, 5]).unwrap_or(2))
}

fn number(_: &Hint, dice: &mut Dice<'_>) -> Property {
    if dice.misses(Miss::Detail) {
        return Property::NumberIncrement;
    }
    match dice.below(6) {
        0 => Property::NumberIncrement,
        1 | 2 => Property::NumberMax(u64::from(dice.byte() % 9)),
        3 | 4 => Property::NumberUpdate(u64::from(dice.byte() % 9)),
        _ => Property::NumberUpdate(NUMBER_MAX),
    }
}

pub(super) fn delete(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        let wrong = dice.misses(Miss::Detail);
        let snapshot = match wrong && dice.chance(50) {
            true => dice.one(&hint.snapshots),
            false => parts::moment(hint, dice),
        };
        let wishes = [Some(Snapshots::Include), Some(Snapshots::Only)];
        // A snapshot has no snapshots; a blob with snapshots needs `x-ms-delete-snapshots`.
        let needs = snapshot.is_some() == wrong;
        let snapshots = match needs && !(wrong && snapshot.is_none()) {
            true if !hint.snapshots.is_empty() || wrong || dice.chance(30) => {
                dice.one(&wishes).flatten()
            }
            _ => None,
        };
        Some(BlobOperation::Delete {
            snapshot,
            snapshots,
            guard: parts::reader(hint, snapshot, model, dice),
        })
    })
}

fn undelete(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    // Undelete is of little interest when nothing was deleted.
    let id = match dice.miss.is_some() || dice.chance(40) {
        true => parts::spot(model, dice),
        false => parts::named(model, |c, b| model.is_dormant(c, b), dice),
    }?;
    Some(Operation::Blob(id, BlobOperation::Undelete))
}

fn snapshot(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        let guard = parts::guard(hint, model, dice);
        Some(BlobOperation::Snapshot(metadata(dice), guard))
    })
}

pub(super) fn lease(
    model: &Model,
    dice: &mut Dice<'_>,
    action: fn(&Hint, &mut Dice<'_>) -> LeaseAction,
) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        let action = action(hint, dice);
        let condition = parts::condition(hint, model, dice);
        Some(BlobOperation::Lease(action, condition))
    })
}

/// Returns a name of a block blob or an unused one; for a near miss, a blob of another type.
fn block_spot(model: &Model, dice: &mut Dice<'_>) -> Option<BlobId> {
    if dice.alone.is_some() {
        return parts::blob(model, ANY, dice);
    }
    if dice.misses(Miss::Absent) {
        return parts::spot(model, dice);
    }
    if dice.miss.is_none() && dice.chance(WAITING_PERCENT) {
        let waiting = parts::named(model, |c, b| model.has_open_blocks(c, b), dice);
        if waiting.is_some() {
            return waiting;
        }
    }
    let other = dice.misses(Miss::Kind);
    parts::among(model, |kind| [APPEND, PAGE].contains(&kind) == other, dice)
}

fn put_block(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = block_spot(model, dice)?;
    let hint = model.hint_of_blob(&id);
    let wrong = dice.misses(Miss::Detail);
    let known = hint.uncommitted.first().map(Vec::len);
    let fits = |block: &&[u8]| known.is_none_or(|length| (length == block.len()) != wrong);
    let fitting: Vec<&[u8]> = BLOCK_IDS.into_iter().filter(|id| fits(id)).collect();
    let block = dice.one(&fitting)?.to_vec();
    let mut content = content(dice);
    if wrong && dice.chance(30) {
        content.length = 0;
    } else if content.length == 0 {
        content.length = 2;
    }
    let operation = BlobOperation::PutBlock(block, content, parts::lease(&hint, dice));
    Some(Operation::Blob(id, operation))
}

fn put_block_list(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = block_spot(model, dice)?;
    let hint = model.hint_of_blob(&id);
    let guard = parts::guard(&hint, model, dice);
    let list = block_list(&hint, dice);
    let operation = BlobOperation::PutBlockList(list, labels(dice), guard);
    Some(Operation::Blob(id, operation))
}

fn block_list(hint: &Hint, dice: &mut Dice<'_>) -> Vec<(BlockSource, Vec<u8>)> {
    let mut list = Vec::new();
    for _ in 0..dice.below(4) {
        let entry = match dice.below(3) {
            0 => dice
                .one(&hint.uncommitted)
                .map(|id| (BlockSource::Latest, id)),
            1 => dice
                .one(&hint.committed)
                .map(|id| (BlockSource::Committed, id)),
            _ => {
                let known = dice.one(&hint.uncommitted);
                known.map(|id| (BlockSource::Uncommitted, id))
            }
        };
        list.extend(entry);
    }
    if dice.misses(Miss::Detail) {
        let lapsed = dice.one(&hint.lapsed_blocks);
        let any = lapsed.unwrap_or_else(|| BLOCK_IDS[dice.below(BLOCK_IDS.len())].to_vec());
        let source = dice.one(&[BlockSource::Latest, BlockSource::Committed]);
        list.extend(source.map(|source| (source, any)));
    }
    list
}

fn get_block_list(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = match dice.miss {
        Some(Miss::Kind | Miss::Absent) => parts::blob(model, &[BLOCK], dice)?,
        _ => block_spot(model, dice)?,
    };
    let lease = parts::lease(&model.hint_of_blob(&id), dice);
    Some(Operation::Blob(id, BlobOperation::GetBlockList { lease }))
}

/// Returns a copy source; for a near miss, it does not exist or its condition does not hold.
fn source(model: &Model, dice: &mut Dice<'_>) -> Option<(BlobId, Hint, bool)> {
    let (code, header) = (dice.code.take(), dice.header.map(|header| header.0));
    let late = code == Some(ErrorCode::InfiniteLeaseDurationRequired);
    let wrong = dice.misses(Miss::Detail) && !late;
    // A condition on a blob that does not exist is not reported.
    let told = code.is_some() && code != Some(ErrorCode::CannotVerifyCopySource);
    let absent = wrong && !told && (header == Some(0) || dice.chance(35));
    let id = parts::among(model, |kind| kind.is_empty() == absent, dice)?;
    dice.code = code;
    let hint = model.hint_of_blob(&id);
    Some((id, hint, wrong && !absent))
}

fn copy(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = match dice.miss {
        Some(Miss::Kind) => parts::among(model, |kind| !kind.is_empty(), dice),
        _ => parts::spot(model, dice),
    }?;
    let hint = model.hint_of_blob(&id);
    let (source, found, fails) = source(model, dice)?;
    // Copying over a lease of fixed duration fails; that error needs the right lease id.
    let is_late = dice.code == Some(ErrorCode::InfiniteLeaseDurationRequired);
    if dice.miss.is_none() && hint.ends || is_late && !hint.ends {
        return None;
    }
    let operation = BlobOperation::Copy {
        snapshot: dice.one(&found.snapshots).filter(|_| dice.chance(30)),
        source_condition: parts::source_condition(&found, model, fails, dice),
        labels: labels(dice),
        source,
        guard: parts::guard(&hint, model, dice),
    };
    Some(Operation::Blob(id, operation))
}

fn from_url(model: &Model, dice: &mut Dice<'_>, sync: bool) -> Option<Operation> {
    let id = parts::spot(model, dice)?;
    let hint = model.hint_of_blob(&id);
    let (source, found, fails) = source(model, dice)?;
    let operation = BlobOperation::FromUrl {
        sync,
        source_condition: parts::source_condition(&found, model, fails, dice),
        labels: labels(dice),
        source,
        guard: parts::guard(&hint, model, dice),
    };
    Some(Operation::Blob(id, operation))
}

fn set_tags(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        let lease = parts::lease(hint, dice);
        Some(BlobOperation::SetTags(metadata(dice), lease))
    })
}

fn get_tags(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, ANY, dice, |_, hint, dice| {
        Some(BlobOperation::GetTags(parts::lease(hint, dice)))
    })
}

/// Returns `appendpos`, `maxsize` or neither; for a near miss, with a wrong value.
fn position(hint: &Hint, most: bool, dice: &mut Dice<'_>) -> Option<Position> {
    let wrong = dice.misses(Miss::Detail);
    let which = match dice.header.map(|header| header.0) {
        Some(13) => 0,
        Some(14) => 1,
        Some(0) => return None,
        _ if wrong || dice.chance(40) => dice.below(2),
        _ => return None,
    };
    let length = hint.length;
    Some(match (which, wrong) {
        (1, false) if most => Position::Most(length + 600),
        (1, true) if most => Position::Most(length / 2),
        (_, false) => Position::At(length),
        (_, true) => Position::At(length + 1),
    })
}

fn append(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, &[APPEND], dice, |_, hint, dice| {
        if hint.sealed && dice.miss.is_none() {
            return None;
        }
        let guard = parts::guard(hint, model, dice);
        let mut content = content(dice);
        content.length = content.length.max(1);
        let position = position(hint, true, dice);
        Some(BlobOperation::Append(content, position, guard))
    })
}

fn seal(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, &[APPEND], dice, |_, hint, dice| {
        let guard = parts::guard(hint, model, dice);
        Some(BlobOperation::Seal(position(hint, false, dice), guard))
    })
}

fn sequence(hint: &Hint, dice: &mut Dice<'_>) -> Option<Sequence> {
    let wrong = dice.misses(Miss::Detail) && dice.chance(50);
    let which = match dice.header.map(|header| header.0) {
        Some(header @ 15..=17) => usize::from(header - 15),
        Some(0) => return None,
        _ if wrong || dice.chance(40) => dice.below(3),
        _ => return None,
    };
    let number = hint.number;
    Some(match (which, wrong) {
        (0, false) => Sequence::Most(number),
        (0, true) => Sequence::Most(number.saturating_sub(1)),
        (1, false) => Sequence::Below((number + 1).min(NUMBER_MAX)),
        (1, true) => Sequence::Below(number),
        (_, false) => Sequence::Is(number),
        (_, true) => Sequence::Is(number / 2 + 1),
    })
}

fn write_pages(model: &Model, dice: &mut Dice<'_>, fills: bool) -> Option<Operation> {
    on(model, &[PAGE], dice, |_, hint, dice| {
        let pages = hint.length / PAGE_BYTES;
        let wrong = dice.misses(Miss::Detail);
        if pages == 0 && dice.miss.is_none() {
            return None;
        }
        let guard = parts::guard(hint, model, dice);
        let sequence = sequence(hint, dice);
        let first = dice.below(usize::try_from(pages).unwrap_or(1)) as u64;
        let past = wrong && dice.chance(60);
        let count = 1 + dice.below(usize::try_from(pages - first.min(pages)).unwrap_or(1)) as u64;
        Some(BlobOperation::WritePages {
            first: if past { pages } else { first },
            count: count.min(4),
            fill: fills.then(|| dice.byte()),
            sequence,
            guard,
        })
    })
}
