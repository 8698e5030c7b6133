//! Operations that have a row of their own where blocks exist without their blob, within their week
//! or after it.

use super::describe::describe;
use super::{Header, Row, lake};
use crate::Model;
use crate::hints::Alone;
use crate::vocabulary::{BlobOperation, ContainerOperation, Guard, Operation};

/// An operation where such blocks exist.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The name of the row.
    pub name: &'static str,
    /// The name of the operation in other situations.
    pub operation: &'static str,
    /// The state of the blocks.
    pub alone: Alone,
}

const fn situation(name: &'static str, operation: &'static str, alone: Alone) -> Situation {
    Situation {
        name,
        operation,
        alone,
    }
}

/// Every situation.
pub const SITUATIONS: [Situation; 7] = [
    situation("blob delete (blocks alone)", "blob delete", Alone::Kept),
    situation("blob delete (lapsed blocks)", "blob delete", Alone::Lapsed),
    situation(
        "blob get block list (lapsed blocks)",
        "blob get block list",
        Alone::Lapsed,
    ),
    situation(
        "blob put block (lapsed blocks)",
        "blob put block",
        Alone::Lapsed,
    ),
    situation(
        "blob put block list (lapsed blocks)",
        "blob put block list",
        Alone::Lapsed,
    ),
    situation(
        "container list (blocks alone)",
        "container list",
        Alone::Kept,
    ),
    situation(
        "container list (lapsed blocks)",
        "container list",
        Alone::Lapsed,
    ),
];

impl Row {
    /// Returns the situation of the row, if it has one.
    pub fn situation(&self) -> Option<&'static Situation> {
        Situation::named(self.operation)
    }
}

impl Situation {
    /// Returns the situation with this name.
    pub fn named(name: &str) -> Option<&'static Situation> {
        SITUATIONS.iter().find(|situation| situation.name == name)
    }
}

/// Returns row and condition header of an operation, which must not have been done yet.
pub fn describe_in(model: &Model, operation: &Operation) -> (&'static str, Header) {
    if model.is_hierarchical()
        && let Some(name) = lake::describe(operation)
    {
        return (name, Header::NONE);
    }
    let (name, header) = describe(operation);
    let alone = alone(model, operation);
    let found = alone.and_then(|alone| {
        let mut all = SITUATIONS.iter();
        all.find(|situation| situation.operation == name && situation.alone == alone)
    });
    (found.map_or(name, |situation| situation.name), header)
}

/// Returns the blocks that determine the answer; `None` if something else does.
fn alone(model: &Model, operation: &Operation) -> Option<Alone> {
    use BlobOperation as On;
    match operation {
        Operation::Container(
            name,
            ContainerOperation::List {
                prefix,
                uncommitted: true,
                ..
            },
        ) => {
            let both = [Alone::Lapsed, Alone::Kept].into_iter();
            let mut found = both.filter(|alone| model.has_alone(name, prefix, *alone));
            found.next()
        }
        Operation::Blob(id, operation) => {
            let is_plain = match operation {
                On::Delete { snapshot, .. } => snapshot.is_none(),
                On::PutBlock(..) | On::GetBlockList { .. } => true,
                On::PutBlockList(list, _, guard) => !list.is_empty() && *guard == Guard::default(),
                _ => false,
            };
            let alone = model.alone_at(&id.container, &id.blob);
            alone.filter(|_| is_plain)
        }
        _ => None,
    }
}
