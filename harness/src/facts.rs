//! Facts about the real service, distilled from recordings: which headers, elements and members an
//! answer has, and the forms of their values. `fixtures/facts.tsv` holds them, without any recorded
//! value, so that a checkout without recordings tests the emulator against them.
//!
//! # Layout
//! - [`form`]: the form of one value; [`nodes`]: an answer as named values with forms.
//! - [`table`]: the facts, how they are distilled, written and read.
//! - [`judge`]: an answer against the facts, and the known disagreements.
//! - [`sources`]: the answers of the emulator that are judged.
//! - [`options`]: the command line.

pub mod form;
pub mod judge;
pub mod nodes;
pub mod options;
pub mod sources;
pub mod table;

#[cfg(test)]
mod tests;

pub use options::{Options, run_command};
