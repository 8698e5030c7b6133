//! Long runs: too long to search for an order of their calls, so every message is accounted for.
//!
//! Clients put, get, update and delete messages of one queue while time passes. At the end
//! everything that is left is fetched, and the account is made, in time linear in the length of the
//! history.
//!
//! # Layout
//! - [`events`]: the calls, as lines of JSON; [`account`]: the checks.
//! - [`worker`]: one client; [`memory`]: all clients on one thread, in an order that the seed
//!   determines, on a simulated clock; [`loopback`]: each on its own connection.
//! - [`options`]: the command `harness check soak`.

pub mod account;
pub mod events;
pub mod loopback;
pub mod memory;
pub mod options;
pub mod worker;

pub use options::{Options, run_command};
