//! Scenarios of the two workers: random worlds with rivals, faults and crashes, checked by their
//! history.
//!
//! A seed determines a plan. It runs in process, on tokio's paused clock against an emulator in
//! memory or on sled, and always yields the same history. It also runs over sockets against any
//! service.
//!
//! # Layout
//! - [`wire`]: carries the requests of an [`actor`], records what truly happened, and applies the
//!   planned faults; [`history`]: the record. [`world`]: service, accounts, time.
//! - [`faults`]: what can go wrong, and at which request; [`account`]: what became of it;
//!   [`marks`]: what a campaign must have seen.
//! - [`sweep`], [`listen`]: plan, run and checks of each worker. The checks use the history alone.
//! - [`campaign`]: many seeds, and shrinking of failing plans. [`sockets`]: reduced plans
//!   against any service. [`seed`]: data for the binaries; [`options`]: the command line.

pub mod account;
pub mod actor;
mod answers;
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
