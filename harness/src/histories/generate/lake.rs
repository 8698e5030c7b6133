//! Operations on a hierarchical account, through both interfaces.

use smalt_model::Model;
use smalt_model::hints::{Hint, Standing};
use smalt_model::vocabulary::{
    BlobId, ContainerOperation, Guard, LeaseAction, Operation, PathOperation, Rename,
};

use super::dice::{Dice, Miss};
use super::parts::{self, Kind, kind, metadata, page};
use super::{blobs, containers};

pub(super) const KINDS: &[Kind] = &[
    kind("lake container create", 6, containers::create),
    kind("lake container delete", 2, delete_container),
    kind("lake container list", 12, list_blobs),
    kind("lake blob put", 24, blobs::put),
    kind("lake blob get", 20, blobs::get),
    kind("lake blob head", 14, blobs::head),
    kind("lake blob set metadata", 14, blobs::set_metadata),
    kind("lake blob delete", 14, blobs::delete),
    kind("lake blob acquire", 14, |m, d| {
        blobs::lease(m, d, parts::acquire)
    }),
    kind("lake blob lease", 12, |m, d| blobs::lease(m, d, any_action)),
    kind("lake path create file", 22, |m, d| create(m, d, false)),
    kind("lake path create directory", 26, |m, d| create(m, d, true)),
    kind("lake path append", 22, |m, d| append(m, d, false)),
    kind("lake path append and flush", 18, |m, d| append(m, d, true)),
    kind("lake path flush", 22, flush),
    kind("lake path rename", 60, rename),
    kind("lake path delete", 20, delete),
    kind("lake path set expiry", 20, expire),
    kind("lake path status", 14, status),
    kind("lake path acquire", 12, |m, d| lease(m, d, parts::acquire)),
    kind("lake path lease", 12, |m, d| lease(m, d, any_action)),
    kind("lake path list", 12, list_paths),
];

fn delete_container(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let name = parts::container(model, dice)?;
    let delete = ContainerOperation::Delete(Guard::default());
    Some(Operation::Container(name, delete))
}

/// Returns a lease action on a lease that exists.
fn any_action(hint: &Hint, dice: &mut Dice<'_>) -> LeaseAction {
    let all = [parts::release, parts::renew, parts::change, parts::end];
    all[dice.below(all.len())](hint, dice)
}

fn on(
    model: &Model,
    id: Option<BlobId>,
    dice: &mut Dice<'_>,
    make: impl FnOnce(&BlobId, &Hint, &mut Dice<'_>) -> PathOperation,
) -> Option<Operation> {
    let id = id?;
    let hint = model.hint_of_blob(&id);
    let operation = make(&id, &hint, dice);
    Some(Operation::Path(id, operation))
}

/// Returns a path; for a near miss, one that may not exist.
fn path(model: &Model, dice: &mut Dice<'_>) -> Option<BlobId> {
    parts::blob(model, blobs::ANY, dice)
}

/// Returns a file; for a near miss, anything else.
fn file(model: &Model, dice: &mut Dice<'_>) -> Option<BlobId> {
    if dice.misses(Miss::Absent) {
        return path(model, dice);
    }
    let is_file = !dice.misses(Miss::Detail) || dice.chance(50);
    parts::named(model, |c, b| model.is_file_at(c, b) == Some(is_file), dice)
}

fn create(model: &Model, dice: &mut Dice<'_>, directory: bool) -> Option<Operation> {
    let id = parts::spot(model, dice);
    on(model, id, dice, |_, hint, dice| PathOperation::Create {
        directory,
        metadata: metadata(dice),
        guard: parts::guard(hint, model, dice),
    })
}

fn append(model: &Model, dice: &mut Dice<'_>, flush: bool) -> Option<Operation> {
    let id = file(model, dice);
    on(model, id, dice, |id, hint, dice| {
        let mut content = blobs::content(dice);
        content.length = content.length.max(1);
        let other = dice.misses(Miss::Detail) || dice.chance(15);
        PathOperation::Append {
            content,
            position: match other {
                true => dice.one(&[0, 3, model.end_of(id) + 1]).unwrap_or(0),
                false => model.end_of(id),
            },
            flush,
            lease: parts::lease(hint, dice),
        }
    })
}

fn flush(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = file(model, dice);
    on(model, id, dice, |id, hint, dice| PathOperation::Flush {
        position: match dice.misses(Miss::Detail) {
            true => model.end_of(id) + 1,
            false if dice.chance(25) => hint.length,
            false => model.end_of(id),
        },
        retain: dice.chance(30),
        guard: parts::guard(hint, model, dice),
    })
}

fn rename(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let miss = dice.miss;
    let leased = |c: &str, b: &str| model.lease_at(c, b) == Standing::Held;
    let source = match dice.below(4) {
        0 => parts::named(model, |c, b| model.has_open_blocks(c, b), dice),
        1 => parts::named(model, leased, dice),
        _ => None,
    };
    let source = source.or_else(|| path(model, dice))?;
    let from = model.hint_of_blob(&source);
    let fails = dice.misses(Miss::Condition) && dice.chance(50);
    let source_condition = parts::source_condition(&from, model, fails, dice);
    let source_lease = parts::lease(&from, dice);
    // One mistake is enough.
    dice.miss = miss.filter(|miss| *miss == Miss::Condition && !fails);
    let there = match dice.below(4) {
        0 => parts::named(model, |c, b| model.is_file_at(c, b) == Some(false), dice),
        1 => parts::named(model, |c, b| model.is_file_at(c, b).is_some(), dice),
        _ => None,
    };
    let anywhere = dice.one(dice.space.names())?;
    let id = there.or_else(|| {
        Some(BlobId {
            container: source.container.clone(),
            blob: anywhere.to_owned(),
        })
    });
    on(model, id, dice, |_, hint, dice| {
        PathOperation::Rename(Rename {
            source,
            source_condition,
            source_lease,
            guard: parts::guard(hint, model, dice),
        })
    })
}

fn delete(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = path(model, dice);
    on(model, id, dice, |_, hint, dice| PathOperation::Delete {
        recursive: !dice.misses(Miss::Detail) && dice.chance(60),
        guard: parts::guard(hint, model, dice),
    })
}

fn expire(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = file(model, dice);
    on(model, id, dice, |_, hint, dice| {
        let after_s = dice.one(&[Some(15), Some(1), Some(60), None]).flatten();
        PathOperation::Expire(after_s, parts::guard(hint, model, dice))
    })
}

fn status(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = path(model, dice);
    on(model, id, dice, |_, hint, dice| {
        PathOperation::Status(parts::guard(hint, model, dice))
    })
}

fn lease(
    model: &Model,
    dice: &mut Dice<'_>,
    action: fn(&Hint, &mut Dice<'_>) -> LeaseAction,
) -> Option<Operation> {
    let id = path(model, dice);
    on(model, id, dice, |_, hint, dice| {
        let action = action(hint, dice);
        PathOperation::Lease(action, parts::guard(hint, model, dice).condition)
    })
}

fn list_paths(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let id = match dice.miss.is_some() || dice.chance(60) {
        true => path(model, dice)?,
        false => BlobId {
            container: parts::container(model, dice)?,
            blob: String::new(),
        },
    };
    on(model, Some(id), dice, |_, _, dice| PathOperation::List {
        recursive: dice.chance(60),
        page: page(dice),
    })
}

fn list_blobs(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let list = ContainerOperation::List {
        prefix: dice.one(&["", "b0", "b0/"])?.to_owned(),
        delimited: false,
        page: page(dice),
        snapshots: false,
        uncommitted: false,
        deleted: false,
    };
    Some(Operation::Container(parts::container(model, dice)?, list))
}
