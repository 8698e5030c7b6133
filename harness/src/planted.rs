//! Proof that the checks work: every planted bug switched on in turn, and caught.
//!
//! One bug at a time, each in a process of its own that the environment names it to, its checks are
//! run until one fails. A bug that nothing catches, an alarm without a bug, and a canary that is
//! not heard are failures. `docs/planted.md` has the table, and how to add a bug.
//!
//! # Layout
//! - [`options`]: the command `harness planted`; [`run`]: processes, two at a time.
//! - [`detect`]: one check in this process, until it fails;
//! - [`small`]: a failing history made small;
//!   [`suite`]: the store's own tests.
//! - [`report`]: what came out.

pub mod detect;
pub mod options;
pub mod report;
pub mod run;
pub mod small;
pub mod suite;

pub use options::{Options, run_command};
