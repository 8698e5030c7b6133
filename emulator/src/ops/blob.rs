//! Operations on blobs, and what they share.
//!
//! - Requests: [`headers`] reads what describes a blob, [`guard`] judges leases and conditions,
//!   [`creation`] who may make a blob under a name.
//! - Bytes: [`upload`] takes them from a body, [`source`] from another blob or URL; [`content`]
//!   holds them; [`uncommitted`] keeps blocks that no list has committed.
//! - State: [`replace`] puts a base blob in place of another, [`retention`] decides what stays of
//!   the old one, [`tag_index`] follows its tags, [`pending`] settles a copy that takes its time.
//! - Answers: [`properties`] describes a blob, [`written`] the bytes that were taken.

pub mod abort_copy;
pub mod append;
pub mod block_id;
pub mod content;
pub mod copied;
pub mod copy;
pub mod copy_from_url;
pub mod creation;
pub mod delete;
pub mod expiry;
pub mod from_url;
pub mod get;
pub mod get_block_list;
pub mod get_properties;
pub mod guard;
pub mod headers;
pub mod immutability;
pub mod last_access;
pub mod lease;
pub mod legal_hold;
pub mod metadata;
pub mod new_block;
pub mod overrides;
pub mod page;
pub mod pending;
pub mod properties;
pub mod put;
pub mod put_block;
pub mod put_block_from_url;
pub mod put_block_list;
pub mod put_from_url;
pub mod query;
pub mod replace;
pub mod retention;
pub mod set_properties;
pub mod snapshot;
pub mod source;
pub mod tag_index;
pub mod tags;
#[cfg(test)]
pub(crate) mod testing;
pub mod tier;
pub mod uncommitted;
pub mod undelete;
pub mod upload;
pub mod written;
