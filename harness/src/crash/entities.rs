//! Checks a partition after a crash: entities, and the transactions that wrote them, each of which
//! must exist completely or not at all.

use std::collections::{BTreeMap, BTreeSet};

use super::content::Content;
use super::history::History;
use super::model::{Change, Entity, Model, Op, Unique};
use super::property::{Flaw, Property};
use super::wire_entities::Row;

/// An entity that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenEntity {
    /// It has an ETag that was acknowledged, with the text and the mark of that ETag.
    Told(String),
    /// It is as the unanswered operation would have made it, with this ETag.
    Unanswered(String),
    /// Nobody wrote it like this, or it is an earlier version.
    Other,
}

/// Rows by key; `None` where there is no entity.
pub type SeenEntities = BTreeMap<String, Option<SeenEntity>>;

/// The entities that may exist.
#[derive(Debug, Default)]
pub struct Known {
    /// Every entity that was acknowledged, by row and ETag.
    told: BTreeMap<(String, String), Entity>,
    /// Text and mark of the entities that the unanswered operation writes.
    unanswered: BTreeMap<String, (Content, u64)>,
    /// Every row that may exist.
    rows: BTreeSet<String>,
}

impl Known {
    /// Collects the entities of a history.
    pub fn of(history: &History) -> Self {
        let mut known = Known::default();
        let mut model = history.base.clone();
        known.note(&model, model.entities.keys());
        for step in &history.steps {
            if let Op::ChangeEntities { changes, .. } = &step.op {
                model.acknowledge(step.op.clone(), step.outcome.clone(), &Unique::default());
                known.note(&model, changes.iter().map(|(row, _)| row));
            }
        }
        if let Some((Op::ChangeEntities { changes, mark }, _)) = &history.pending {
            for (row, change) in changes {
                known.rows.insert(row.clone());
                let content = change
                    .content()
                    .map(|content| (row.clone(), (content, *mark)));
                known.unanswered.extend(content);
            }
        }
        known
    }

    fn note<'a>(&mut self, model: &Model, rows: impl Iterator<Item = &'a String>) {
        for row in rows {
            self.rows.insert(row.clone());
            if let Some(entity) = model.entities.get(row) {
                let place = (row.clone(), entity.etag.clone());
                self.told.insert(place, entity.clone());
            }
        }
    }

    /// Identifies the rows of a query. C3: an ETag has the content that was written with it.
    pub fn recognise(&self, shown: &[Row], flaws: &mut Vec<Flaw>) -> SeenEntities {
        let free = self.rows.iter().map(|row| (row.clone(), None));
        let mut seen: SeenEntities = free.collect();
        for row in shown {
            let is =
                |content: Content, mark: u64| row.mark == Some(mark) && row.text == content.text();
            let told = self.told.get(&(row.key.clone(), row.etag.clone()));
            let unanswered = self.unanswered.get(&row.key);
            let entity = match (told, unanswered) {
                (Some(told), _) if is(told.content, told.mark) => {
                    SeenEntity::Told(row.etag.clone())
                }
                (Some(_), _) => {
                    let text = format!("entity {} is not what was put", row.key);
                    flaws.push(Flaw::new(Property::C3, text));
                    seen.remove(&row.key);
                    continue;
                }
                (None, Some((content, mark))) if is(*content, *mark) => {
                    SeenEntity::Unanswered(row.etag.clone())
                }
                _ => SeenEntity::Other,
            };
            seen.insert(row.key.clone(), Some(entity));
        }
        seen
    }
}

fn is_as_before(model: &Model, row: &str, seen: Option<&SeenEntity>) -> bool {
    match (model.entities.get(row), seen) {
        (None, None) => true,
        (Some(entity), Some(SeenEntity::Told(etag))) => entity.etag == *etag,
        _ => false,
    }
}

fn is_as_after(change: Change, seen: Option<&SeenEntity>) -> bool {
    match seen {
        None => change == Change::Delete,
        Some(SeenEntity::Unanswered(_)) => change != Change::Delete,
        Some(_) => false,
    }
}

fn differs(model: &Model, row: &str, seen: Option<&SeenEntity>) -> Option<Flaw> {
    if is_as_before(model, row, seen) {
        return None;
    }
    let (property, text) = match (model.entities.contains_key(row), seen.is_some()) {
        (true, true) => (Property::C1, "is not the last one put"),
        (true, false) => (Property::C1, "is gone"),
        (false, _) => (Property::C2, "exists, but was deleted or not put"),
    };
    Some(Flaw::new(property, format!("entity {row} {text}")))
}

/// Returns how the rows differ from a state. C2: the unanswered operation happened completely or
/// not at all.
pub fn differences(model: &Model, seen: &SeenEntities) -> Vec<Flaw> {
    let changes: BTreeMap<&String, Change> = match &model.pending {
        Some(Op::ChangeEntities { changes, .. }) => {
            changes.iter().map(|(row, change)| (row, *change)).collect()
        }
        _ => BTreeMap::new(),
    };
    let mut flaws = Vec::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (row, seen) in seen {
        let seen = seen.as_ref();
        match changes.get(row) {
            Some(_) if is_as_before(model, row, seen) => before.push(row.as_str()),
            Some(change) if is_as_after(*change, seen) => after.push(row.as_str()),
            _ => flaws.extend(differs(model, row, seen)),
        }
    }
    if !before.is_empty() && !after.is_empty() {
        let (before, after) = (before.join(", "), after.join(", "));
        let text = format!("half of a transaction exists: {after} are new, {before} are not");
        flaws.push(Flaw::new(Property::C2, text));
    }
    flaws
}

/// Returns the entities at the start of the next round, and records ETags from the unanswered
/// operation.
pub fn settled(
    history: &History,
    seen: &SeenEntities,
    unique: &Unique,
    flaws: &mut Vec<Flaw>,
) -> BTreeMap<String, Entity> {
    let known = Known::of(history);
    let mut entities = BTreeMap::new();
    let mut given = BTreeSet::new();
    for (row, entity) in seen {
        let entity = match entity {
            None | Some(SeenEntity::Other) => None,
            Some(SeenEntity::Told(etag)) => known.told.get(&(row.clone(), etag.clone())).cloned(),
            Some(SeenEntity::Unanswered(etag)) => {
                given.insert(etag);
                known.unanswered.get(row).map(|(content, mark)| Entity {
                    content: *content,
                    mark: *mark,
                    etag: etag.clone(),
                })
            }
        };
        entities.extend(entity.map(|entity| (row.clone(), entity)));
    }
    flaws.extend(
        given
            .into_iter()
            .filter_map(|etag| unique.note("ETag", etag)),
    );
    entities
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::history::Cut;
    use crate::crash::model::Outcome;
    use crate::crash::prefix::{self, Seen};

    fn content(seed: u64) -> Content {
        Content { seed, length: 9 }
    }

    fn op(mark: u64, changes: &[(&str, Change)]) -> Op {
        let changes = changes.iter();
        Op::ChangeEntities {
            changes: changes
                .map(|(row, change)| ((*row).to_owned(), *change))
                .collect(),
            mark,
        }
    }

    /// Three entities with the ETag 1, one of them alone with 2, and three at once with 3: one
    /// replaced, one deleted, one new.
    fn history() -> History {
        let (insert, replace) = (
            |seed| Change::Insert(content(seed)),
            |seed| Change::Replace(content(seed)),
        );
        let ops = [
            op(1, &[("a", insert(1)), ("b", insert(2)), ("c", insert(3))]),
            op(2, &[("b", replace(4))]),
            op(
                3,
                &[("a", replace(5)), ("c", Change::Delete), ("d", insert(6))],
            ),
        ];
        let mut all = History::default();
        for (op, n) in ops.into_iter().zip(1_u64..) {
            all.begin(op, 2 * n);
            let outcome = Outcome {
                etags: vec![n.to_string(); 3],
                ..Outcome::default()
            };
            all.acknowledge(outcome, 2 * n + 1, n);
        }
        all
    }

    /// The same history with the last operation unanswered.
    fn unanswered() -> History {
        let mut all = history();
        all.pending = all.steps.pop().map(|step| (step.op, step.begun));
        all
    }

    /// Rows of a query: key, seed of the text, mark, ETag.
    type Shown<'a> = &'a [(&'a str, u64, u64, &'a str)];

    fn judge(history: &History, shown: Shown<'_>) -> (Cut, Vec<Flaw>) {
        let row = |(key, seed, mark, etag): &(&str, u64, u64, &str)| Row {
            key: (*key).to_owned(),
            text: content(*seed).text(),
            mark: Some(*mark),
            etag: (*etag).to_owned(),
        };
        let rows: Vec<Row> = shown.iter().map(row).collect();
        let mut flaws = Vec::new();
        let seen = Seen {
            entities: Known::of(history).recognise(&rows, &mut flaws),
            ..Seen::default()
        };
        let (cut, differences) = prefix::cut(history, &seen);
        flaws.extend(differences);
        (cut, flaws)
    }

    const FIRST: Shown<'_> = &[("a", 1, 1, "1"), ("b", 2, 1, "1"), ("c", 3, 1, "1")];
    const SECOND: Shown<'_> = &[("a", 1, 1, "1"), ("b", 4, 2, "2"), ("c", 3, 1, "1")];
    const THIRD: Shown<'_> = &[("a", 5, 3, "3"), ("b", 4, 2, "2"), ("d", 6, 3, "3")];
    /// Every way in which some of the last three changes are missing.
    const HALVES: [Shown<'_>; 6] = [
        &[("a", 5, 3, "3"), ("b", 4, 2, "2"), ("c", 3, 1, "1")],
        &[("a", 1, 1, "1"), ("b", 4, 2, "2")],
        &[
            ("a", 1, 1, "1"),
            ("b", 4, 2, "2"),
            ("c", 3, 1, "1"),
            ("d", 6, 3, "3"),
        ],
        &[("a", 5, 3, "3"), ("b", 4, 2, "2")],
        &[
            ("a", 5, 3, "3"),
            ("b", 4, 2, "2"),
            ("c", 3, 1, "1"),
            ("d", 6, 3, "3"),
        ],
        &[("a", 1, 1, "1"), ("b", 4, 2, "2"), ("d", 6, 3, "3")],
    ];

    fn exactly(count: usize) -> Cut {
        Cut {
            first: count,
            last: count,
        }
    }

    #[test]
    fn every_end_may_be_lost_but_no_half() {
        let all = history();
        for (shown, count) in [(&[][..], 0), (FIRST, 1), (SECOND, 2), (THIRD, 3)] {
            assert_eq!(judge(&all, shown), (exactly(count), Vec::new()));
        }
        for half in HALVES {
            assert_ne!(judge(&all, half).1, [], "{half:?}");
        }
        // The last change exists without the one before it.
        let hole = &[("a", 5, 3, "3"), ("b", 2, 1, "1"), ("d", 6, 3, "3")];
        assert_eq!(judge(&all, hole).1[0].property, Property::C1);
    }

    #[test]
    fn an_unanswered_transaction_exists_completely_or_not_at_all() {
        let all = unanswered();
        assert_eq!(judge(&all, SECOND), (Cut { first: 2, last: 3 }, Vec::new()));
        assert_eq!(judge(&all, THIRD), (exactly(3), Vec::new()));
        for half in HALVES {
            // The check for a mode without loss finds it as well.
            let mut model = all.state(2);
            model.pending = all.pending.clone().map(|(op, _)| op);
            let durable = History {
                base: model,
                pending: all.pending.clone(),
                ..History::default()
            };
            for history in [&all, &durable] {
                let (_, flaws) = judge(history, half);
                assert_eq!(flaws.len(), 1, "{half:?}: {flaws:?}");
                assert_eq!(flaws[0].property, Property::C2);
                assert!(flaws[0].text.contains("half of a transaction"), "{flaws:?}");
            }
        }
        // The text of one write with the mark of another, and a mark that belongs to another ETag.
        let mixed = &[("a", 5, 1, "3"), ("b", 4, 2, "2"), ("d", 6, 3, "3")];
        assert_ne!(judge(&all, mixed).1, []);
        let mixed = &[("a", 1, 3, "1"), ("b", 4, 2, "2"), ("c", 3, 1, "1")];
        assert_eq!(judge(&all, mixed).1[0].property, Property::C3);
    }

    #[test]
    fn existing_entities_start_the_next_round() {
        let (all, unique) = (unanswered(), Unique::default());
        let settled = |etag: &str| {
            let row = |row: &str, seen| (row.to_owned(), seen);
            let unanswered = || Some(SeenEntity::Unanswered(etag.to_owned()));
            let told = Some(SeenEntity::Told("2".to_owned()));
            let rows = [
                ("a", unanswered()),
                ("b", told),
                ("c", None),
                ("d", unanswered()),
            ];
            let seen = rows.map(|(name, seen)| row(name, seen)).into();
            let mut flaws = Vec::new();
            let entities = settled(&all, &seen, &unique, &mut flaws);
            assert_eq!((entities.len(), entities["b"].mark), (3, 2));
            assert_eq!((entities["a"].mark, entities["d"].content), (3, content(6)));
            flaws
        };
        // Two entities that were written together share an ETag, which is not given again.
        assert_eq!(settled("3"), []);
        assert_eq!(settled("3")[0].property, Property::C4);
    }
}
