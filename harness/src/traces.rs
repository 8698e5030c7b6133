//! Traces: traffic recorded in a format of our own (`docs/traces.md`), and the proxy that records.
//!
//! # Layout
//! - [`format`](mod@format): the lines of a file, their checksum; [`body`]: bodies, large ones as
//!   what makes them again.
//! - [`convert`]: a trace as the recording that [`crate::replay`] plays.
//! - [`scrub`]: what was seen on the wire without secrets, the account renamed.
//! - [`proxy`], [`tee`]: record between a client and a service; [`capture`]: records a target.
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
