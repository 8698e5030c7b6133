//! Operations on containers.

pub mod access;
pub mod create;
