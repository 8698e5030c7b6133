//! Sends the same requests to two services and compares the answers as a replay does, with a ledger
//! that explains every difference between smalt and Azurite (`docs/traces.md`).
//!
//! # Layout
//! - [`scripts`]: the requests: generated histories, traces.
//! - [`side`]: the services: the emulator in process, a binary, Azurite, an address, a
//!   recording.
//! - [`shift`]: moves a recording in time.
//! - [`finding`]: one difference; [`run`]: all differences of a script.
//! - [`ledger`]: explained differences; [`triage`]: matches findings with them; [`document`]:
//!   renders them.
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
