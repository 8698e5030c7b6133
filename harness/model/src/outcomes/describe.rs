//! Maps an operation to its cell: its name and condition header.

use smalt_protocol::Service;

use super::{Header, lake};
use crate::vocabulary::tables::{Action, Match, TableOperation};
use crate::vocabulary::{
    AccessOperation, AccountOperation, BlobOperation, Condition, ContainerOperation, LeaseAction,
    NewBlob, Operation, Position, Property, QueueOperation, Sequence,
};

/// Returns name and condition header of an operation.
pub fn describe(operation: &Operation) -> (&'static str, Header) {
    match operation {
        Operation::Container(_, operation) => describe_container(operation),
        Operation::Blob(_, operation) => of_blob(operation),
        Operation::Path(_, operation) => (lake::of_path(operation), Header::NONE),
        Operation::Queue(_, operation) => (describe_queue(operation), Header::NONE),
        Operation::Table(_, operation) => of_table(operation),
        Operation::Account(operation) => (of_account(operation), Header::NONE),
        Operation::Access(service, _, operation) => (of_access(*service, operation), Header::NONE),
        Operation::Malformed(which) => (which.operation(), Header::NONE),
        Operation::Advance { .. } => ("advance", Header::NONE),
        Operation::Restart => ("restart", Header::NONE),
    }
}

fn condition(of: Option<Condition>) -> Header {
    Header(match of {
        None => 0,
        Some(Condition::IfMatch(Some(_))) => 1,
        Some(Condition::IfMatch(None)) => 2,
        Some(Condition::IfNoneMatch(Some(_))) => 3,
        Some(Condition::IfNoneMatch(None)) => 4,
        Some(Condition::IfModifiedSince(_)) => 5,
        Some(Condition::IfUnmodifiedSince(_)) => 6,
        Some(Condition::IfTags(..)) => 7,
    })
}

/// Returns the condition header of the destination or, without one, of the source.
fn copy(destination: Option<Condition>, source: Option<Condition>) -> Header {
    match (destination, source) {
        (None, Some(Condition::IfMatch(Some(_)))) => Header(8),
        (None, Some(Condition::IfMatch(None))) => Header(9),
        (None, Some(Condition::IfNoneMatch(_))) => Header(10),
        (None, Some(Condition::IfModifiedSince(_))) => Header(11),
        (None, Some(Condition::IfUnmodifiedSince(_))) => Header(12),
        _ => condition(destination),
    }
}

fn position(of: Option<Condition>, position: Option<Position>) -> Header {
    match (of, position) {
        (None, Some(Position::At(_))) => Header(13),
        (None, Some(Position::Most(_))) => Header(14),
        _ => condition(of),
    }
}

fn sequence(of: Option<Condition>, sequence: Option<Sequence>) -> Header {
    match (of, sequence) {
        (None, Some(Sequence::Most(_))) => Header(15),
        (None, Some(Sequence::Below(_))) => Header(16),
        (None, Some(Sequence::Is(_))) => Header(17),
        _ => condition(of),
    }
}

fn of_table(operation: &TableOperation) -> (&'static str, Header) {
    let (name, given) = match operation {
        TableOperation::Create => ("table create", None),
        TableOperation::Delete => ("table delete", None),
        TableOperation::Change(change) => match &change.action {
            Action::Insert(_) => ("entity insert", None),
            Action::Replace(_, None) => ("entity insert or replace", None),
            Action::Replace(_, given) => ("entity update", *given),
            Action::Merge(_, None) => ("entity insert or merge", None),
            Action::Merge(_, given) => ("entity merge", *given),
            Action::Delete(given) => ("entity delete", Some(*given)),
        },
        TableOperation::Batch(_) => ("entity group transaction", None),
        TableOperation::Get(..) => ("entity get", None),
        TableOperation::Query { .. } => ("entity query", None),
        TableOperation::Page { .. } => ("entity query one page", None),
        TableOperation::Malformed(which) => (which.operation(), None),
    };
    let header = match given {
        None => Header::NONE,
        Some(Match::Tag(_)) => Header(1),
        Some(Match::Any) => Header(2),
    };
    (name, header)
}

fn of_account(operation: &AccountOperation) -> &'static str {
    match operation {
        AccountOperation::Containers(_) => "account list containers",
        AccountOperation::Queues(_) => "account list queues",
        AccountOperation::Retain(_) => "account set retention",
        AccountOperation::Find { .. } => "account find blobs",
    }
}

fn of_access(service: Service, operation: &AccessOperation) -> &'static str {
    match (service, operation) {
        (Service::Blob, AccessOperation::Set(_)) => "container set policy",
        (Service::Blob, AccessOperation::Read { .. }) => "container signed list",
        (Service::Queue, AccessOperation::Set(_)) => "queue set policy",
        (Service::Queue, AccessOperation::Read { .. }) => "queue signed peek",
        (Service::Table, AccessOperation::Set(_)) => "table set policy",
        (Service::Table, AccessOperation::Read { .. }) => "table signed query",
    }
}

/// Returns name and condition header of a container operation.
pub fn describe_container(operation: &ContainerOperation) -> (&'static str, Header) {
    match operation {
        ContainerOperation::Create(_) => ("container create", Header::NONE),
        ContainerOperation::Delete(guard) => ("container delete", condition(guard.condition)),
        ContainerOperation::Get { .. } => ("container get", Header::NONE),
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
        ContainerOperation::List { .. } => ("container list", Header::NONE),
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

fn of_blob(operation: &BlobOperation) -> (&'static str, Header) {
    use BlobOperation as On;
    match operation {
        On::Put(.., guard) => ("blob put", condition(guard.condition)),
        On::Create(NewBlob::Append, _, guard) => ("blob put append", condition(guard.condition)),
        On::Create(NewBlob::Pages { .. }, _, guard) => {
            ("blob put pages", condition(guard.condition))
        }
        On::Get { guard, .. } => ("blob get", condition(guard.condition)),
        On::Head { guard, .. } => ("blob head", condition(guard.condition)),
        On::SetMetadata(_, guard) => ("blob set metadata", condition(guard.condition)),
        On::SetProperties(Property::Content(_), guard) => {
            ("blob set properties", condition(guard.condition))
        }
        On::SetProperties(Property::Pages(_), guard) => ("blob resize", condition(guard.condition)),
        On::SetProperties(_, guard) => ("blob set number", condition(guard.condition)),
        On::Delete { guard, .. } => ("blob delete", condition(guard.condition)),
        On::Undelete => ("blob undelete", Header::NONE),
        On::SetTier(..) => ("blob set tier", Header::NONE),
        On::Snapshot(_, guard) => ("blob snapshot", condition(guard.condition)),
        On::Lease(action, given) => {
            let names = [
                "blob lease acquire",
                "blob lease renew",
                "blob lease change",
                "blob lease release",
                "blob lease break",
            ];
            (names[place(action)], condition(*given))
        }
        On::PutBlock(..) => ("blob put block", Header::NONE),
        On::PutBlockList(.., guard) => ("blob put block list", condition(guard.condition)),
        On::GetBlockList { .. } => ("blob get block list", Header::NONE),
        On::Copy {
            guard,
            source_condition,
            ..
        } => ("blob copy", copy(guard.condition, *source_condition)),
        On::FromUrl {
            sync,
            guard,
            source_condition,
            ..
        } => {
            let name = ["blob put from url", "blob copy from url"][usize::from(*sync)];
            (name, copy(guard.condition, *source_condition))
        }
        On::SetTags(..) => ("blob set tags", Header::NONE),
        On::GetTags(_) => ("blob get tags", Header::NONE),
        On::Append(_, given, guard) => ("blob append", position(guard.condition, *given)),
        On::Seal(given, guard) => ("blob seal", position(guard.condition, *given)),
        On::WritePages {
            fill,
            sequence: given,
            guard,
            ..
        } => {
            let name = if fill.is_some() {
                "blob put pages data"
            } else {
                "blob clear pages"
            };
            (name, sequence(guard.condition, *given))
        }
        On::GetPages { guard, .. } => ("blob get page ranges", condition(guard.condition)),
    }
}

/// Returns the name of a queue operation.
pub fn describe_queue(operation: &QueueOperation) -> &'static str {
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
