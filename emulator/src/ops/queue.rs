//! Operations on queues and messages.

pub mod acl;
pub mod clear;
pub mod create;
pub mod delete;
pub mod delete_message;
pub mod get_messages;
pub mod id;
pub mod list;
pub mod messages;
pub mod metadata;
pub mod name;
pub mod parameters;
pub mod peek;
pub mod put_message;
pub mod receipt;
pub mod render;
pub mod update_message;
