//! Containers, their listings, leases and the service's properties, asked as a client asks.

mod client;
mod data_lake;
mod lifecycle;
mod restoring;
#[path = "../support/mod.rs"]
mod support;
