//! Azure Blob, Queue and Table Storage, in process or as one binary.
//!
//! [`Emulator::call`] takes an HTTP request and returns the response that Azure would give. There
//! is no socket, no timer and no ambient time: a [`Clock`] says what time it is, a seed says which
//! ids are drawn, and state is in memory or in a directory. The binary `smalt` puts servers around
//! the same type.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use smalt::{Clock, Emulator, Timestamp, body};
//!
//! let clock = Clock::manual(Timestamp::from_unix_s(1_800_000_000));
//! let emulator = Emulator::builder().clock(clock).seed(1).open()?;
//! let request = http::Request::get("http://127.0.0.1:10001/devstoreaccount1?comp=list")
//!     .body(body::empty())?;
//! // The clock is the answer's date, too.
//! let response = emulator.call(request).await?;
//! assert_eq!(response.headers()["date"], "Fri, 15 Jan 2027 08:00:00 GMT");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Features
//! - `server` (default): loopback servers, TLS, the control endpoint, a client for copy sources,
//!   the binary.
//! - `sdk`: `Emulator::sdk_transport`, the HTTP client for Microsoft's Rust SDK.
//!
//! # Layout
//! - [`emulator`]: the library's face, [`Emulator`]. [`config`]: accounts and their settings.
//! - `pipeline`: one request's life. `arrival` and `target` are the way in, `register` names the
//!   operations, `auth` decides who may, `stage` streams bodies in, `reply` is the way out.
//! - `ops`: one file per operation; `rules`: the pure rules that they share; `records` and `keys`:
//!   what the store keeps; `reap`: how it goes. `query`: SQL over the bytes of a blob.
//! - `lane`: where work runs whose length a client chooses.
//! - `state`: the whole state as one thing: snapshots, export and import, seeds, data of Azurite.
//! - [`store`]: the map, its one committer, and extents for large payloads.
//! - [`clock`], [`ids`]: time and randomness, injected everywhere; [`fetch`]: copy sources that are
//!   elsewhere; [`faults`]: what goes wrong on request;
//!   [`observe`]: exchanges as the service sees them.
//!
//! # Errors
//! What Azure refuses is a response, not an error: status, code and message as Azure gives them.
//! [`Emulator::call`] itself fails only with [`ConnectionLost`], where a fault rule asked for it.
//! [`Builder::open`] says why a store cannot be opened.

#![expect(
    unreachable_pub,
    reason = "in a layer that the library keeps to itself, `pub` marks what the next layer may use"
)]

pub mod auth;
pub mod body;
#[cfg(feature = "server")]
pub mod certificate;
pub mod check;
#[cfg(feature = "server")]
pub mod cli;
pub mod clock;
pub mod config;
#[cfg(feature = "server")]
pub mod control;
pub mod disk;
pub mod emulator;
pub mod faults;
pub mod fetch;
#[cfg(feature = "server")]
pub mod http;
pub mod ids;
#[cfg(feature = "server")]
pub mod log;
pub mod observe;
pub mod register;
pub mod salvage;
#[cfg(feature = "sdk")]
pub mod sdk;
#[cfg(feature = "server")]
pub mod server;
pub mod store;

pub mod header_case;

mod arrival;
mod audit;
mod call;
mod core;
mod cors;
mod data_lake;
mod keys;
mod lane;
mod metrics;
mod operation;
mod ops;
mod owner;
mod pipeline;
mod query;
mod reap;
mod records;
mod reply;
mod rules;
mod service_properties;
mod stage;
mod state;
mod target;

pub use arrival::Socket;
#[doc(hidden)]
pub use audit::Audit;
pub use body::Body;
pub use clock::Clock;
pub use config::{Account, AccountSettings, Config, DefaultTier, OAuth, Sku};
pub use emulator::{Builder, Emulator};
pub use faults::ConnectionLost;
pub use observe::Exchange;
pub use smalt_protocol::{Service, Timestamp};
pub use state::archive::{ArchiveError, Imported};
pub use state::azurite::{AzuriteError, Report as AzuriteReport};
pub use state::seed::{Place, SeedError, Seeded};
pub use state::snapshots::SavedState;
pub use store::SnapshotError;
