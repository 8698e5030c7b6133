//! Random histories of one client of the Table service, every answer judged by the model of tables.
//!
//! A history is a list of [`Step`]s that proptest makes and shrinks. A step says what is meant;
//! what it asks for follows from what the model has when its turn comes, so that a shrunk history
//! still means the same. Cells that are reached are counted: a history that reaches little proves
//! little.

mod answers;
mod generate;
mod requests;

use std::collections::{BTreeMap, BTreeSet};

use smalt_model::tables::Tables;
use smalt_model::vocabulary::Tag;
use smalt_model::vocabulary::tables::{TableExpected, TableOperation};

use crate::histories::server::Server;

pub use generate::{Step, steps};

/// What histories reached: operation, status and code.
pub type Cells = BTreeSet<(&'static str, u16, String)>;

/// Pages that one query may take: more is a token that leads in a circle.
const PAGES_MAX: usize = 200;

/// The tags that the service gave out, by the model's numbers.
#[derive(Debug, Default)]
struct Bound(BTreeMap<Tag, String>);

impl Bound {
    /// The text of a tag; for one that nobody was given, one that nobody is.
    fn text(&self, tag: Tag) -> String {
        let never = || "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"".to_owned();
        self.0.get(&tag).cloned().unwrap_or_else(never)
    }

    /// Binds a new tag, or compares a known one.
    fn see(&mut self, tag: Tag, text: &str) -> Result<(), String> {
        match self.0.get(&tag) {
            Some(known) if known == text => Ok(()),
            Some(known) => Err(format!("the tag is {text}, and was {known}")),
            None => {
                self.0.insert(tag, text.to_owned());
                Ok(())
            }
        }
    }
}

/// Plays a history against a fresh emulator in memory.
///
/// # Errors
/// The first answer that is not the model's, with the requests that led to it.
pub async fn play(steps: &[Step]) -> Result<Cells, String> {
    let server = Server::in_memory()?;
    let mut model = Tables::default();
    let mut bound = Bound::default();
    let mut cells = Cells::new();
    let mut told = String::new();
    for step in steps {
        let (table, operation) = step.operation(&model);
        let exchange = requests::send(&server, table, &operation, &bound, step.is_full()).await?;
        told.push_str(&exchange.told());
        let expected = model.step(table, &operation);
        answers::judge(&operation, &expected, &exchange, &mut bound)
            .map_err(|why| format!("{why}\nexpected {expected:?}\nof {operation:?}\n{told}"))?;
        cells.insert(cell(&operation, &expected));
    }
    server.audit()?;
    Ok(cells)
}

fn cell(operation: &TableOperation, expected: &TableExpected) -> (&'static str, u16, String) {
    let name = match operation {
        TableOperation::Create => "create",
        TableOperation::Delete => "delete",
        TableOperation::Change(change) => generate::named(change),
        TableOperation::Batch(_) => "batch",
        TableOperation::Get(_) => "get",
        TableOperation::Query { .. } => "query",
    };
    let code = expected
        .code
        .map_or_else(String::new, |code| code.to_string());
    (name, expected.status, code)
}
