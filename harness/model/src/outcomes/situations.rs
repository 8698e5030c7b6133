//! Where what is there decides so much that an operation has a row of its own for it: blocks that
//! stand alone under a name, within their week and past it.

use super::describe::describe;
use super::{Header, Row};
use crate::Model;
use crate::hints::Alone;
use crate::vocabulary::{BlobOperation, ContainerOperation, Guard, Operation};

/// An operation where such blocks are.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Name of the row.
    pub name: &'static str,
    /// Name of the operation elsewhere.
    pub operation: &'static str,
    /// What is there.
    pub alone: Alone,
}

const fn situation(name: &'static str, operation: &'static str, alone: Alone) -> Situation {
    Situation {
        name,
        operation,
        alone,
    }
}

/// All of them.
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
    /// The situation that the row is about.
    pub fn situation(&self) -> Option<&'static Situation> {
        Situation::named(self.operation)
    }
}

impl Situation {
    /// The one of this row.
    pub fn named(name: &str) -> Option<&'static Situation> {
        SITUATIONS.iter().find(|situation| situation.name == name)
    }
}

/// Row and condition of an operation, before it is done.
pub fn describe_in(model: &Model, operation: &Operation) -> (&'static str, Header) {
    let (name, header) = describe(operation);
    let alone = alone(model, operation);
    let found = alone.and_then(|alone| {
        let mut all = SITUATIONS.iter();
        all.find(|situation| situation.operation == name && situation.alone == alone)
    });
    (found.map_or(name, |situation| situation.name), header)
}

/// The blocks that decide about an operation; none where something else does.
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
