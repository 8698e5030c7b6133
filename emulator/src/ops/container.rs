//! Operations on containers, and their shared code.
//!
//! - [`access`] and [`properties`] parse and render a container's properties, [`change`] changes
//!   them.
//! - [`deleted`] finds deleted containers that can be restored.
//! - [`list_blobs`] lists the blobs of a container.
//! - [`system`] has the containers that the service makes by itself.

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
pub mod system;
