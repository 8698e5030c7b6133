//! Chooses the next operation of a client in a burst on entities of a few partitions.

use smalt_model::vocabulary::tables::{Action, Change, Match, Properties, RowId, TableOperation};
use smalt_model::vocabulary::{Operation, Tag};
use smalt_protocol::table::Value;

use super::Draw;
use crate::histories::names::NOBODYS;

/// The table of every burst on entities.
pub const TABLE: &str = "Burst";
/// Partitions of the table.
pub const PARTITIONS: [&str; 2] = ["p0", "p1"];
/// Rows of each partition.
const ROWS: [&str; 3] = ["r0", "r1", "r2"];
/// Names of properties; two, so that a merge must keep the one that it does not name.
const NAMES: [&str; 2] = ["a", "b"];
/// A page size that fits all entities.
const ONE_PAGE: u32 = 1_000;

/// Returns the operation that creates the table.
pub fn create_table() -> Operation {
    Operation::Table(TABLE.to_owned(), TableOperation::Create)
}

/// Returns an operation on one of these partitions.
pub fn entity(draw: &mut Draw<'_>, partitions: &[&str]) -> Operation {
    let partition_key = draw.one(partitions).unwrap_or(PARTITIONS[0]).to_owned();
    let row = |draw: &mut Draw<'_>| RowId {
        partition_key: partition_key.clone(),
        row_key: draw.one(&ROWS).unwrap_or(ROWS[0]).to_owned(),
    };
    let operation = match draw.below(100) {
        0..46 => {
            let row = row(draw);
            TableOperation::Change(change(draw, row))
        }
        46..56 => TableOperation::Get(row(draw), smalt_model::vocabulary::tables::Level::Minimal),
        56..78 => batch(draw, &partition_key),
        _ => TableOperation::Page {
            from: draw.chance(20).then(|| row(draw).row_key),
            most: draw
                .one(&[ONE_PAGE, ONE_PAGE, ONE_PAGE, 2, 1])
                .unwrap_or(ONE_PAGE),
            partition_key,
        },
    };
    Operation::Table(TABLE.to_owned(), operation)
}

fn change(draw: &mut Draw<'_>, row: RowId) -> Change {
    let action = match draw.below(100) {
        0..22 => Action::Insert(properties(draw)),
        22..36 => Action::Replace(properties(draw), None),
        36..50 => Action::Merge(properties(draw), None),
        50..66 => Action::Replace(properties(draw), Some(condition(draw, &row))),
        66..82 => Action::Merge(properties(draw), Some(condition(draw, &row))),
        _ => Action::Delete(condition(draw, &row)),
    };
    Change { row, action }
}

/// Returns a transaction of two or three entities of one partition; sometimes it names one twice,
/// which is rejected.
fn batch(draw: &mut Draw<'_>, partition_key: &str) -> TableOperation {
    let count = if draw.chance(70) { 2 } else { 3 };
    let mut rows = ROWS.to_vec();
    let mut changes = Vec::new();
    for _ in 0..count {
        let at = draw.below(u32::try_from(rows.len()).unwrap_or(1)) as usize;
        let row_key = match draw.chance(3) {
            true => rows.get(at).copied(),
            false => Some(rows.remove(at)),
        };
        let row = RowId {
            partition_key: partition_key.to_owned(),
            row_key: row_key.unwrap_or(ROWS[0]).to_owned(),
        };
        changes.push(change(draw, row));
    }
    TableOperation::Batch(changes)
}

/// Returns a condition: usually the newest ETag that any client saw of the entity, else an older
/// one, or `*`.
fn condition(draw: &mut Draw<'_>, row: &RowId) -> Match {
    if draw.chance(20) {
        return Match::Any;
    }
    let seen = draw.known.entities.iter().rev();
    let own: Vec<Tag> = seen
        .filter(|(of, _)| of == row)
        .map(|(_, tag)| *tag)
        .collect();
    let newest = own.first().copied().filter(|_| draw.chance(80));
    let known = newest.or_else(|| draw.one(&own));
    Match::Tag(known.unwrap_or(Tag(NOBODYS)))
}

fn properties(draw: &mut Draw<'_>) -> Properties {
    let mut properties = Properties::new();
    for name in NAMES {
        if draw.chance(60) {
            let number = i32::try_from(draw.below(4)).unwrap_or(0);
            properties.insert(name.to_owned(), Value::Int32(number));
        }
    }
    properties
}
