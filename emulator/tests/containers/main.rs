//! Containers, their listings, leases and the service's properties, asked as a client asks.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod client;
mod leases;
mod lifecycle;
mod listing;
mod service;
