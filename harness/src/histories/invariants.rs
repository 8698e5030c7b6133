//! Invariants, which must hold after every operation.
//!
//! - A listing of the changed container shows what the model has: snapshots, deleted and
//!   uncommitted blobs, lengths, ETags, metadata.
//! - A changed queue counts and shows the messages of the model.
//! - A query of the changed table shows the entities of the model.
//! - ETags grow and are never repeated, also across restarts.
//! - The store counts the references to every payload correctly, and queues unreferenced
//!   payloads for removal.

use smalt_model::vocabulary::tables::{Level, TableOperation};
use smalt_model::vocabulary::{
    AccountOperation, ContainerOperation, Names as Listed, Operation, QueueOperation,
};
use smalt_model::{Expected, Model};
use smalt_protocol::ETag;

use super::names::Names;
use super::run::Player;

/// Maximum number of messages in one answer.
const MESSAGES: u32 = 32;
/// Number of entities on a page, unless there are so many that there would be more than [`PAGES`].
const ENTITIES: u32 = 3;
const PAGES: usize = 4;
/// Maximum number of entries on a page.
const ENTRIES: u32 = 5_000;

/// Checks after each step what the step may have changed.
#[derive(Debug, Default)]
pub struct Watch {
    /// The largest ETag so far.
    last_tag: Option<ETag>,
}

impl Watch {
    /// Checks the answer to a step: a new ETag must be larger than all others.
    ///
    /// # Errors
    /// When it is not.
    pub fn tag(&mut self, is_new: bool, shown: Option<&str>) -> Result<(), String> {
        let Some(tag) = shown.filter(|_| is_new).and_then(ETag::parse) else {
            return Ok(());
        };
        if let Some(last) = self.last_tag.filter(|last| *last >= tag) {
            return Err(format!("ETag {tag} comes after {last}"));
        }
        self.last_tag = Some(tag);
        Ok(())
    }
}

/// Returns read-only requests that show what an operation may have changed.
pub fn questions(model: &Model, operation: &Operation) -> Vec<Operation> {
    match operation {
        Operation::Container(name, _) if model.has_container(name) => vec![list(name)],
        Operation::Blob(id, _) | Operation::Path(id, _) if model.has_container(&id.container) => {
            vec![list(&id.container)]
        }
        Operation::Queue(name, _) if model.has_queue(name) => of_queue(name).to_vec(),
        Operation::Table(name, _) => vec![of_table(model, name)],
        _ => Vec::new(),
    }
}

/// Returns read-only requests that show everything.
pub fn all(model: &Model) -> Vec<Operation> {
    let listed = Listed {
        prefix: String::new(),
        page: ENTRIES,
        metadata: true,
    };
    let mut questions = vec![
        Operation::Account(AccountOperation::Containers(listed.clone())),
        Operation::Account(AccountOperation::Queues(listed)),
    ];
    questions.extend(model.containers().map(list));
    questions.extend(model.queues().flat_map(of_queue));
    questions.extend(model.tables().names().map(|name| of_table(model, name)));
    questions
}

fn list(name: &str) -> Operation {
    let list = ContainerOperation::List {
        prefix: String::new(),
        delimited: false,
        page: ENTRIES,
        snapshots: true,
        uncommitted: true,
        deleted: true,
    };
    Operation::Container(name.to_owned(), list)
}

fn of_queue(name: &str) -> [Operation; 2] {
    let on = |operation| Operation::Queue(name.to_owned(), operation);
    [
        on(QueueOperation::Get),
        on(QueueOperation::Peek { most: MESSAGES }),
    ]
}

/// Returns a query for all entities, over several pages. The table need not exist.
fn of_table(model: &Model, name: &str) -> Operation {
    let count = model.tables().rows(name).len() / PAGES;
    let query = TableOperation::Query {
        filter: None,
        page: ENTITIES.max(u32::try_from(count).unwrap_or(ENTITIES)),
        level: Level::Minimal,
    };
    Operation::Table(name.to_owned(), query)
}

/// Sends these requests and compares the answers.
///
/// # Errors
/// The first difference, or an inconsistency of the store.
pub async fn check(
    player: &mut Player,
    model: &mut Model,
    names: &mut Names,
    questions: Vec<Operation>,
) -> Result<(), String> {
    for question in questions {
        let expected: Expected = model.step(&question);
        let compared = player.play(&question, &expected, names).await;
        compared.map_err(|difference| format!("afterwards {question:?}: {difference}"))?;
    }
    player.server().audit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etag_that_does_not_grow_is_detected() {
        let mut watch = Watch::default();
        assert_eq!(watch.tag(true, Some("\"0x10\"")), Ok(()));
        assert_eq!(
            watch.tag(false, Some("\"0x8\"")),
            Ok(()),
            "an old one again"
        );
        assert_eq!(watch.tag(true, Some("\"0x11\"")), Ok(()));
        assert!(watch.tag(true, Some("\"0x11\"")).is_err());
        assert!(watch.tag(true, Some("\"0x9\"")).is_err());
    }
}
