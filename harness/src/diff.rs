//! Two services asked the same, their answers compared as a replay compares them, and a ledger that
//! explains every difference between smalt and Azurite (`docs/traces.md`).
//!
//! # Layout
//! - [`scripts`]: what is asked: generated histories, traces.
//! - [`side`]: what is asked: the emulator in process, a binary, Azurite, an address, a recording.
//! - [`shift`]: what one side answered, at another time.
//! - [`finding`]: one difference; [`run`]: all of them.
//! - [`ledger`]: the differences that are explained; [`triage`]: findings against it;
//!   [`document`]: it in words.
//! - [`options`]: the command `harness diff`.

pub mod document;
pub mod finding;
pub mod ledger;
pub mod options;
pub mod run;
pub mod scripts;
pub mod shift;
pub mod side;
pub mod triage;

#[cfg(test)]
mod tests;

pub use options::{Options, run_command};
