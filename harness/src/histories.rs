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
//! - [`run`]: one history. [`coverage`]: what histories have reached.
//! - [`options`]: the command `harness histories`.

pub mod check;
pub mod coverage;
pub mod generate;
pub mod machine;
pub mod options;
pub mod render;
pub mod run;
pub mod server;

pub mod documents;
pub mod names;

pub use options::{Options, run_command};
