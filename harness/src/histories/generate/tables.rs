//! Operations on tables and their entities.

use smalt_model::Model;
use smalt_model::outcomes::Header;
use smalt_model::vocabulary::tables::{
    Action, Change, Level, Match, Properties, Row, RowId, TableFilter, TableMalformed,
    TableOperation,
};
use smalt_model::vocabulary::{Operation, Tag};
use smalt_protocol::table::Value;
use smalt_protocol::{ErrorCode, Timestamp};

use super::dice::{Dice, Miss};
use super::parts::{Kind, kind};

/// Names of tables: two spellings of one, and another.
pub(super) const TABLES: [&str; 3] = ["Orders", "orders", "Blogs"];
/// Keys: some that occur often together, and some with characters that need escaping.
const KEYS: [&str; 7] = ["", "a", "b c", "O'Neil", "+,$:@=&%", "\u{ffff}", "😀"];
/// Two partitions, so that operations often use the same entity.
const PARTITIONS: [&str; 2] = [KEYS[3], KEYS[4]];
const NAMES: [&str; 3] = ["Age", "Name", "_x1"];
const CHARACTERS: [char; 8] = ['a', 'b', 'c', '\'', '\u{e000}', '😀', '"', '\\'];
/// Names a row key of a batch of many entities: they are in order between those of [`KEYS`].
fn numbered(number: usize) -> String {
    format!("k{number:02}")
}

/// Length of a long property: with each of them, an entity needs one value more.
const LONG_CHARACTERS: usize = 17_000;

/// Numbers of row keys that such batches may have.
const NUMBERED: usize = 40;
/// Fewest changes of such a batch: later scans pass its entities by a leap.
const MANY: usize = 17;
/// Percentage of batches that change many entities.
const MANY_PERCENT: u8 = 8;
/// Maximum number of operators on the way to a leaf of a filter.
const DEPTH_MAX: u8 = 3;
/// Percentage of operators among the parts of a filter that may be one. Only a filter of several
/// parts selects several ranges of keys.
const OPERATOR_PERCENT: u8 = 65;
/// `If-Match` and `If-Match: *`, by [`Header`].
const IF_MATCH: Header = Header(1);
const IF_MATCH_ANY: Header = Header(2);

pub(super) const KINDS: &[Kind] = &[
    kind("table create", 20, create),
    kind("table delete", 14, delete),
    kind("entity insert", 90, |m, d| one(m, d, insert)),
    kind("entity insert or replace", 20, |m, d| {
        one(m, d, |rows, d| upsert(rows, d, Action::Replace))
    }),
    kind("entity insert or merge", 20, |m, d| {
        one(m, d, |rows, d| upsert(rows, d, Action::Merge))
    }),
    kind("entity update", 40, |m, d| {
        one(m, d, |rows, d| write(rows, d, Action::Replace))
    }),
    kind("entity merge", 40, |m, d| {
        one(m, d, |rows, d| write(rows, d, Action::Merge))
    }),
    kind("entity delete", 30, |m, d| one(m, d, remove)),
    kind("entity group transaction", 100, batch),
    kind("entity get", 40, get),
    kind("entity query", 80, query),
    kind("entity query one page", 40, page),
];

/// The state that one operation can refer to.
struct Rows<'a> {
    /// The entities of the table.
    all: Vec<Row>,
    /// The partition to use; `None` for any.
    partition: Option<&'a str>,
    /// The number of tags issued.
    tags: u32,
}

pub(super) fn is_empty(model: &Model) -> bool {
    model.tables().names().next().is_none()
}

/// Returns the first operation of a history, which is always possible.
pub(super) fn simplest(model: &Model) -> Operation {
    let operation = match has(model, TABLES[0]) {
        true => TableOperation::Query {
            filter: None,
            page: 1,
            level: Level::Minimal,
        },
        false => TableOperation::Create,
    };
    Operation::Table(TABLES[0].to_owned(), operation)
}

/// Returns a request that is rejected in every state.
pub(super) fn malformed(dice: &mut Dice<'_>) -> Operation {
    let which = dice.one(&TableMalformed::ALL);
    let which = which.unwrap_or(TableMalformed::TableName);
    Operation::Table(TABLES[0].to_owned(), TableOperation::Malformed(which))
}

fn has(model: &Model, name: &str) -> bool {
    let mut names = model.tables().names();
    names.any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns a table that exists or does not, usually the first one.
fn table(model: &Model, is_there: bool, dice: &mut Dice<'_>) -> Option<&'static str> {
    let all = TABLES.iter().copied();
    let fitting: Vec<&str> = all.filter(|name| has(model, name) == is_there).collect();
    match dice.chance(30) {
        true => dice.one(&fitting),
        false => fitting.first().copied(),
    }
}

fn on(name: &str, operation: TableOperation) -> Option<Operation> {
    Some(Operation::Table(name.to_owned(), operation))
}

/// Creates a new table; for a near miss, one that exists.
fn create(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(
        table(model, dice.miss.is_some(), dice)?,
        TableOperation::Create,
    )
}

fn delete(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(
        table(model, dice.miss.is_none(), dice)?,
        TableOperation::Delete,
    )
}

/// Returns an existing table with its entities; for a near miss, a table that does not exist.
fn place(model: &Model, dice: &mut Dice<'_>) -> Option<(&'static str, Rows<'static>)> {
    let is_absent = match dice.code {
        Some(code) => code == ErrorCode::TableNotFound,
        None => dice.misses(Miss::Absent) && dice.chance(50),
    };
    let name = table(model, !is_absent, dice)?;
    let rows = Rows {
        all: model.tables().rows(name),
        partition: None,
        tags: model.tables().tags(),
    };
    Some((name, rows))
}

fn one(
    model: &Model,
    dice: &mut Dice<'_>,
    make: fn(&Rows<'_>, &mut Dice<'_>) -> Option<Change>,
) -> Option<Operation> {
    let (name, rows) = place(model, dice)?;
    on(name, TableOperation::Change(make(&rows, dice)?))
}

impl Rows<'_> {
    /// Returns the address of an entity that exists, or of one that does not.
    fn row(&self, is_there: bool, dice: &mut Dice<'_>) -> Option<RowId> {
        if is_there {
            let all = self.all.iter().map(|row| &row.id);
            let is_in = |id: &&RowId| self.partition.is_none_or(|key| key == id.partition_key);
            return dice.one(&all.filter(is_in).cloned().collect::<Vec<_>>());
        }
        let partition = self.partition.or_else(|| dice.one(&PARTITIONS))?;
        let id = |key: &&str| RowId {
            partition_key: partition.to_owned(),
            row_key: (*key).to_owned(),
        };
        let free = KEYS.iter().map(id).filter(|id| self.tag(id).is_none());
        dice.one(&free.collect::<Vec<_>>())
    }

    fn tag(&self, id: &RowId) -> Option<Tag> {
        let found = self.all.iter().find(|row| row.id == *id);
        found.map(|row| row.tag)
    }

    /// Returns an entity and a condition that it meets; for a near miss, no entity or another tag.
    fn conditional(&self, dice: &mut Dice<'_>) -> Option<(RowId, Match)> {
        let row = self.row(!dice.misses(Miss::Absent), dice)?;
        let any = match dice.header {
            Some(header) if header != IF_MATCH && header != IF_MATCH_ANY => return None,
            Some(header) => header == IF_MATCH_ANY,
            None => dice.chance(30),
        };
        let other = Tag(u32::from(dice.byte()) % (self.tags + 1));
        let current = self.tag(&row).filter(|_| !dice.misses(Miss::Condition));
        let condition = match any {
            true => Match::Any,
            false => Match::Tag(current.unwrap_or(other)),
        };
        Some((row, condition))
    }
}

fn insert(rows: &Rows<'_>, dice: &mut Dice<'_>) -> Option<Change> {
    let row = rows.row(dice.misses(Miss::Detail), dice)?;
    let action = Action::Insert(properties(dice));
    Some(Change { row, action })
}

fn upsert(
    rows: &Rows<'_>,
    dice: &mut Dice<'_>,
    action: fn(Properties, Option<Match>) -> Action,
) -> Option<Change> {
    let is_there = dice.chance(60);
    let row = rows.row(is_there, dice)?;
    let action = action(properties(dice), None);
    Some(Change { row, action })
}

fn write(
    rows: &Rows<'_>,
    dice: &mut Dice<'_>,
    action: fn(Properties, Option<Match>) -> Action,
) -> Option<Change> {
    let (row, condition) = rows.conditional(dice)?;
    let action = action(properties(dice), Some(condition));
    Some(Change { row, action })
}

fn remove(rows: &Rows<'_>, dice: &mut Dice<'_>) -> Option<Change> {
    let (row, condition) = rows.conditional(dice)?;
    let action = Action::Delete(condition);
    Some(Change { row, action })
}

/// Returns changes of different entities of one partition. For a near miss one change is refused,
/// or one names an entity of another partition or an entity for the second time.
fn batch(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let (name, mut rows) = place(model, dice)?;
    rows.partition = dice.one(&PARTITIONS);
    let code = dice.code;
    let mut changes = match dice.space.wide && dice.chance(MANY_PERCENT) {
        true => many(&rows, dice),
        false => few(&rows, dice),
    };
    if dice.misses(Miss::Kind) {
        let mut again = dice.one(&changes)?;
        let mixes = match code {
            Some(code) => code == ErrorCode::CommandsInBatchActOnDifferentPartitions,
            None => dice.chance(50),
        };
        if mixes {
            let other = PARTITIONS
                .iter()
                .find(|key| Some(**key) != rows.partition)?;
            again.row.partition_key = (*other).to_owned();
        }
        let place = 1 + often_last(changes.len() - 1, dice);
        changes.insert(place, again);
    }
    (!changes.is_empty()).then_some(())?;
    on(name, TableOperation::Batch(changes))
}

/// Returns up to four changes; for a near miss, one of them is refused.
fn few(rows: &Rows<'_>, dice: &mut Dice<'_>) -> Vec<Change> {
    let count = 1 + dice.below(4);
    let wrong = dice.below(count);
    let miss = dice.miss;
    let mut changes: Vec<Change> = Vec::new();
    for place in 0..count {
        dice.miss = miss.filter(|_| place == wrong);
        let made = change(rows, dice);
        changes.extend(made.filter(|new| changes.iter().all(|old| old.row != new.row)));
    }
    dice.miss = miss;
    changes
}

/// Returns changes of many consecutive entities; for a near miss, another change is among them.
fn many(rows: &Rows<'_>, dice: &mut Dice<'_>) -> Vec<Change> {
    let count = MANY + dice.below(8);
    let first = dice.below(NUMBERED - count);
    let upsert = |number| Change {
        row: RowId {
            partition_key: rows.partition.unwrap_or_default().to_owned(),
            row_key: numbered(number),
        },
        action: Action::Replace(Properties::new(), None),
    };
    let mut changes: Vec<Change> = (first..first + count).map(upsert).collect();
    let place = often_last(count, dice);
    let wrong = change(rows, dice).filter(|_| dice.miss.is_some());
    let wrong = wrong.filter(|new| changes.iter().all(|old| old.row != new.row));
    if let Some(wrong) = wrong {
        changes.insert(place, wrong);
    }
    changes
}

/// Returns a place up to `last`, often that.
fn often_last(last: usize, dice: &mut Dice<'_>) -> usize {
    match dice.below(3) {
        0 => last,
        _ => dice.below(last + 1),
    }
}

/// Returns any change of one entity.
fn change(rows: &Rows<'_>, dice: &mut Dice<'_>) -> Option<Change> {
    let is_insert = dice.misses(Miss::Detail) || dice.chance(40);
    match dice.below(8) {
        _ if is_insert => insert(rows, dice),
        0 | 1 => write(rows, dice, Action::Replace),
        2 | 3 => write(rows, dice, Action::Merge),
        4 => upsert(rows, dice, Action::Replace),
        5 => upsert(rows, dice, Action::Merge),
        _ => remove(rows, dice),
    }
}

fn level(dice: &mut Dice<'_>) -> Level {
    match dice.chance(50) {
        true => Level::Full,
        false => Level::Minimal,
    }
}

fn get(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let (name, rows) = place(model, dice)?;
    let row = rows.row(!dice.misses(Miss::Absent), dice)?;
    on(name, TableOperation::Get(row, level(dice)))
}

fn query(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let (name, rows) = place(model, dice)?;
    let (page, filter) = match rows.all.len() {
        0..MANY => (
            small_page(dice),
            dice.chance(50).then(|| filter(DEPTH_MAX, dice)),
        ),
        // Not hundreds of requests.
        _ => (
            dice.one(&[1_000, 7, 5, 12]).unwrap_or(1_000),
            match dice.chance(50) {
                true => Some(apart(dice)),
                false => Some(filter(DEPTH_MAX, dice)),
            },
        ),
    };
    let level = level(dice);
    on(
        name,
        TableOperation::Query {
            filter,
            page,
            level,
        },
    )
}

/// Returns a filter for row keys at both ends, in one partition or all of them.
fn apart(dice: &mut Dice<'_>) -> TableFilter {
    let compare = |name: &str, operator, value: String| {
        Box::new(TableFilter::Compare {
            name: name.to_owned(),
            operator,
            value: Value::String(value),
            is_mirrored: false,
        })
    };
    let first = dice.below(NUMBERED / 2);
    let last = first + dice.below(NUMBERED - first);
    let rows = TableFilter::Or(
        compare("RowKey", "le", numbered(first)),
        compare("RowKey", "ge", numbered(last)),
    );
    let Some(partition) = dice.one(&PARTITIONS).filter(|_| dice.chance(60)) else {
        return rows;
    };
    let partition = compare("PartitionKey", "ge", partition.to_owned());
    TableFilter::And(partition, Box::new(rows))
}

fn page(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let (name, _) = place(model, dice)?;
    let page = TableOperation::Page {
        partition_key: dice.one(&PARTITIONS)?.to_owned(),
        from: dice
            .chance(50)
            .then(|| dice.one(&KEYS))
            .flatten()
            .map(str::to_owned),
        most: small_page(dice),
    };
    on(name, page)
}

fn small_page(dice: &mut Dice<'_>) -> u32 {
    dice.one(&[1, 2, 3, 4]).unwrap_or(1)
}

fn properties(dice: &mut Dice<'_>) -> Properties {
    let count = dice.below(3);
    let pair = |_| (NAMES[dice.below(NAMES.len())].to_owned(), value(dice));
    (0..count).map(pair).collect()
}

fn value(dice: &mut Dice<'_>) -> Value {
    if dice.is_long() {
        let character = CHARACTERS[dice.below(3)];
        return Value::String(character.to_string().repeat(LONG_CHARACTERS));
    }
    short(dice)
}

fn short(dice: &mut Dice<'_>) -> Value {
    let small = dice.one(&[0, 1, 2, -1, -2]).unwrap_or(0);
    let half = f64::from(small) / 2.0;
    match dice.below(7) {
        0 => Value::String(
            (0..dice.below(3))
                .map(|_| CHARACTERS[dice.below(8)])
                .collect(),
        ),
        1 => Value::Int32(small),
        2 => Value::Int64(dice.one(&[i64::from(small), i64::MIN]).unwrap_or(0)),
        3 => {
            let all = [
                half,
                half,
                half,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                1e300,
            ];
            Value::Double(dice.one(&all).unwrap_or(0.0))
        }
        4 => Value::Boolean(dice.chance(50)),
        5 => Value::DateTime(Timestamp::from_unix_s(dice.below(3) as u64)),
        _ => Value::Binary((0..dice.below(3)).map(|_| dice.byte()).collect()),
    }
}

/// Returns a filter with at most this many operators on the way to a leaf.
fn filter(depth: u8, dice: &mut Dice<'_>) -> TableFilter {
    if depth == 0 || !dice.chance(OPERATOR_PERCENT) {
        return leaf(dice);
    }
    let mut part = || Box::new(filter(depth - 1, dice));
    let (one, other) = (part(), part());
    match dice.below(6) {
        0 | 1 => TableFilter::And(one, other),
        2..5 => TableFilter::Or(one, other),
        _ => TableFilter::Not(one),
    }
}

/// Returns a comparison, usually of a key.
fn leaf(dice: &mut Dice<'_>) -> TableFilter {
    let name = NAMES[dice.below(NAMES.len())];
    let (name, value) = match dice.below(10) {
        0..6 => {
            let key = match dice.space.wide && dice.chance(30) {
                true => numbered(dice.below(NUMBERED)),
                false => dice.one(&KEYS).unwrap_or_default().to_owned(),
            };
            let name = dice.one(&["PartitionKey", "RowKey"]);
            (name.unwrap_or("RowKey"), Value::String(key))
        }
        6..9 => (name, short(dice)),
        _ => return TableFilter::Holds(name.to_owned()),
    };
    TableFilter::Compare {
        name: name.to_owned(),
        operator: dice.one(&TableFilter::OPERATORS).unwrap_or("eq"),
        value,
        is_mirrored: dice.chance(50),
    }
}
