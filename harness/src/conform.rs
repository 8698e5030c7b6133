//! Conformance: the same scenarios against any endpoint, and a page that shows what came of them.
//!
//! A scenario is data (`conform/scenarios/*.toml`): a few signed HTTP requests and what each answer
//! must be, with the document that says so. The suite is a library and the target a trait, so that
//! the same scenarios run in process, against a server over a socket, and against an account.
//!
//! # Layout
//! - [`scenario`]: what a scenario is, and its file; [`expect`]: one expectation and its judgement;
//!   [`place`]: where in an answer a value stands; [`values`]: the texts in braces.
//! - [`auth`]: how a request is allowed; what is tested is any [`crate::target`].
//! - [`play`]: one scenario against one target; [`checks`]: what came of it; [`suite`]: all of
//!   them, cleaned up behind.
//! - [`faults`]: every operation hit by every kind of fault; [`traces`]: recorded traces as
//!   scenarios; [`ledger`]: deviations that are known.
//! - [`report`]: JSON, Markdown and a page of HTML. [`options`], [`command`]: the command line;
//!   `commit`: what the harness was made of.

pub mod auth;
pub mod checks;
pub mod command;
mod commit;
pub mod expect;
pub mod faults;
pub mod ledger;
pub mod options;
pub mod place;
pub mod play;
pub mod report;
pub mod scenario;
pub mod suite;
pub mod traces;
pub mod values;

pub use command::run_command;
pub use options::Options;
