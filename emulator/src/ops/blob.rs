//! Operations on blobs, and what they share: [`content`] holds the bytes, [`replace`] puts a base
//! blob in place of another, [`headers`] reads and [`properties`] renders what describes a blob,
//! [`guard`] judges leases and conditions.

pub mod content;
pub mod delete;
pub mod get;
pub mod get_properties;
pub mod guard;
pub mod headers;
pub mod lease;
pub mod metadata;
pub mod overrides;
pub mod properties;
pub mod put;
pub mod replace;
pub mod set_properties;
