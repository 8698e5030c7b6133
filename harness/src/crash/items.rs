//! Compares blobs and entities with what is expected. An operation that changes several must exist
//! completely or not at all.

use std::collections::{BTreeMap, BTreeSet};

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
    /// It is an earlier version, or nobody wrote it like this.
    Other,
}

/// Items by name, for all names that may exist; `None` where there is none.
pub type Seen = BTreeMap<String, Option<Version>>;

/// The items of a kind that may exist.
#[derive(Debug, Default)]
pub struct Known {
    kind: Kind,
    /// Every item that was acknowledged.
    told: BTreeMap<String, Item>,
    /// What the unanswered operation would have made of items.
    unanswered: BTreeMap<String, Effect>,
    /// Whether the unanswered operation is a rename, which keeps ETags.
    is_renamed: bool,
    /// Every name that may exist.
    pub names: BTreeSet<String>,
}

impl Known {
    /// Collects the items of a model and of its unanswered operation.
    pub fn of(kind: Kind, model: &Model) -> Self {
        let pending = model.pending.as_ref();
        let effects = pending.map(|op| op.effects(kind, model));
        let unanswered: BTreeMap<String, Effect> = effects.into_iter().flatten().collect();
        let told = model.items(kind);
        Known {
            kind,
            told: told.clone(),
            names: told.keys().chain(unanswered.keys()).cloned().collect(),
            unanswered,
            is_renamed: matches!(pending, Some(Op::Rename { .. })),
        }
    }

    /// Identifies an item that was read. C3: an ETag has the content that was written with it.
    pub fn recognise(&self, name: &str, read: &Read) -> Result<Version, Flaw> {
        let is = |content, mark| {
            read.mark == Some(mark) && read.bytes == self.kind.bytes(content).as_slice()
        };
        let told = self.told.get(name).filter(|item| item.etag == read.etag);
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
                Some(Version::Told(_)) => self.told.get(name).cloned(),
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

/// Returns how the items differ from what is expected. C2: the unanswered operation happened
/// completely or not at all.
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
    use crate::crash::model::{Change, Op, Outcome};

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

    fn insert(seed: u64) -> Change {
        Change::Insert(content(seed))
    }

    fn replace(seed: u64) -> Change {
        Change::Replace(content(seed))
    }

    /// Three entities with the ETag 1, of which one was then written alone with the ETag 2.
    fn model() -> Model {
        let ops = [
            op(1, &[("a", insert(1)), ("b", insert(2)), ("c", insert(3))]),
            op(2, &[("b", replace(4))]),
        ];
        let mut model = Model::default();
        for (op, n) in ops.into_iter().zip(1..) {
            let outcome = Outcome {
                etags: vec![n.to_string(); 3],
                ..Outcome::default()
            };
            model.acknowledge(op, outcome, &Unique::default());
        }
        model
    }

    /// The same with a transaction in flight: one entity replaced, one deleted, one new.
    fn unanswered() -> Model {
        let changes = [("a", replace(5)), ("c", Change::Delete), ("d", insert(6))];
        Model {
            pending: Some(op(3, &changes)),
            ..model()
        }
    }

    /// Rows of a query: key, seed of the text, mark, ETag.
    type Shown<'a> = &'a [(&'a str, u64, u64, &'a str)];

    fn judge(model: &Model, shown: Shown<'_>) -> Vec<Flaw> {
        let known = Known::of(Kind::Entity, model);
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
        flaws.extend(differences(Kind::Entity, model, &entities));
        flaws
    }

    const BEFORE: Shown<'_> = &[("a", 1, 1, "1"), ("b", 4, 2, "2"), ("c", 3, 1, "1")];
    const AFTER: Shown<'_> = &[("a", 5, 3, "3"), ("b", 4, 2, "2"), ("d", 6, 3, "3")];
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

    #[test]
    fn everything_that_was_acknowledged_exists() {
        let all = model();
        assert_eq!(judge(&all, BEFORE), []);
        // An earlier version, a missing entity, and one that nobody put.
        let earlier = &[("a", 1, 1, "1"), ("b", 2, 1, "1"), ("c", 3, 1, "1")];
        for wrong in [earlier, &BEFORE[..2], AFTER] {
            assert_eq!(judge(&all, wrong)[0].property, Property::C1, "{wrong:?}");
        }
    }

    #[test]
    fn an_unanswered_transaction_exists_completely_or_not_at_all() {
        let all = unanswered();
        assert_eq!(judge(&all, BEFORE), []);
        assert_eq!(judge(&all, AFTER), []);
        for half in HALVES {
            let flaws = judge(&all, half);
            assert_eq!(flaws.len(), 1, "{half:?}: {flaws:?}");
            assert_eq!(flaws[0].property, Property::C2);
            assert!(flaws[0].text.contains("half of a transaction"), "{flaws:?}");
        }
        // The text of one write with the mark of another, and a mark that belongs to another ETag.
        let mixed = &[("a", 5, 1, "3"), ("b", 4, 2, "2"), ("d", 6, 3, "3")];
        assert_ne!(judge(&all, mixed), []);
        let mixed = &[("a", 1, 3, "1"), ("b", 4, 2, "2"), ("c", 3, 1, "1")];
        assert_eq!(judge(&all, mixed)[0].property, Property::C3);
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
            let version = read.map(|(content, mark, etag)| {
                let read = Read {
                    bytes: content.bytes().into(),
                    mark: Some(mark),
                    etag: etag.to_owned(),
                };
                Known::of(Kind::Blob, &model).recognise("b", &read)
            });
            let version = match version.transpose() {
                Ok(version) => version,
                Err(flaw) => return Some(flaw.property),
            };
            let seen = [("b".to_owned(), version)].into();
            let flaws = differences(Kind::Blob, &model, &seen);
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
