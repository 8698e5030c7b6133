//! A state in the search for an order: the model, and the values behind its numbers.

use std::sync::Arc;

use smalt_model::Model;
use smalt_model::vocabulary::tables::{Action, Match, TableOperation};
use smalt_model::vocabulary::{
    BlobOperation, Condition, ContainerOperation, Guard, LeaseAction, LeaseId, Operation,
    PathOperation, QueueOperation,
};

use super::linear::{Call, Spec};
use crate::histories::check::check;
use crate::histories::names::Names;
use crate::histories::run::Answered;
use crate::histories::server::START_S;

/// Larger than the numbers that a history uses before its burst.
const FIRST: u32 = 1_000;
/// Larger than the count of numbers of one kind that a call uses.
const NUMBERS: u32 = 16;

/// The model, and the values that answers showed for its numbers.
#[derive(Clone, Debug)]
pub struct State {
    /// The model.
    pub model: Model,
    /// The values behind the model's numbers.
    pub names: Names,
    /// The values behind the numbers in the calls' operations; `None` when these are the model's
    /// numbers.
    pub asked: Option<Arc<Names>>,
}

impl Default for State {
    fn default() -> Self {
        State {
            model: Model::new(START_S),
            names: Names::default(),
            asked: None,
        }
    }
}

impl Spec for State {
    type Output = Answered;

    fn step(&self, call: &Call) -> Result<Self, String> {
        let mut after = self.clone();
        // The call determines the numbers of the values that it generates, so that orders that lead
        // to the same state are recognized.
        let place = u32::try_from(call.called).map_err(|error| error.to_string())?;
        after.model.number_from(FIRST + place * NUMBERS);
        let expected = match &self.asked {
            None => after.model.step(&call.operation),
            Some(asked) => {
                let mut operation = call.operation.clone();
                Translation {
                    asked,
                    names: &self.names,
                }
                .operation(&mut operation);
                after.model.step(&operation)
            }
        };
        if let Some((_, seen)) = &call.returned {
            check(&expected, seen, &mut after.names)?;
        }
        Ok(after)
    }

    /// Returns a hash that is the same in every run on one kind of machine.
    fn fingerprint(&self) -> u64 {
        let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
        hasher.hash_one((&self.model, &self.names))
    }
}

/// Translates the numbers that clients use to those of the model, by their values. An earlier
/// answer has shown every value that a client uses, so the model has a number for it; a value that
/// the client invented becomes an unknown number.
struct Translation<'a> {
    asked: &'a Names,
    names: &'a Names,
}

impl Translation<'_> {
    fn operation(&self, operation: &mut Operation) {
        match operation {
            Operation::Blob(_, operation) => self.blob(operation),
            Operation::Container(_, operation) => self.container(operation),
            Operation::Path(_, operation) => self.path(operation),
            Operation::Queue(
                _,
                QueueOperation::Update { id, receipt, .. }
                | QueueOperation::DeleteMessage { id, receipt },
            ) => {
                *id = self.names.message_of(self.asked, *id);
                *receipt = self.names.receipt_of(self.asked, *receipt);
            }
            Operation::Table(_, TableOperation::Change(change)) => self.action(&mut change.action),
            Operation::Table(_, TableOperation::Batch(changes)) => {
                changes
                    .iter_mut()
                    .for_each(|change| self.action(&mut change.action));
            }
            _ => {}
        }
    }

    fn blob(&self, operation: &mut BlobOperation) {
        match operation {
            BlobOperation::Put(_, _, guard)
            | BlobOperation::Get { guard, .. }
            | BlobOperation::Head { guard, .. }
            | BlobOperation::SetMetadata(_, guard)
            | BlobOperation::Delete { guard, .. } => self.guard(guard),
            BlobOperation::Lease(action, condition) => self.lease(action, condition),
            BlobOperation::SetTags(_, lease) | BlobOperation::GetTags(lease) => {
                self.guarded(lease);
            }
            _ => {}
        }
    }

    fn path(&self, operation: &mut PathOperation) {
        match operation {
            PathOperation::Create { guard, .. }
            | PathOperation::Flush { guard, .. }
            | PathOperation::Delete { guard, .. }
            | PathOperation::Expire(_, guard)
            | PathOperation::Status(guard) => self.guard(guard),
            PathOperation::Rename(rename) => {
                self.guard(&mut rename.guard);
                self.guarded(&mut rename.source_lease);
                self.condition(&mut rename.source_condition);
            }
            PathOperation::Append { lease, .. } => self.guarded(lease),
            PathOperation::Lease(action, condition) => self.lease(action, condition),
            PathOperation::List { .. } => {}
        }
    }

    fn container(&self, operation: &mut ContainerOperation) {
        match operation {
            ContainerOperation::Delete(guard) | ContainerOperation::SetMetadata(_, guard) => {
                self.guard(guard);
            }
            ContainerOperation::Get { lease } => self.guarded(lease),
            ContainerOperation::Lease(action, condition) => self.lease(action, condition),
            ContainerOperation::Create(_) | ContainerOperation::List { .. } => {}
        }
    }

    fn guarded(&self, lease: &mut Option<LeaseId>) {
        *lease = lease.map(|id| self.names.lease_of(self.asked, id));
    }

    fn guard(&self, guard: &mut Guard) {
        self.guarded(&mut guard.lease);
        self.condition(&mut guard.condition);
    }

    fn condition(&self, condition: &mut Option<Condition>) {
        if let Some(Condition::IfMatch(Some(tag)) | Condition::IfNoneMatch(Some(tag))) = condition {
            *tag = self.names.tag_of(self.asked, *tag);
        }
    }

    fn lease(&self, action: &mut LeaseAction, condition: &mut Option<Condition>) {
        self.condition(condition);
        match action {
            LeaseAction::Acquire { proposed, .. } => self.guarded(proposed),
            LeaseAction::Renew(id) | LeaseAction::Release(id) => {
                *id = self.names.lease_of(self.asked, *id);
            }
            LeaseAction::Change(id, proposed) => {
                *id = self.names.lease_of(self.asked, *id);
                *proposed = self.names.lease_of(self.asked, *proposed);
            }
            LeaseAction::Break { .. } => {}
        }
    }

    fn action(&self, action: &mut Action) {
        if let Action::Replace(_, Some(Match::Tag(tag)))
        | Action::Merge(_, Some(Match::Tag(tag)))
        | Action::Delete(Match::Tag(tag)) = action
        {
            *tag = self.names.entity_tag_of(self.asked, *tag);
        }
    }
}
