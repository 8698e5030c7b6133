//! Operations of the Queue service.

use super::access::{Access, Anonymous};
use super::entry::{Entry, Verb, op};
use super::when::*;
use crate::ops::{queue, service};
use crate::pipeline::{read, write};
use crate::target::Kind;
use smalt_protocol::Service;

const QUEUE: Service = Service::Queue;

/// The first entry that matches method, resource and query and whose predicate holds is used.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    op(QUEUE, "Service_SetProperties", "Set Queue Service Properties", Verb::Put, Kind::Service, ("service", "properties"), always, Access::service("w"), write::<service::properties::SetServiceProperties>()),
    op(QUEUE, "Service_GetProperties", "Get Queue Service Properties", Verb::Get, Kind::Service, ("service", "properties"), always, Access::service("r"), read::<service::properties::GetServiceProperties>()),
    op(QUEUE, "Service_GetStatistics", "Get Queue Service Stats", Verb::Get, Kind::Service, ("service", "stats"), always, Access::service("r"), read::<service::stats::GetServiceStats>()),
    op(QUEUE, "Service_ListQueuesSegment", "List Queues", Verb::Get, Kind::Service, ("", "list"), always, Access::service("l"), read::<queue::list::ListQueues>()),
    op(QUEUE, "Service_GetUserDelegationKey", "Get User Delegation Key", Verb::Post, Kind::Service, ("service", "userdelegationkey"), always, Access::token(), read::<service::user_delegation_key::GetUserDelegationKey>()),
    op(QUEUE, "Queue_Create", "Create Queue", Verb::Put, Kind::Queue, ("", ""), always, Access::container("cw"), write::<queue::create::CreateQueue>()),
    op(QUEUE, "Queue_Delete", "Delete Queue", Verb::Delete, Kind::Queue, ("", ""), always, Access::container("d"), write::<queue::delete::DeleteQueue>()),
    op(QUEUE, "Queue_GetProperties", "Get Queue Metadata", Verb::GetOrHead, Kind::Queue, ("", "metadata"), always, Access::container("r").with_service_sas("r"), read::<queue::metadata::GetQueueMetadata>()),
    op(QUEUE, "Queue_SetMetadata", "Set Queue Metadata", Verb::Put, Kind::Queue, ("", "metadata"), always, Access::container("w"), write::<queue::metadata::SetQueueMetadata>()),
    op(QUEUE, "Queue_GetAccessPolicy", "Get Queue ACL", Verb::GetOrHead, Kind::Queue, ("", "acl"), always, Access::owner(), read::<queue::acl::GetQueueAcl>()),
    op(QUEUE, "Queue_SetAccessPolicy", "Set Queue ACL", Verb::Put, Kind::Queue, ("", "acl"), always, Access::owner(), write::<queue::acl::SetQueueAcl>()),
    op(QUEUE, "Messages_Peek", "Peek Messages", Verb::Get, Kind::Messages, ("", ""), peek, Access::object("r"), read::<queue::peek::PeekMessages>()),
    op(QUEUE, "Messages_Dequeue", "Get Messages", Verb::Get, Kind::Messages, ("", ""), always, Access::object("p"), write::<queue::get_messages::GetMessages>()),
    op(QUEUE, "Messages_Clear", "Clear Messages", Verb::Delete, Kind::Messages, ("", ""), always, Access::object("d").with_service_sas(""), write::<queue::clear::ClearMessages>()),
    op(QUEUE, "Messages_Enqueue", "Put Message", Verb::PostOrPut, Kind::Messages, ("", ""), post_or_raw, Access::object("a"), write::<queue::put_message::PutMessage>()),
    op(QUEUE, "MessageId_Update", "Update Message", Verb::Put, Kind::Message, ("", ""), updates, Access::object("u"), write::<queue::update_message::UpdateMessage>()),
    op(QUEUE, "MessageId_Delete", "Delete Message", Verb::Delete, Kind::Message, ("", ""), always, Access::object("p"), write::<queue::delete_message::DeleteMessage>()),
    op(QUEUE, "Preflight", "Preflight Queue Request", Verb::Options, Kind::Messages, ("", ""), always, Access::owner().public(Anonymous::Always), read::<service::preflight::Preflight>()),
];
