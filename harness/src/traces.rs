//! Traces: traffic recorded in our own format (`docs/traces.md`), and the proxy that records it.
//!
//! # Layout
//! - [`format`](mod@format): the lines of a file and their checksum; [`body`]: bodies, with
//!   large ones as repeated patterns.
//! - [`convert`]: converts a trace to the recording that [`crate::replay`] plays.
//! - [`scrub`]: removes secrets from exchanges and renames the account.
//! - [`proxy`], [`tee`]: record between a client and a service; [`capture`]: records a
//!   target.
//! - [`history`](mod@history): a generated history as traces.
//! - [`options`]: the command `harness record`.

pub mod body;
pub mod capture;
pub mod convert;
pub mod format;
pub mod history;
pub mod options;
pub mod proxy;
pub mod scrub;
pub mod tee;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod mutations;

pub use options::{Options, run_command};
