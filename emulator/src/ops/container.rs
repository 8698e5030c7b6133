//! Operations on containers, and what they share.
//!
//! - [`access`] and [`properties`] read and render what describes a container, [`change`] is how
//!   it changes.
//! - [`deleted`] finds containers that were deleted and can be restored.
//! - [`list_blobs`] lists what is in one.

pub mod access;
pub mod change;
pub mod create;
pub mod delete;
pub mod deleted;
pub mod get_access_policy;
pub mod get_metadata;
pub mod get_properties;
pub mod lease;
pub mod list_blobs;
pub mod properties;
pub mod rename;
pub mod restore;
pub mod set_access_policy;
pub mod set_metadata;
