//! Operations on blobs, and their shared code.
//!
//! - Requests: [`headers`] parses headers that describe a blob, [`guard`] checks leases and
//!   conditions, [`creation`] checks who may create a blob.
//! - Bytes: [`upload`] receives them in a body, [`source`] reads them from another blob or URL;
//!   [`content`] stores them; [`uncommitted`] stores blocks that no list has committed.
//! - State: [`replace`] replaces base blobs, [`retention`] decides what is kept of the old one,
//!   [`tag_index`] tracks tags, [`pending`] handles copies that take time.
//! - Responses: [`properties`] describes a blob, [`written`] the received bytes.

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
pub mod removal;
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
