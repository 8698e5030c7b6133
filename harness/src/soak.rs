//! Long runs: too long to look for an order of their calls, so everything is accounted for instead.
//!
//! Clients put, get, update and delete messages of one queue while time goes on. At the end all
//! that is left is fetched, and the account is made: linear in the length of the history.
//!
//! # Layout
//! - [`events`]: what happened, as lines of JSON; [`account`]: what must not have.
//! - [`worker`]: one client at work; [`memory`]: all of them on one thread, by seed, on a clock
//!   that is told; [`loopback`]: each on a connection of its own.
//! - [`options`]: the command `harness check soak`.

pub mod account;
pub mod events;
pub mod loopback;
pub mod memory;
pub mod options;
pub mod worker;

pub use options::{Options, run_command};
