//! Histories of a partition of entities that no service may produce.

use smalt_model::vocabulary::tables::{
    Action, Change, Level, Match, Properties, RowId, TableOperation,
};
use smalt_protocol::table::Value;

use super::said::entity_tag;
use super::*;
use crate::bursts::program::TABLE;

const ROWS: [&str; 2] = ["r0", "r1"];

fn id(row: usize) -> RowId {
    RowId {
        partition_key: PARTITIONS[0].to_owned(),
        row_key: ROWS[row].to_owned(),
    }
}

fn numbers(given: &[(&str, i32)]) -> Properties {
    let owned = |(name, number): &(&str, i32)| ((*name).to_owned(), Value::Int32(*number));
    given.iter().map(owned).collect()
}

fn on(operation: TableOperation) -> Operation {
    Operation::Table(TABLE.to_owned(), operation)
}

fn change(row: usize, action: Action) -> Change {
    Change {
        row: id(row),
        action,
    }
}

fn one(row: usize, action: Action) -> Operation {
    on(TableOperation::Change(change(row, action)))
}

fn upsert(value: i32) -> Action {
    Action::Replace(numbers(&[("a", value)]), None)
}

fn update(value: i32, tag: u32) -> Action {
    Action::Replace(numbers(&[("a", value)]), Some(Match::Tag(Tag(tag))))
}

fn insert(value: i32) -> Action {
    Action::Insert(numbers(&[("a", value)]))
}

fn both(first: Action, second: Action) -> Operation {
    on(TableOperation::Batch(vec![
        change(0, first),
        change(1, second),
    ]))
}

fn query() -> Operation {
    on(TableOperation::Page {
        partition_key: PARTITIONS[0].to_owned(),
        from: None,
        most: 1_000,
    })
}

fn seen(status: u16, table: Seen) -> Answered {
    let mut answered = ok(status);
    answered.table = Some(Seen { status, ..table });
    answered
}

/// Returns the answer to a write that left these ETags.
fn wrote(tags: &[Option<u32>]) -> Answered {
    let tags = tags.iter().map(|tag| tag.map(entity_tag)).collect();
    seen(
        204,
        Seen {
            tags,
            ..Seen::default()
        },
    )
}

fn refuses(status: u16, code: &str, place: Option<usize>) -> Answered {
    seen(
        status,
        Seen {
            code: Some(code.to_owned()),
            place,
            ..Seen::default()
        },
    )
}

/// Returns a page of entities: row, ETag, value.
fn shows(entities: &[(usize, u32, i32)]) -> Answered {
    let row = |(row, tag, value): &(usize, u32, i32)| {
        (id(*row), entity_tag(*tag), numbers(&[("a", *value)]))
    };
    seen(
        200,
        Seen {
            rows: entities.iter().map(row).collect(),
            ..Seen::default()
        },
    )
}

fn of_entity(what: &'static str) -> Story {
    Story(Kind::Entity, what)
}

/// Creates both entities in one transaction.
fn both_there() -> Told {
    let made = wrote(&[Some(0), Some(0)]);
    (0, (1, 2), both(insert(1), insert(1)), made)
}

#[test]
fn wrong_reads_of_a_partition_are_rejected() {
    let get = || on(TableOperation::Get(id(0), Level::Minimal));
    let got = |tag: u32, value: i32| {
        let mut got = shows(&[(0, tag, value)]);
        if let Some(table) = &mut got.table {
            table.tags = vec![Some(entity_tag(tag))];
        }
        got
    };
    let second = || (1, (3, 4), one(0, upsert(2)), wrote(&[Some(1)]));
    of_entity("a read").is_accepted([both_there(), (1, (3, 4), get(), got(0, 1))]);
    of_entity("a stale read").is_rejected([both_there(), second(), (2, (5, 6), get(), got(0, 1))]);
    of_entity("a new value under an old tag").is_rejected([
        both_there(),
        second(),
        (2, (5, 6), get(), got(0, 2)),
    ]);
    of_entity("a query of a state that was").is_accepted([
        both_there(),
        (1, (3, 6), one(0, upsert(2)), wrote(&[Some(1)])),
        (2, (4, 5), query(), shows(&[(0, 0, 1), (1, 0, 1)])),
    ]);
    of_entity("a query of two states: the second write of one client without its first")
        .is_rejected([
            both_there(),
            (1, (3, 4), one(0, upsert(2)), wrote(&[Some(1)])),
            (1, (6, 7), one(1, upsert(2)), wrote(&[Some(2)])),
            (2, (5, 8), query(), shows(&[(0, 0, 1), (1, 2, 2)])),
        ]);
    of_entity("a query that misses one")
        .is_rejected([both_there(), (2, (3, 4), query(), shows(&[(1, 0, 1)]))]);
    of_entity("an entity that nobody made").is_rejected([(
        2,
        (3, 4),
        query(),
        shows(&[(1, 0, 1)]),
    )]);
}

#[test]
fn wrong_transactions_are_rejected() {
    let write = || both(upsert(2), upsert(2));
    let seen = |first, second| (2, (4, 5), query(), shows(&[first, second]));
    let (old, new) = ((0, 0, 1), (0, 1, 2));
    of_entity("seen whole").is_accepted([
        both_there(),
        (1, (3, 6), write(), wrote(&[Some(1); 2])),
        seen(new, (1, 1, 2)),
    ]);
    of_entity("seen in part").is_rejected([
        both_there(),
        (1, (3, 6), write(), wrote(&[Some(1); 2])),
        seen(new, (1, 0, 1)),
    ]);
    of_entity("lost, and seen whole").is_accepted([
        both_there(),
        (1, (3, 0), write(), ok(0)),
        seen(new, (1, 1, 2)),
    ]);
    of_entity("lost, and seen in part").is_rejected([
        both_there(),
        (1, (3, 0), write(), ok(0)),
        seen(old, (1, 1, 2)),
    ]);
    of_entity("lost, and seen with two tags").is_rejected([
        both_there(),
        (1, (3, 0), write(), ok(0)),
        seen(new, (1, 2, 2)),
    ]);
    of_entity("answered with two tags").is_rejected([
        both_there(),
        (1, (3, 6), write(), wrote(&[Some(1), Some(2)])),
    ]);
}

#[test]
fn wrong_errors_of_transactions_are_rejected() {
    let clash = || both(upsert(2), insert(2));
    let exists = |place| refuses(409, "EntityAlreadyExists", place);
    let refused = |place| (1, (3, 4), clash(), exists(place));
    of_entity("refused").is_accepted([both_there(), refused(Some(1))]);
    of_entity("refused at another place").is_rejected([both_there(), refused(Some(0))]);
    of_entity("refused without a place").is_rejected([both_there(), refused(None)]);
    of_entity("refused, and done in part").is_rejected([
        both_there(),
        refused(Some(1)),
        (2, (5, 6), query(), shows(&[(0, 1, 2), (1, 0, 1)])),
    ]);
    of_entity("done although one change is refused")
        .is_rejected([both_there(), (1, (3, 4), clash(), wrote(&[Some(1); 2]))]);
}

#[test]
fn wrong_conditions_and_etags_of_entities_are_rejected() {
    let unmet = || refuses(412, "UpdateConditionNotSatisfied", None);
    let delete = |tag: u32| one(0, Action::Delete(Match::Tag(Tag(tag))));
    let rival = || (1, (3, 6), one(0, update(2, 0)), wrote(&[Some(1)]));
    of_entity("a lost update: one condition met twice").is_rejected([
        both_there(),
        rival(),
        (2, (4, 5), one(0, update(3, 0)), wrote(&[Some(2)])),
    ]);
    of_entity("one condition met once").is_accepted([
        both_there(),
        rival(),
        (2, (4, 5), one(0, update(3, 0)), unmet()),
    ]);
    of_entity("refused although nobody wrote")
        .is_rejected([both_there(), (2, (4, 5), one(0, update(3, 0)), unmet())]);
    of_entity("deleted under a stale tag").is_rejected([
        both_there(),
        (1, (3, 4), one(0, upsert(2)), wrote(&[Some(1)])),
        (2, (5, 6), delete(0), wrote(&[None])),
    ]);
}

#[test]
fn conflicting_writes_and_lost_properties_are_rejected() {
    let merge = Action::Merge(numbers(&[("b", 5)]), None);
    let delete = |tag: u32| one(0, Action::Delete(Match::Tag(Tag(tag))));
    of_entity("deleted by two").is_rejected([
        both_there(),
        (1, (3, 6), delete(0), wrote(&[None])),
        (2, (4, 5), delete(0), wrote(&[None])),
    ]);
    of_entity("inserted by two").is_rejected([
        (1, (3, 6), one(0, insert(1)), wrote(&[Some(0)])),
        (2, (4, 5), one(0, insert(1)), wrote(&[Some(1)])),
    ]);
    of_entity("a tag of two writes").is_rejected([
        both_there(),
        (1, (3, 4), one(0, upsert(2)), wrote(&[Some(0)])),
    ]);
    of_entity("a merge that drops what it does not name").is_rejected([
        both_there(),
        (1, (3, 4), one(0, merge), wrote(&[Some(1)])),
        (2, (5, 6), query(), shows(&[(0, 1, 1), (1, 0, 1)])),
    ]);
}

/// Two clients write one entity each; queries return a page of one, and the page after it.
#[test]
fn wrong_pages_are_rejected() {
    let page = |from: Option<usize>, most: u32| {
        on(TableOperation::Page {
            partition_key: PARTITIONS[0].to_owned(),
            from: from.map(|row| ROWS[row].to_owned()),
            most,
        })
    };
    let ends = |mut seen: Answered, next: Option<usize>| {
        if let Some(table) = &mut seen.table {
            table.next = next.map(id);
        }
        seen
    };
    let first = |next| (1, (3, 4), page(None, 1), ends(shows(&[(0, 0, 1)]), next));
    let rest = |shown: &[(usize, u32, i32)]| (1, (5, 6), page(Some(1), 1), shows(shown));
    of_entity("two pages").is_accepted([both_there(), first(Some(1)), rest(&[(1, 0, 1)])]);
    of_entity("nothing follows, it says").is_rejected([both_there(), first(None)]);
    of_entity("the second one is left out").is_rejected([both_there(), first(Some(1)), rest(&[])]);
}
