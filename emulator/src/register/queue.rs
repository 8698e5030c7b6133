//! Operations of the Queue service.

use super::access::{Access, Anonymous};
use super::when::*;
use super::{Entry, Run, Verb};
use crate::ops::{queue, service};
use crate::pipeline::{read, write};
use smalt_protocol::Service;

use crate::target::Kind;

/// One line of the table below: id, title, method, resource, query, predicate, access, run.
#[rustfmt::skip]
#[expect(clippy::too_many_arguments, reason = "a table's columns")]
const fn op(
    id: &'static str, title: &'static str, verb: Verb, on: Kind, query: (&'static str, &'static str),
    when: fn(&crate::call::Call) -> bool, access: Access, run: Run,
) -> Entry {
    let (restype, comp) = query;
    Entry { service: Service::Queue, id, title, verb, on, restype, comp, also_on: None, also_restype: None, when, access, run }
}

/// Where several lines share method, resource and query, the first whose predicate holds serves.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    op("Service_SetProperties", "Set Queue Service Properties", Verb::Put, Kind::Service, ("service", "properties"), always, Access::service("w"), write::<service::properties::SetServiceProperties>()),
    op("Service_GetProperties", "Get Queue Service Properties", Verb::Get, Kind::Service, ("service", "properties"), always, Access::service("r"), read::<service::properties::GetServiceProperties>()),
    op("Service_GetStatistics", "Get Queue Service Stats", Verb::Get, Kind::Service, ("service", "stats"), always, Access::service("r"), read::<service::stats::GetServiceStats>()),
    op("Service_ListQueuesSegment", "List Queues", Verb::Get, Kind::Service, ("", "list"), always, Access::service("l"), read::<queue::list::ListQueues>()),
    op("Service_GetUserDelegationKey", "Get User Delegation Key", Verb::Post, Kind::Service, ("service", "userdelegationkey"), always, Access::token(), read::<service::user_delegation_key::GetUserDelegationKey>()),
    op("Queue_Create", "Create Queue", Verb::Put, Kind::Queue, ("", ""), always, Access::container("cw"), write::<queue::create::CreateQueue>()),
    op("Queue_Delete", "Delete Queue", Verb::Delete, Kind::Queue, ("", ""), always, Access::container("d"), write::<queue::delete::DeleteQueue>()),
    op("Queue_GetProperties", "Get Queue Metadata", Verb::GetOrHead, Kind::Queue, ("", "metadata"), always, Access::container("r").with_service_sas("r"), read::<queue::metadata::GetQueueMetadata>()),
    op("Queue_SetMetadata", "Set Queue Metadata", Verb::Put, Kind::Queue, ("", "metadata"), always, Access::container("w"), write::<queue::metadata::SetQueueMetadata>()),
    op("Queue_GetAccessPolicy", "Get Queue ACL", Verb::GetOrHead, Kind::Queue, ("", "acl"), always, Access::owner(), read::<queue::acl::GetQueueAcl>()),
    op("Queue_SetAccessPolicy", "Set Queue ACL", Verb::Put, Kind::Queue, ("", "acl"), always, Access::owner(), write::<queue::acl::SetQueueAcl>()),
    op("Messages_Peek", "Peek Messages", Verb::Get, Kind::Messages, ("", ""), peek, Access::object("r"), read::<queue::peek::PeekMessages>()),
    op("Messages_Dequeue", "Get Messages", Verb::Get, Kind::Messages, ("", ""), always, Access::object("p"), write::<queue::get_messages::GetMessages>()),
    op("Messages_Clear", "Clear Messages", Verb::Delete, Kind::Messages, ("", ""), always, Access::object("d").with_service_sas(""), write::<queue::clear::ClearMessages>()),
    op("Messages_Enqueue", "Put Message", Verb::PostOrPut, Kind::Messages, ("", ""), post_or_raw, Access::object("a"), write::<queue::put_message::PutMessage>()),
    op("MessageId_Update", "Update Message", Verb::Put, Kind::Message, ("", ""), updates, Access::object("u"), write::<queue::update_message::UpdateMessage>()),
    op("MessageId_Delete", "Delete Message", Verb::Delete, Kind::Message, ("", ""), always, Access::object("p"), write::<queue::delete_message::DeleteMessage>()),
    op("Preflight", "Preflight Queue Request", Verb::Options, Kind::Messages, ("", ""), always, Access::owner().public(Anonymous::Always), read::<service::preflight::Preflight>()),
];
