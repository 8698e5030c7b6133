//! Blobs, rule by rule, through a signing client.

mod batch;
mod blocks;
mod copies;
mod expiry;
mod immutability;
mod large;
mod pending_copies;
mod query_rooms;
mod random;
mod soft_delete;
mod sources;
mod versions;
