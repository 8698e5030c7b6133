//! Random histories of one client, checked by the model.
//!
//! The model (`smalt-model`) predicts the answer to every operation; the generator chooses
//! operations that are interesting in the current state; the emulator answers. A failing history is
//! reduced to a handful of steps and printed as the requests that were sent.
//!
//! # Layout
//! - [`generate`]: chooses the next operation, from random bytes.
//! - [`machine`]: the two kinds of history, in memory and with restarts.
//! - [`render`]: operations as requests. [`names`]: the values behind the model's numbers.
//! - [`check`]: compares an answer with the expected one; [`documents`] parses its body.
//! - [`server`]: the emulator under test, with its clock.
//! - [`run`]: one history; [`invariants`]: what must hold after each of its steps.
//! - [`campaign`]: many histories; [`coverage`]: what they have reached.
//! - [`shrink`], [`failure`]: reduce, print and save a failing history.
//! - [`regressions`]: histories that failed once.
//! - [`options`]: the command `harness check histories`.

pub mod campaign;
pub mod check;
pub mod coverage;
pub mod documents;
pub mod failure;
pub mod generate;
pub mod invariants;
pub mod machine;
pub mod names;
pub mod options;
pub mod regressions;
pub mod render;
pub mod run;
pub mod server;
pub mod shrink;

pub use options::{Options, run_command};
