//! Blobs, rule by rule, through a signing client.

mod batch;
mod blocks;
mod copies;
mod copy_sources;
mod expiry;
mod immutability;
mod large;
mod pending_copies;
mod query;
mod query_rooms;
mod soft_delete;
mod sources;
mod versions;
