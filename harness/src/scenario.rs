//! The two workers at work: random worlds, rivals, faults, crashes; judged by their history.
//!
//! A plan comes from a seed, runs in process on tokio's paused clock against an emulator in memory
//! or on sled, and yields the same history twice. It also runs over sockets against any service.
//!
//! # Layout
//! - [`wire`]: carries the requests of an [`actor`], writes down what truly happened, and lets it
//!   go wrong as planned; [`history`]: what was written down. [`world`]: service, accounts, time.
//! - [`faults`]: what can go wrong, and at which request; [`account`]: what became of it;
//!   [`marks`]: what a campaign must have seen.
//! - [`sweep`], [`listen`]: plan, run and judge of each worker. The judges see the history alone.
//! - [`bent`]: mistakes on purpose that the judges must catch.
//! - [`campaign`]: many seeds; a failing plan made small. [`sockets`]: reduced plans against any
//!   service. [`seed`]: data for the binaries;
//!   [`options`]: the command line.

pub mod account;
pub mod actor;
mod answers;
pub mod bent;
pub mod campaign;
pub mod faults;
pub mod history;
pub mod listen;
pub mod marks;
pub mod options;
pub mod seed;
pub mod sockets;
pub mod sweep;
pub mod wire;
pub mod world;

pub use options::{Options, SeedOptions, put_seed, run_listen, run_sweep};
