//! Compares blobs and entities with a state of a history. An operation that changes several must
//! exist completely or not at all.

use std::collections::{BTreeMap, BTreeSet};

use super::history::History;
use super::model::{Effect, Item, Kind, Model, Op, Unique};
use super::property::{Flaw, Property};
use super::wire::Read;

/// An item that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// It has an ETag that was acknowledged, with the content and the mark of that ETag.
    Told(String),
    /// It is as the unanswered operation would have made it, with this ETag.
    Unanswered(String),
    /// Nobody wrote it like this, or it is an earlier version.
    Other,
}

/// Items by name, for all names that may exist; `None` where there is none.
pub type Seen = BTreeMap<String, Option<Version>>;

/// The items of a kind that may exist.
#[derive(Debug, Default)]
pub struct Known {
    kind: Kind,
    /// Every item that was acknowledged, by name and ETag.
    told: BTreeMap<(String, String), Item>,
    /// What the unanswered operation would have made of items.
    unanswered: BTreeMap<String, Effect>,
    /// Whether the unanswered operation is a rename, which keeps ETags.
    is_renamed: bool,
    /// Every name that may exist.
    pub names: BTreeSet<String>,
}

impl Known {
    /// Collects the items of a history.
    pub fn of(kind: Kind, history: &History) -> Self {
        let mut model = history.base.clone();
        let mut known = Known {
            kind,
            ..Known::default()
        };
        known.note(&model, model.items(kind).keys());
        for step in &history.steps {
            let effects = step.op.effects(kind, &model);
            if !effects.is_empty() {
                model.acknowledge(step.op.clone(), step.outcome.clone(), &Unique::default());
                known.note(&model, effects.iter().map(|(name, _)| name));
            }
        }
        if let Some((op, _)) = &history.pending {
            known.unanswered = op.effects(kind, &model).into_iter().collect();
            known.is_renamed = matches!(op, Op::Rename { .. });
            known.names.extend(known.unanswered.keys().cloned());
        }
        known
    }

    fn note<'a>(&mut self, model: &Model, names: impl Iterator<Item = &'a String>) {
        for name in names {
            self.names.insert(name.clone());
            if let Some(item) = model.items(self.kind).get(name) {
                let place = (name.clone(), item.etag.clone());
                self.told.insert(place, item.clone());
            }
        }
    }

    /// Identifies an item that was read. C3: an ETag has the content that was written with it.
    ///
    /// # Errors
    /// When it has other content.
    pub fn recognise(&self, name: &str, read: &Read) -> Result<Version, Flaw> {
        let is = |content, mark| {
            read.mark == Some(mark) && read.bytes == self.kind.bytes(content).as_slice()
        };
        let told = self.told.get(&(name.to_owned(), read.etag.clone()));
        match (told, self.unanswered.get(name)) {
            (Some(told), _) if is(told.content, told.mark) => Ok(Version::Told(read.etag.clone())),
            (Some(_), _) => {
                let text = format!("{:?} {name} is not what was put", self.kind);
                Err(Flaw::new(Property::C3, text))
            }
            (None, Some(Some((content, mark)))) if is(*content, *mark) => {
                Ok(Version::Unanswered(read.etag.clone()))
            }
            _ => Ok(Version::Other),
        }
    }

    /// Returns the items at the start of the next round, and records ETags from the unanswered
    /// operation.
    pub fn settled(
        &self,
        seen: &Seen,
        unique: &Unique,
        flaws: &mut Vec<Flaw>,
    ) -> BTreeMap<String, Item> {
        let mut items = BTreeMap::new();
        let mut given = BTreeSet::new();
        for (name, version) in seen {
            let item = match version {
                None | Some(Version::Other) => None,
                Some(Version::Told(etag)) => self.told.get(&(name.clone(), etag.clone())).cloned(),
                Some(Version::Unanswered(etag)) => {
                    if !self.is_renamed {
                        given.insert(etag);
                    }
                    let effect = self.unanswered.get(name).copied().flatten();
                    effect.map(|(content, mark)| Item {
                        content,
                        mark,
                        etag: etag.clone(),
                    })
                }
            };
            items.extend(item.map(|item| (name.clone(), item)));
        }
        let notes = given.into_iter().map(|etag| unique.note("ETag", etag));
        flaws.extend(notes.flatten());
        items
    }
}

fn is_as_before(told: Option<&Item>, seen: Option<&Version>) -> bool {
    match (told, seen) {
        (None, None) => true,
        (Some(item), Some(Version::Told(etag))) => item.etag == *etag,
        _ => false,
    }
}

fn is_as_after(effect: Effect, seen: Option<&Version>) -> bool {
    match seen {
        None => effect.is_none(),
        Some(Version::Unanswered(_)) => effect.is_some(),
        Some(_) => false,
    }
}

/// Returns how the items differ from a state. C2: the unanswered operation happened completely or
/// not at all.
pub fn differences(kind: Kind, model: &Model, seen: &Seen) -> Vec<Flaw> {
    let pending = model.pending.as_ref();
    let effects = pending.map(|op| op.effects(kind, model));
    let effects: BTreeMap<String, Effect> = effects.into_iter().flatten().collect();
    let mut flaws = Vec::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (name, seen) in seen {
        let (told, seen) = (model.items(kind).get(name), seen.as_ref());
        let effect = effects.get(name);
        if is_as_before(told, seen) {
            before.extend(effect.map(|_| name.as_str()));
            continue;
        }
        if effect.is_some_and(|effect| is_as_after(*effect, seen)) {
            after.push(name.as_str());
            continue;
        }
        let (property, text) = match (told, seen) {
            (Some(_), Some(_)) => (Property::C1, "is not the last one put"),
            (Some(_), None) => (Property::C1, "is gone"),
            (None, _) => (Property::C2, "exists, but was deleted or not put"),
        };
        flaws.push(Flaw::new(property, format!("{kind:?} {name} {text}")));
    }
    if !before.is_empty() && !after.is_empty() {
        let (before, after) = (before.join(", "), after.join(", "));
        let text = format!("half of a transaction exists: {after} are new, {before} are not");
        flaws.push(Flaw::new(Property::C2, text));
    }
    flaws
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::content::Content;
    use crate::crash::history::Cut;
    use crate::crash::model::{Change, Op, Outcome};
    use crate::crash::prefix;

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
        let known = Known::of(Kind::Entity, history);
        let mut entities: Seen = known.names.iter().map(|row| (row.clone(), None)).collect();
        let mut flaws = Vec::new();
        for (row, seed, mark, etag) in shown {
            let read = Read {
                bytes: content(*seed).text().into(),
                mark: Some(*mark),
                etag: (*etag).to_owned(),
            };
            match known.recognise(row, &read) {
                Ok(version) => drop(entities.insert((*row).to_owned(), Some(version))),
                Err(flaw) => {
                    entities.remove(*row);
                    flaws.push(flaw);
                }
            }
        }
        let seen = prefix::Seen {
            entities,
            ..prefix::Seen::default()
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
            let durable = History::after(&model);
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
            let unanswered = || Some(Version::Unanswered(etag.to_owned()));
            let told = Some(Version::Told("2".to_owned()));
            let rows = [
                ("a", unanswered()),
                ("b", told),
                ("c", None),
                ("d", unanswered()),
            ];
            let seen = rows.map(|(name, seen)| row(name, seen)).into();
            let mut flaws = Vec::new();
            let known = Known::of(Kind::Entity, &all);
            let entities = known.settled(&seen, &unique, &mut flaws);
            assert_eq!((entities.len(), entities["b"].mark), (3, 2));
            assert_eq!((entities["a"].mark, entities["d"].content), (3, content(6)));
            flaws
        };
        // Two entities that were written together share an ETag, which is not given again.
        assert_eq!(settled("3"), []);
        assert_eq!(settled("3")[0].property, Property::C4);
    }

    /// C1 to C3 as a table: what was acknowledged, what was not, what exists.
    #[test]
    fn blobs_are_checked() {
        let (old, new) = (content(1), content(2));
        let put = |content, mark| Op::PutBlob {
            name: "b".to_owned(),
            content,
            mark,
            in_blocks: false,
        };
        let judged = |is_told: bool, pending: Option<Op>, read: Option<(Content, u64, &str)>| {
            let mut model = Model::default();
            if is_told {
                let outcome = Outcome {
                    etag: "e1".to_owned(),
                    ..Outcome::default()
                };
                model.acknowledge(put(old, 1), outcome, &Unique::default());
            }
            model.pending = pending;
            let history = History::after(&model);
            let version = read.map(|(content, mark, etag)| {
                let read = Read {
                    bytes: content.bytes().into(),
                    mark: Some(mark),
                    etag: etag.to_owned(),
                };
                Known::of(Kind::Blob, &history).recognise("b", &read)
            });
            let version = match version.transpose() {
                Ok(version) => version,
                Err(flaw) => return Some(flaw.property),
            };
            let seen = prefix::Seen {
                blobs: [("b".to_owned(), version)].into(),
                ..prefix::Seen::default()
            };
            let (_, flaws) = prefix::cut(&history, &seen);
            flaws.first().map(|flaw| flaw.property)
        };
        use Property::{C1, C2, C3};
        // Nothing in flight.
        assert_eq!(judged(true, None, Some((old, 1, "e1"))), None);
        assert_eq!(judged(true, None, None), Some(C1));
        assert_eq!(judged(true, None, Some((old, 2, "e1"))), Some(C3));
        assert_eq!(judged(true, None, Some((new, 1, "e1"))), Some(C3));
        assert_eq!(judged(true, None, Some((old, 1, "e2"))), Some(C1));
        assert_eq!(judged(false, None, Some((old, 1, "e1"))), Some(C2));
        // An overwrite in flight: one or the other, never a mixture.
        let overwrite = || Some(put(new, 2));
        assert_eq!(judged(true, overwrite(), Some((old, 1, "e1"))), None);
        assert_eq!(judged(true, overwrite(), Some((new, 2, "e2"))), None);
        assert_eq!(judged(true, overwrite(), Some((new, 1, "e2"))), Some(C1));
        assert_eq!(judged(true, overwrite(), None), Some(C1));
        // Metadata in flight.
        let (name, mark) = ("b".to_owned(), 2);
        let set = || {
            let name = name.clone();
            Some(Op::SetMetadata { name, mark })
        };
        assert_eq!(judged(true, set(), Some((old, 2, "e2"))), None);
        assert_eq!(judged(true, set(), Some((new, 2, "e2"))), Some(C1));
        // A delete in flight.
        let name = || "b".to_owned();
        let delete = || Some(Op::DeleteBlob { name: name() });
        assert_eq!(judged(true, delete(), None), None);
        assert_eq!(judged(true, delete(), Some((old, 1, "e1"))), None);
        // A first put in flight.
        assert_eq!(judged(false, overwrite(), None), None);
        assert_eq!(judged(false, overwrite(), Some((new, 2, "e2"))), None);
    }
}
