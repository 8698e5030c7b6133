//! Recordings of other tools as traces: vcrpy, the test proxy of the Azure SDKs, HAR 1.2, nock
//! (`docs/traces.md`).
//!
//! # Layout
//! - [`node`]: a document, JSON or YAML, with the place of each value.
//! - [`vcr`], [`proxy`], [`har`], [`nock`]: what each format calls a request and an answer.
//! - [`raw`]: an exchange as a recorder kept it; [`build`]: exchanges as traces, with a note of
//!   what they lack. Secrets and accounts are scrubbed by [`crate::traces::scrub`].
//! - [`options`]: the command `harness import`.

pub mod build;
pub mod har;
pub mod nock;
pub mod node;
pub mod options;
pub mod proxy;
pub mod raw;
pub mod vcr;

#[cfg(test)]
mod tests;

pub use options::{Options, run_command};
