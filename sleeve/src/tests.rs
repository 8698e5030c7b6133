//! The port against a scripted service: what is sent, how answers are read, when it is sent again.

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
mod sockets;
