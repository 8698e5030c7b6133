//! Azure Blob, Queue and Table Storage, in process or as one binary.
//!
//! [`Emulator::call`] takes an HTTP request and returns the response that Azure would give. It
//! needs no socket, no timer and no ambient time: a [`Clock`] provides the time, a seed determines
//! the ids, and the state is in memory or in a directory. The `smalt` binary runs servers on the
//! same type.
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
//! - [`emulator`]: the entry point, [`Emulator`]. [`config`]: accounts and their settings.
//! - `pipeline`: the stages of a request. `arrival` and `target` parse it, `register` lists the
//!   operations, `auth` authorises, `stage` reads bodies, `reply` builds the response.
//! - `ops`: one file per operation; `rules`: the pure rules that they share; `records` and `keys`:
//!   stored records and their keys; `reap`: background removal; `query`: SQL over a blob's bytes.
//! - `lane`: runs work whose length a client chooses.
//! - `state`: snapshots, export and import, seeds, and Azurite's data.
//! - [`store`]: the map, its one committer, and extents for large payloads.
//! - [`clock`], [`ids`]: time and randomness, injected everywhere; [`fetch`]: copy sources outside
//!   the emulator; [`faults`]: faults on request;
//!   [`observe`]: exchanges as the service sees them.
//!
//! # Errors
//! A refusal by Azure is a response, not an error: it has Azure's status, code and message.
//! [`Emulator::call`] fails only with [`ConnectionLost`], when a fault rule cuts the connection.
//! [`Builder::open`] returns an error when a store cannot be opened.

#![expect(
    unreachable_pub,
    reason = "in a private layer, `pub` marks the items that the next layer may use"
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
pub mod events;
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

mod analytics;
mod arrival;
mod audit;
mod call;
mod core;
mod cors;
mod data_lake;
mod keys;
mod lane;
mod masking;
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
mod website;

pub use arrival::Socket;
#[doc(hidden)]
pub use audit::Audit;
pub use body::Body;
pub use clock::Clock;
pub use config::{
    Account, AccountSettings, Config, DefaultTier, KeySet, KeySetError, OAuth, Role,
    RoleAssignment, Sku,
};
pub use emulator::{Builder, Emulator};
pub use events::SubscribeError;
pub use faults::ConnectionLost;
pub use observe::Exchange;
pub use rules::event_filter::{Advanced, Filter, Operator};
pub use rules::events::EventKind;
pub use rules::subscription::{DeadLetter, Destination, Schema, Subscription};
pub use smalt_protocol::{Service, Timestamp};
pub use state::archive::{ArchiveError, Imported};
pub use state::azurite::{AzuriteError, Report as AzuriteReport};
pub use state::seed::{Place, SeedError, Seeded};
pub use state::snapshots::SavedState;
pub use store::SnapshotError;
