//! Page blobs through a signing client: pages, lists, differences, sequence numbers, copies.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod copies;
mod disk;
mod lists;
#[path = "../support/mod.rs"]
mod support;
mod tiers;
mod writes;
