//! Reduces a failing history as far as possible.
//!
//! proptest removes what it can in one pass from the end. The rest is removed here until nothing
//! more can be: steps, then conditions, lease ids, metadata and bytes.

use smalt_model::vocabulary::tables::{Action, Change, Match, TableOperation};
use smalt_model::vocabulary::{
    BlobOperation, ContainerOperation, Content, Guard, Labels, Metadata, Operation, PathOperation,
    QueueOperation, Rename,
};

use super::generate::Step;

/// Maximum number of histories to run.
const RUNS_MAX: usize = 2_000;

/// Returns the smallest history found. `fails` returns the number of steps that a history needs to
/// fail.
pub fn smallest(mut history: Vec<Step>, fails: &dyn Fn(&[Step]) -> Option<usize>) -> Vec<Step> {
    let mut runs = 0;
    let mut attempt = |candidate: &[Step]| {
        runs += 1;
        if runs > RUNS_MAX {
            return None;
        }
        fails(candidate)
    };
    loop {
        let before = history.clone();
        let mut place = history.len();
        while place > 0 && history.len() > 1 {
            place -= 1;
            let mut candidate = history.clone();
            candidate.remove(place);
            // Values that the removed step would have generated lose their numbers, and later ones
            // move up.
            let mut moved = candidate.clone();
            moved[place..].iter_mut().for_each(move_up);
            for mut candidate in [candidate, moved] {
                if let Some(end) = attempt(&candidate) {
                    candidate.truncate(end);
                    history = candidate;
                    place = place.min(history.len());
                    break;
                }
            }
        }
        for place in 0..history.len() {
            let Some(step) = history.get(place).cloned() else {
                break;
            };
            for simpler in simpler(&step.operation) {
                let mut candidate = history.clone();
                candidate[place].operation = simpler;
                if let Some(end) = attempt(&candidate) {
                    candidate.truncate(end);
                    history = candidate;
                    break;
                }
            }
        }
        if history == before {
            return history;
        }
    }
}

/// Replaces the entity ETags in a step by the preceding ones.
fn move_up(step: &mut Step) {
    let Operation::Table(_, operation) = &mut step.operation else {
        return;
    };
    for change in changes(operation) {
        if let Action::Replace(_, Some(Match::Tag(tag)))
        | Action::Merge(_, Some(Match::Tag(tag)))
        | Action::Delete(Match::Tag(tag)) = &mut change.action
        {
            tag.0 = tag.0.saturating_sub(1);
        }
    }
}

fn changes(operation: &mut TableOperation) -> &mut [Change] {
    match operation {
        TableOperation::Change(change) => std::slice::from_mut(change),
        TableOperation::Batch(changes) => changes,
        _ => &mut [],
    }
}

/// Returns the transaction with one change less, or without properties.
fn simpler_table(operation: &TableOperation) -> Vec<TableOperation> {
    let mut found = Vec::new();
    if let TableOperation::Batch(changes) = operation
        && changes.len() > 1
    {
        for place in 0..changes.len() {
            let mut fewer = changes.clone();
            fewer.remove(place);
            found.push(TableOperation::Batch(fewer));
        }
    }
    if let TableOperation::Query {
        filter: Some(_),
        page,
        level,
    } = operation
    {
        found.push(TableOperation::Query {
            filter: None,
            page: *page,
            level: *level,
        });
    }
    let mut bare = operation.clone();
    for change in changes(&mut bare) {
        if let Action::Insert(properties)
        | Action::Replace(properties, _)
        | Action::Merge(properties, _) = &mut change.action
        {
            properties.clear();
        }
    }
    found.extend((bare != *operation).then_some(bare));
    found
}

/// Returns simpler variants of an operation, each with one part removed.
fn simpler(operation: &Operation) -> Vec<Operation> {
    if let Operation::Table(name, operation) = operation {
        let simpler = simpler_table(operation).into_iter();
        let on = |operation| Operation::Table(name.clone(), operation);
        return simpler.map(on).collect();
    }
    let mut found = Vec::new();
    let mut offer = |change: &dyn Fn(&mut Parts<'_>)| {
        let mut candidate = operation.clone();
        change(&mut Parts::of(&mut candidate));
        if candidate != *operation {
            found.push(candidate);
        }
    };
    offer(&|parts| {
        if let Some(guard) = &mut parts.guard {
            **guard = Guard::default();
        }
    });
    offer(&|parts| {
        if let Some(guard) = &mut parts.guard {
            guard.condition = None;
        }
    });
    offer(&|parts| {
        if let Some(guard) = &mut parts.guard {
            guard.lease = None;
        }
    });
    offer(&|parts| {
        if let Some(metadata) = &mut parts.metadata {
            metadata.clear();
        }
    });
    offer(&|parts| {
        if let Some(tags) = &mut parts.tags {
            tags.clear();
        }
    });
    offer(&|parts| {
        if let Some(content) = &mut parts.content {
            **content = Content { seed: 0, length: 1 };
        }
    });
    found
}

/// Common parts of operations that can be changed.
#[derive(Default)]
struct Parts<'a> {
    guard: Option<&'a mut Guard>,
    metadata: Option<&'a mut Metadata>,
    tags: Option<&'a mut Metadata>,
    content: Option<&'a mut Content>,
}

impl<'a> Parts<'a> {
    fn label(&mut self, labels: &'a mut Labels) {
        self.metadata = Some(&mut labels.metadata);
        self.tags = Some(&mut labels.tags);
    }

    fn of(operation: &'a mut Operation) -> Self {
        match operation {
            Operation::Container(_, operation) => Self::of_container(operation),
            Operation::Blob(_, operation) => Self::of_blob(operation),
            Operation::Path(_, operation) => Self::of_path(operation),
            Operation::Queue(
                _,
                QueueOperation::Create(metadata) | QueueOperation::SetMetadata(metadata),
            ) => Parts {
                metadata: Some(metadata),
                ..Parts::default()
            },
            _ => Parts::default(),
        }
    }

    fn of_container(operation: &'a mut ContainerOperation) -> Self {
        let mut parts = Parts::default();
        match operation {
            ContainerOperation::Create(metadata) => parts.metadata = Some(metadata),
            ContainerOperation::Delete(guard) => parts.guard = Some(guard),
            ContainerOperation::SetMetadata(metadata, guard) => {
                parts.metadata = Some(metadata);
                parts.guard = Some(guard);
            }
            _ => {}
        }
        parts
    }

    fn of_path(operation: &'a mut PathOperation) -> Self {
        let mut parts = Parts::default();
        match operation {
            PathOperation::Create {
                metadata, guard, ..
            } => {
                parts.metadata = Some(metadata);
                parts.guard = Some(guard);
            }
            PathOperation::Append { content, .. } => parts.content = Some(content),
            PathOperation::Flush { guard, .. }
            | PathOperation::Delete { guard, .. }
            | PathOperation::Expire(_, guard)
            | PathOperation::Status(guard)
            | PathOperation::Rename(Rename { guard, .. }) => parts.guard = Some(guard),
            PathOperation::Lease(..) | PathOperation::List { .. } => {}
        }
        parts
    }

    fn of_blob(operation: &'a mut BlobOperation) -> Self {
        use BlobOperation as On;
        let mut parts = Parts::default();
        match operation {
            On::Put(content, labels, guard) => {
                parts.content = Some(content);
                parts.label(labels);
                parts.guard = Some(guard);
            }
            On::SetMetadata(metadata, guard) | On::Snapshot(metadata, guard) => {
                parts.metadata = Some(metadata);
                parts.guard = Some(guard);
            }
            On::Create(_, labels, guard)
            | On::PutBlockList(_, labels, guard)
            | On::Copy { labels, guard, .. }
            | On::FromUrl { labels, guard, .. } => {
                parts.label(labels);
                parts.guard = Some(guard);
            }
            On::Append(content, _, guard) => {
                parts.content = Some(content);
                parts.guard = Some(guard);
            }
            On::Get { guard, .. }
            | On::Head { guard, .. }
            | On::Delete { guard, .. }
            | On::SetProperties(_, guard)
            | On::Seal(_, guard)
            | On::WritePages { guard, .. }
            | On::GetPages { guard, .. } => parts.guard = Some(guard),
            On::PutBlock(_, content, _) => parts.content = Some(content),
            _ => {}
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histories::generate::Intent;

    fn queue(operation: QueueOperation) -> Step {
        Step {
            intent: Intent::Valid,
            operation: Operation::Queue("q".to_owned(), operation),
        }
    }

    /// A check that fails for a creation followed by a deletion reduces to two steps.
    #[test]
    fn only_needed_steps_remain() {
        let named = Metadata::from([("a".to_owned(), "b".to_owned())]);
        let create = queue(QueueOperation::Create(named));
        let (get, delete) = (queue(QueueOperation::Get), queue(QueueOperation::Delete));
        let history = vec![
            get.clone(),
            create.clone(),
            get.clone(),
            create,
            get.clone(),
            delete.clone(),
            get,
        ];
        let is_create = |step: &Step| {
            matches!(
                step.operation,
                Operation::Queue(_, QueueOperation::Create(_))
            )
        };
        let fails = |history: &[Step]| {
            let created = history.iter().position(is_create)?;
            let rest = history[created..].iter();
            let deleted = rest.clone().position(|step| *step == delete)?;
            Some(created + deleted + 1)
        };
        let smallest = smallest(history, &fails);
        let bare = queue(QueueOperation::Create(Metadata::new()));
        assert_eq!(smallest, [bare, delete.clone()]);
    }
}
