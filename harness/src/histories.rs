//! Random histories of one client, judged by the model.
//!
//! The model (`smalt-model`) says what every operation has to answer; the generator chooses
//! operations that the state at hand makes interesting; the emulator answers. A history that fails
//! is shrunk to a handful of steps and printed as the requests that were sent.
//!
//! # Layout
//! - [`generate`]: the next operation, out of random bytes.
//! - [`machine`]: the two kinds of history, in memory and with restarts.
//! - [`render`]: an operation as requests. [`names`]: its opaque values as texts.
//! - [`check`]: an answer against what is expected; [`documents`] reads its body.
//! - [`server`]: the emulator under test, with its clock.
//! - [`curl`]: requests as commands for a shell.
//! - [`run`]: one history; [`invariants`]: what has to hold after each of its steps.
//! - [`campaign`]: many of them; [`coverage`]: what they have reached.
//! - [`shrink`], [`failure`]: one that fails, as small as it can be, told and kept.
//! - [`regressions`]: those that failed once.
//! - [`options`]: the command `harness check histories`.

pub mod campaign;
pub mod check;
pub mod coverage;
pub mod curl;
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
