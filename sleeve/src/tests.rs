//! Tests of the port against a scripted service: requests, responses and retries.

mod asides;
mod blobs;
mod conditions;
mod credentials;
#[cfg(feature = "entra")]
mod entra;
mod names;
mod queues;
mod retries;
mod service;
mod sleeves;
mod sockets;
