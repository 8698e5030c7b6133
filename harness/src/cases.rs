//! Cases: one notation for every wire test, and one engine that runs it anywhere.
//!
//! A case is text (`fixtures/cases/**/*.case`): a few requests and the required answers, with the
//! document that requires them. The same case runs in process, against a server over a socket,
//! against Azurite and against an account. `harness conform` runs the conformance suite
//! (`fixtures/cases/conform`), `harness malformed` the malformed requests
//! (`fixtures/cases/malformed`), and `cargo test` runs all of them, including those of the emulator
//! (`fixtures/cases/emulator`).
//!
//! # Layout
//! - [`file`](mod@file), `block`, `step`: the notation; [`case`]: a parsed case; [`expect`]:
//!   one expectation and its check; [`place`]: the location of a value in an answer;
//!   [`values`]: the values in braces.
//! - [`auth`]: how a request to any [`crate::target`] is authorized; [`raw`] and `verbatim`:
//!   requests that no client library sends.
//! - [`play`]: one case against one target; [`checks`]: the results; [`suite`]: all cases,
//!   with clean-up.
//! - [`faults`]: every operation with every kind of fault; [`traces`]: recorded traces as
//!   cases; [`ledger`]: known deviations.
//! - [`report`]: JSON, Markdown and an HTML page. [`options`], [`command`]: `harness
//!   conform`; [`malformed`]: `harness malformed`; `commit`: the commit that the harness was
//!   built from.

pub mod auth;
mod block;
pub mod case;
pub mod checks;
pub mod command;
mod commit;
pub mod expect;
pub mod faults;
pub mod file;
pub mod ledger;
pub mod malformed;
pub mod options;
pub mod place;
pub mod play;
pub mod raw;
pub mod report;
mod step;
pub mod suite;
pub mod traces;
pub mod values;
mod verbatim;

pub use command::run_command;
pub use options::Options;
