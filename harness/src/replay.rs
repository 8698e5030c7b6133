//! Replays recorded traffic of the real service against the emulator and compares the answers.
//!
//! # Layout
//! - [`corpus`], [`recording`]: the recordings.
//! - [`reruns`], [`sources`], [`dropped`], [`settings`], [`hosts`], [`bindings`], [`credentials`],
//!   [`delegation`], [`prepare`]: the live request for a recorded one.
//! - [`chosen`]: the target that the command line names, which may be a [`mirror`], whose requests
//!   [`verify`] checks; [`restarted`]: Azurite; [`player`]: one recording, from start to end.
//! - [`pace`], [`timeline`], [`dates`]: its time, where the target's clock cannot be set.
//! - [`tree`], [`json`], [`multipart`], [`avro`], [`superset`], [`rules`], [`value`], [`compare`]:
//!   the live answer against the recorded one. [`rules`] is the table of all relaxations.
//! - [`report`], [`text`]: the results; [`accepted`]: known ones. [`options`]: the command line.

pub mod accepted;
pub mod avro;
pub mod bindings;
pub mod chosen;
pub mod compare;
pub mod corpus;
pub mod creation;
pub mod credentials;
pub mod dates;
pub mod delegation;
pub mod dropped;
pub mod earlier;
pub mod hosts;
pub mod json;
pub mod mirror;
pub mod multipart;
pub mod options;
pub mod pace;
pub mod player;
pub mod prepare;
pub mod properties;
pub mod recording;
pub mod report;
pub mod reruns;
pub mod restarted;
pub mod rules;
pub mod settings;
pub mod sources;
pub mod superset;
pub mod text;
pub mod timeline;
pub mod tree;
pub mod value;
pub mod verify;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use options::{Options, run_command};
