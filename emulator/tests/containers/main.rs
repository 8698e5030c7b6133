//! Containers, their listings, leases and the service's properties, asked as a client asks.

mod client;
mod data_lake;
mod leases;
mod lifecycle;
mod listing;
mod restoring;
mod service;
#[path = "../support/mod.rs"]
mod support;
