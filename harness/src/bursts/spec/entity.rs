//! One partition of a table: entities with their tags. Its table stays.
//!
//! A partition is the unit because of entity group transactions, and because a query is promised to
//! see one state of it: a page is a read like any other.

use std::collections::{BTreeMap, BTreeSet};

use smalt_model::vocabulary::Operation;
use smalt_model::vocabulary::tables::{
    Action, Change, Match, Properties, TableExpected, TableOperation,
};
use smalt_protocol::ErrorCode;

use super::output::Output;
use super::value::{Taken, Value};
use super::{Refused, hash_of, same, same_outcome};
use crate::bursts::linear::Spec;

/// A partition at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Partition {
    /// By row key.
    entities: BTreeMap<String, Entity>,
    /// Tags that cannot be those of an unseen commit.
    taken: Taken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entity {
    tag: Value,
    /// The commit that wrote it, while nobody has seen its tag: all that one commit writes has one.
    unseen: usize,
    properties: Shown,
}

/// Properties as texts that differ when types or values do.
type Shown = BTreeMap<String, String>;

/// What an operation answers when it is done.
enum Told {
    /// Which of the changes left an entity there, and the number of their commit.
    Written(Vec<bool>, usize),
    /// An entity, read by its keys.
    Entity(String),
    /// Entities of a page, and where the next one begins.
    Page(Vec<String>, Option<String>),
}

/// A refusal, with the place of the change in its transaction.
type Refusal = (Option<usize>, ErrorCode);

impl Partition {
    /// Nothing; tags of these numbers were made by calls whose answers show it.
    pub fn empty(taken: Taken) -> Self {
        Partition {
            entities: BTreeMap::new(),
            taken,
        }
    }

    fn act(&mut self, operation: &TableOperation) -> Result<Told, Refusal> {
        match operation {
            TableOperation::Change(change) => {
                let told = self.write(std::slice::from_ref(change));
                told.map_err(|(_, code)| (None, code))
            }
            TableOperation::Batch(changes) => {
                let mut rows = BTreeSet::new();
                let twice = |change: &Change| !rows.insert(change.row.row_key.clone());
                match changes.iter().position(twice) {
                    Some(place) => Err((Some(place), ErrorCode::InvalidDuplicateRow)),
                    None => self.write(changes),
                }
            }
            TableOperation::Get(row, _) => match self.entities.contains_key(&row.row_key) {
                true => Ok(Told::Entity(row.row_key.clone())),
                false => Err((None, ErrorCode::ResourceNotFound)),
            },
            TableOperation::Page { from, most, .. } => {
                let from = from.clone().unwrap_or_default();
                let mut rows = self.entities.range(from..).map(|(row_key, _)| row_key);
                let page = rows.by_ref().take(*most as usize).cloned().collect();
                Ok(Told::Page(page, rows.next().cloned()))
            }
            // No program of a burst on entities has them.
            _ => Err((None, ErrorCode::NotImplemented)),
        }
    }

    /// All of them, or this is not the state that is kept.
    fn write(&mut self, changes: &[Change]) -> Result<Told, Refusal> {
        let commits = self.entities.values().map(|entity| entity.unseen);
        let commit = 1 + commits.max().unwrap_or(0);
        let mut left = Vec::new();
        for (place, change) in changes.iter().enumerate() {
            let is_left = self.change(change, commit);
            left.push(is_left.map_err(|code| (Some(place), code))?);
        }
        Ok(Told::Written(left, commit))
    }

    fn change(&mut self, change: &Change, unseen: usize) -> Result<bool, ErrorCode> {
        let row_key = &change.row.row_key;
        let found = self.entities.get(row_key);
        let condition = match &change.action {
            Action::Insert(_) if found.is_some() => return Err(ErrorCode::EntityAlreadyExists),
            Action::Insert(_) => None,
            Action::Replace(_, condition) | Action::Merge(_, condition) => *condition,
            Action::Delete(condition) => Some(*condition),
        };
        match (found, condition) {
            (None, Some(_)) => return Err(ErrorCode::ResourceNotFound),
            (Some(entity), Some(Match::Tag(tag))) if !entity.tag.is(tag.0) => {
                return Err(ErrorCode::UpdateConditionNotSatisfied);
            }
            _ => {}
        }
        let properties = match &change.action {
            Action::Delete(_) => {
                self.entities.remove(row_key);
                return Ok(false);
            }
            Action::Insert(given) | Action::Replace(given, _) => shown(given),
            Action::Merge(given, _) => {
                let mut kept = found.map_or_else(Shown::new, |entity| entity.properties.clone());
                kept.extend(shown(given));
                kept
            }
        };
        let entity = Entity {
            tag: Value::Unseen,
            unseen,
            properties,
        };
        self.entities.insert(row_key.clone(), entity);
        Ok(true)
    }

    /// Compares what is shown beside status, code and place.
    fn compare(&mut self, told: Told, seen: &TableExpected) -> Result<(), String> {
        match told {
            Told::Written(left, commit) => {
                let shown: Vec<bool> = seen.tags.iter().map(Option::is_some).collect();
                same("tags", &left, &shown)?;
                let mut tags = seen.tags.iter().flatten();
                let Some(tag) = tags.next() else {
                    return Ok(());
                };
                if tags.any(|other| other != tag) {
                    return Err("one transaction has several tags".to_owned());
                }
                self.bind(commit, tag.0);
                Ok(())
            }
            Told::Entity(row_key) => {
                let [Some(tag)] = seen.tags.as_slice() else {
                    return Err("no tag".to_owned());
                };
                self.see(&row_key, tag.0)?;
                self.compare_rows(&[row_key], seen)
            }
            Told::Page(row_keys, next) => {
                self.compare_rows(&row_keys, seen)?;
                let shown = seen.next.as_ref().map(|row| row.row_key.clone());
                same("next page", &next, &shown)
            }
        }
    }

    fn compare_rows(&mut self, row_keys: &[String], seen: &TableExpected) -> Result<(), String> {
        let shown_keys = seen.rows.iter().map(|row| row.id.row_key.clone());
        same("entities", &row_keys.to_vec(), &shown_keys.collect())?;
        for row in &seen.rows {
            let row_key = &row.id.row_key;
            let known = self.entities.get(row_key).map(|entity| &entity.properties);
            same(row_key, &known, &Some(&shown(&row.properties)))?;
            self.see(row_key, row.tag.0)?;
        }
        Ok(())
    }

    /// An answer shows the tag of an entity.
    fn see(&mut self, row_key: &str, number: u32) -> Result<(), String> {
        let Some(entity) = self.entities.get_mut(row_key) else {
            return Err(format!("{row_key} is not there"));
        };
        let was = entity.tag;
        let judged = entity.tag.see(number, &mut self.taken);
        judged.map_err(|reason| format!("ETag of {row_key}: {reason}"))?;
        if was == Value::Unseen {
            let commit = entity.unseen;
            self.bind(commit, number);
        }
        Ok(())
    }

    /// What this commit wrote has this tag.
    fn bind(&mut self, commit: usize, number: u32) {
        let of_commit = |entity: &&mut Entity| entity.unseen == commit;
        for entity in self.entities.values_mut().filter(of_commit) {
            entity.tag = Value::Seen(number);
            entity.unseen = 0;
        }
    }
}

fn shown(properties: &Properties) -> Shown {
    let text = |(name, value): (&String, &_)| (name.clone(), format!("{value:?}"));
    properties.iter().map(text).collect()
}

impl Spec for Partition {
    type Output = Output;

    fn step(&self, operation: &Operation, seen: Option<&Output>) -> Result<Self, String> {
        let Operation::Table(_, operation) = operation else {
            return Err("this is no operation on a table".to_owned());
        };
        let table = |seen: &Output| seen.table.clone().ok_or("no answer of the Table service");
        let shown = seen.map(table).transpose()?;
        let mut after = self.clone();
        match after.act(operation) {
            Err((place, code)) => {
                same_outcome(Err(Refused::from(code)), seen)?;
                let are_several = matches!(operation, TableOperation::Batch(all) if all.len() > 1);
                let place = place.filter(|_| are_several);
                shown.map_or(Ok(()), |shown| same("place", &place, &shown.place))?;
                Ok(self.clone())
            }
            Ok(told) => {
                let status = match told {
                    Told::Written(..) => 204,
                    Told::Entity(_) | Told::Page(..) => 200,
                };
                same_outcome(Ok(status), seen)?;
                if let Some(shown) = &shown {
                    after.compare(told, shown)?;
                }
                Ok(after)
            }
        }
    }

    fn fingerprint(&self) -> u64 {
        hash_of(self)
    }
}
