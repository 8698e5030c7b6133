//! The whole state as one thing: named snapshots, export and import, seeds, data of Azurite.
//!
//! Everything here makes another state beside the current one and then goes on with it
//! ([`Store::replace`](crate::store::Store::replace)): after a crash there is the one or the other.

pub mod about;
pub mod archive;
pub mod azurite;
pub mod seed;

pub mod snapshots;
pub mod start;
