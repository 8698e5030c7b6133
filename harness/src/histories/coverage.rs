//! What histories have reached: operation x outcome x condition.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use smalt_model::Expected;
use smalt_model::vocabulary::{
    BlobOperation, Condition, ContainerOperation, LeaseAction, Operation, QueueOperation,
};

/// How often each cell was reached.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    cells: BTreeMap<Cell, u64>,
}

/// Operation, status, error code, condition.
type Cell = (&'static str, u16, &'static str, &'static str);

impl Coverage {
    /// Notes a step.
    pub fn note(&mut self, operation: &Operation, expected: &Expected) {
        let code = expected.code.map_or("", smalt_protocol::ErrorCode::as_str);
        let (name, condition) = describe(operation);
        let cell = (name, expected.status, code, condition);
        *self.cells.entry(cell).or_default() += 1;
    }

    /// Adds what another run has reached.
    pub fn add(&mut self, other: &Coverage) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
    }

    /// Steps in all.
    pub fn steps(&self) -> u64 {
        self.cells.values().sum()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Share of the steps that were done, in per cent.
    pub fn done_percent(&self) -> u64 {
        let done = self
            .cells
            .iter()
            .filter(|((_, _, code, _), _)| code.is_empty());
        let done: u64 = done.map(|(_, count)| count).sum();
        100 * done / self.steps().max(1)
    }
}

impl Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, status, code, condition), count) in &self.cells {
            let outcome = format!("{status} {code}");
            writeln!(f, "{name:<24} {outcome:<46} {condition:<20} {count:>9}")?;
        }
        Ok(())
    }
}

fn describe(operation: &Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Container(_, operation) => of_container(operation),
        Operation::Blob(_, operation) => of_blob(operation),
        Operation::Queue(_, operation) => (of_queue(operation), ""),
        Operation::Malformed(_) => ("malformed", ""),
        Operation::Advance { .. } => ("advance", ""),
        Operation::Restart => ("restart", ""),
    }
}

fn condition(of: Option<Condition>) -> &'static str {
    match of {
        None => "",
        Some(Condition::IfMatch(None)) => "If-Match: *",
        Some(Condition::IfMatch(_)) => "If-Match",
        Some(Condition::IfNoneMatch(None)) => "If-None-Match: *",
        Some(Condition::IfNoneMatch(_)) => "If-None-Match",
        Some(Condition::IfModifiedSince(_)) => "If-Modified-Since",
        Some(Condition::IfUnmodifiedSince(_)) => "If-Unmodified-Since",
    }
}

fn of_container(operation: &ContainerOperation) -> (&'static str, &'static str) {
    match operation {
        ContainerOperation::Create(_) => ("container create", ""),
        ContainerOperation::Delete(guard) => ("container delete", condition(guard.condition)),
        ContainerOperation::Get { .. } => ("container get", ""),
        ContainerOperation::SetMetadata(_, guard) => {
            ("container set metadata", condition(guard.condition))
        }
        ContainerOperation::Lease(action, given) => {
            let names = [
                "container lease acquire",
                "container lease renew",
                "container lease change",
                "container lease release",
                "container lease break",
            ];
            (names[place(action)], condition(*given))
        }
        ContainerOperation::List { .. } => ("container list", ""),
    }
}

fn place(action: &LeaseAction) -> usize {
    match action {
        LeaseAction::Acquire { .. } => 0,
        LeaseAction::Renew(_) => 1,
        LeaseAction::Change(..) => 2,
        LeaseAction::Release(_) => 3,
        LeaseAction::Break { .. } => 4,
    }
}

fn of_blob(operation: &BlobOperation) -> (&'static str, &'static str) {
    match operation {
        BlobOperation::Put(.., guard) => ("blob put", condition(guard.condition)),
        BlobOperation::Get { guard, .. } => ("blob get", condition(guard.condition)),
        BlobOperation::Head { guard, .. } => ("blob head", condition(guard.condition)),
        BlobOperation::SetMetadata(_, guard) => ("blob set metadata", condition(guard.condition)),
        BlobOperation::Delete { guard, .. } => ("blob delete", condition(guard.condition)),
        BlobOperation::Snapshot(_, guard) => ("blob snapshot", condition(guard.condition)),
        BlobOperation::Lease(action, given) => {
            let names = [
                "blob lease acquire",
                "blob lease renew",
                "blob lease change",
                "blob lease release",
                "blob lease break",
            ];
            (names[place(action)], condition(*given))
        }
        BlobOperation::PutBlock(..) => ("blob put block", ""),
        BlobOperation::PutBlockList(.., guard) => {
            ("blob put block list", condition(guard.condition))
        }
        BlobOperation::GetBlockList { .. } => ("blob get block list", ""),
        BlobOperation::Copy { guard, .. } => ("blob copy", condition(guard.condition)),
        BlobOperation::SetTags(..) => ("blob set tags", ""),
        BlobOperation::GetTags(_) => ("blob get tags", ""),
    }
}

fn of_queue(operation: &QueueOperation) -> &'static str {
    match operation {
        QueueOperation::Create(_) => "queue create",
        QueueOperation::Delete => "queue delete",
        QueueOperation::Get => "queue get",
        QueueOperation::SetMetadata(_) => "queue set metadata",
        QueueOperation::Put { .. } => "message put",
        QueueOperation::Receive { .. } => "message get",
        QueueOperation::Peek { .. } => "message peek",
        QueueOperation::Update { .. } => "message update",
        QueueOperation::DeleteMessage { .. } => "message delete",
        QueueOperation::Clear => "message clear",
    }
}
