//! Cases: one notation for every test of the wire, and one engine that runs it anywhere.
//!
//! A case is text (`fixtures/cases/**/*.case`): a few requests and what each answer must be, with
//! the document that says so. The same case runs in process, against a server over a socket,
//! against Azurite and against an account. `harness conform` runs the conformance suite
//! (`fixtures/cases/conform`), `harness malformed` the requests that no client should send
//! (`fixtures/cases/malformed`), and `cargo test` runs all of them, those of the emulator
//! (`fixtures/cases/emulator`) too.
//!
//! # Layout
//! - [`file`](mod@file), `block`, `step`: the notation; [`case`]: what a case is; [`expect`]: one
//!   expectation and its judgement; [`place`]: where in an answer a value stands; [`values`]: the
//!   texts in braces.
//! - [`auth`]: how a request is allowed, of any [`crate::target`]; [`raw`] and `verbatim`: requests
//!   that no client makes.
//! - [`play`]: one case against one target; [`checks`]: what came of it; [`suite`]: all of them,
//!   cleaned up behind.
//! - [`faults`]: every operation hit by every kind of fault; [`traces`]: recorded traces as
//!   cases; [`ledger`]: deviations that are known.
//! - [`report`]: JSON, Markdown and a page of HTML. [`options`], [`command`]: `harness conform`;
//!   [`malformed`]: `harness malformed`; `commit`: what the harness was made of.

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
