//! Azure Blob and Queue Storage, in process or as one binary.
//!
//! # Layout
//! - [`emulator`]: the library's face, [`Emulator`].
//! - `pipeline`: one request's life. `arrival` and `target` are the way in, `register` names the
//!   operations, `auth` decides who may, `stage` streams bodies in, `reply` is the way out.
//! - `ops`: one file per operation; `rules`: the pure rules that they share; `records` and `keys`:
//!   what the store keeps.
//! - [`store`]: the map, its one committer, and extents for large payloads.
//! - [`clock`], [`ids`]: time and randomness, injected everywhere.

pub mod auth;
pub mod body;
#[cfg(feature = "server")]
pub mod cli;
pub mod clock;
pub mod config;
#[cfg(feature = "server")]
pub mod control;
pub mod disk;
pub mod emulator;
pub mod faults;
#[cfg(feature = "server")]
pub mod http;
pub mod ids;
#[cfg(feature = "server")]
pub mod log;
pub mod register;
#[cfg(feature = "sdk")]
pub mod sdk;
#[cfg(feature = "server")]
pub mod server;
pub mod store;

pub mod header_case;

mod arrival;
mod call;
mod core;
mod cors;
mod keys;
mod metrics;
mod operation;
mod ops;
mod pipeline;
mod reap;
mod records;
mod reply;
mod rules;
mod service_properties;
mod stage;
mod target;

pub use arrival::Socket;
pub use body::Body;
pub use clock::Clock;
pub use config::{Account, Config, DefaultTier};
pub use emulator::{Builder, Emulator};
pub use pipeline::ConnectionLost;
pub use smalt_protocol::{Service, Timestamp};
