//! The whole state as one thing: snapshots, export and import, seeds, data of Azurite.

mod archive;
mod azurite;
mod seeds;
mod snapshots;
#[path = "../support/mod.rs"]
mod support;
mod world;
