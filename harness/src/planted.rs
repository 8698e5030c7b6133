//! Proof that the checks work: switches on every planted bug in turn, and expects a check to fail.
//!
//! Each bug runs in its own process, which gets the bug's name from the environment, and its checks
//! run until one fails. The run fails when a bug is not caught, when a check fails without a bug,
//! and when the canary, a check that always fails, does not. `docs/planted.md` has the table, and
//! explains how to add a bug.
//!
//! # Layout
//! - [`options`]: the command `harness planted`; [`run`]: processes, a few at a time.
//! - [`detect`]: one check in this process, until it fails; [`small`]: reduces a failing
//!   history; [`suite`]: the tests of packages.
//! - [`report`]: the results.

pub mod detect;
pub mod options;
pub mod report;
pub mod run;
pub mod small;
pub mod suite;

pub use options::{Options, run_command};
