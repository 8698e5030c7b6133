//! Operations on containers and on the account.

use smalt_model::Model;
use smalt_model::hints::Hint;
use smalt_model::vocabulary::{
    AccountOperation, ContainerOperation, Guard, LeaseAction, Metadata, Names, Operation, TAG,
};

use super::dice::{Dice, Miss};
use super::parts::{self, Kind, kind, metadata, page, wide};
use super::space::{CONTAINERS, Space};

pub(super) const KINDS: &[Kind] = &[
    wide("account list containers", 6, list_containers),
    wide("account list queues", 4, list_queues),
    wide("account set retention", 16, retain),
    wide("account find blobs", 16, find),
    kind("container create", 14, create),
    kind("container delete", 10, delete),
    kind("container get", 14, get),
    kind("container set metadata", 14, set_metadata),
    kind("container lease acquire", 14, |m, d| {
        lease(m, d, parts::acquire)
    }),
    kind("container lease renew", 8, |m, d| lease(m, d, parts::renew)),
    kind("container lease change", 8, |m, d| {
        lease(m, d, parts::change)
    }),
    kind("container lease release", 8, |m, d| {
        lease(m, d, parts::release)
    }),
    kind("container lease break", 8, |m, d| lease(m, d, parts::end)),
    kind("container list", 30, list),
];

pub(super) fn is_empty(model: &Model, space: Space) -> bool {
    let all = &CONTAINERS[..space.containers];
    !all.iter().any(|name| model.has_container(name))
}

/// Returns the first operation of a history, which is always possible.
pub(super) fn simplest(model: &Model) -> Operation {
    let name = CONTAINERS[0].to_owned();
    if model.has_container(&name) {
        return Operation::Container(name, ContainerOperation::Get { lease: None });
    }
    Operation::Container(name, ContainerOperation::Create(Metadata::new()))
}

fn list_containers(_: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let prefix = ["", "con", "con1", "x"];
    let names = names(&prefix, dice);
    Some(Operation::Account(AccountOperation::Containers(names)))
}

fn list_queues(_: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let prefix = ["", "que", "que1", "x"];
    let names = names(&prefix, dice);
    Some(Operation::Account(AccountOperation::Queues(names)))
}

fn names(prefix: &[&str], dice: &mut Dice<'_>) -> Names {
    Names {
        prefix: dice.one(prefix).unwrap_or("").to_owned(),
        page: page(dice),
        metadata: dice.chance(50),
    }
}

fn retain(_: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let days = dice.one(&[None, Some(1), Some(7), Some(8)]).flatten();
    Some(Operation::Account(AccountOperation::Retain(days)))
}

/// Searches the account or a container; for a near miss, a container that does not exist.
fn find(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let within = dice.miss.is_some() || dice.chance(30);
    let container = match within {
        true => Some(parts::container(model, dice)?),
        false => None,
    };
    Some(Operation::Account(AccountOperation::Find {
        container,
        sign: dice.one(&["=", "=", "<=", "<", ">=", ">"])?,
        value: match dice.chance(60) {
            true => value_there(model, dice)?,
            false => dice.one(&parts::VALUES)?,
        },
        page: page(dice),
    }))
}

/// Returns the value that a blob has.
fn value_there(model: &Model, dice: &mut Dice<'_>) -> Option<&'static str> {
    let id = parts::among(model, |kind| !kind.is_empty(), dice)?;
    let tags = model.hint_of_blob(&id).tags;
    let has = |value: &&str| tags.get(TAG).is_some_and(|tag| tag == value);
    parts::VALUES.into_iter().find(has)
}

pub(super) fn create(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let wanted = dice.miss.is_some();
    let all = &CONTAINERS[..dice.space.containers];
    let fits = |name: &&&str| model.has_container(name) == wanted;
    let fitting: Vec<&str> = all.iter().filter(fits).copied().collect();
    let name = dice.one(&fitting)?.to_owned();
    Some(Operation::Container(
        name,
        ContainerOperation::Create(metadata(dice)),
    ))
}

fn on(
    model: &Model,
    dice: &mut Dice<'_>,
    make: impl FnOnce(&Hint, &mut Dice<'_>) -> ContainerOperation,
) -> Option<Operation> {
    let name = parts::container(model, dice)?;
    let hint = model.hint_of_container(&name);
    Some(Operation::Container(name, make(&hint, dice)))
}

fn delete(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |hint, dice| {
        ContainerOperation::Delete(Guard {
            lease: parts::lease(hint, dice),
            condition: parts::date(hint, model, dice),
        })
    })
}

fn get(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |hint, dice| ContainerOperation::Get {
        lease: parts::lease(hint, dice),
    })
}

fn set_metadata(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |hint, dice| {
        let guard = Guard {
            lease: parts::lease(hint, dice),
            condition: None,
        };
        ContainerOperation::SetMetadata(metadata(dice), guard)
    })
}

fn lease(
    model: &Model,
    dice: &mut Dice<'_>,
    action: fn(&Hint, &mut Dice<'_>) -> LeaseAction,
) -> Option<Operation> {
    on(model, dice, |hint, dice| {
        ContainerOperation::Lease(action(hint, dice), parts::date(hint, model, dice))
    })
}

fn list(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |_, dice| {
        let refused = dice.misses(Miss::Detail);
        let delimited = refused || dice.chance(30);
        let wide = dice.space.wide;
        ContainerOperation::List {
            prefix: dice.one(&["", "b0", "b0/"]).unwrap_or("").to_owned(),
            delimited,
            page: page(dice),
            snapshots: refused || !delimited && dice.chance(40),
            uncommitted: dice.chance(50) || dice.alone.is_some(),
            deleted: wide && !delimited && dice.chance(40),
        }
    })
}
