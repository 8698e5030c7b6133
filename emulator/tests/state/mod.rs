//! The whole state: snapshots, export and import, seeds, Azurite's data.

mod archive;
mod azurite;
mod seeds;
mod snapshots;
mod world;
