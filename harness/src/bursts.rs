//! Bursts: a few clients at once on the same blob, container and queue, in one moment.
//!
//! A sequential prelude makes the state. Then every client sends its operations one after the
//! other, side by side with the others, some of them without ever seeing the answer. The burst is
//! *linearizable* when there is one order of all its operations that keeps to real time and in
//! which the model answers every one of them as the service did. `docs/concurrency.md` says
//! what is checked how.
//!
//! # Layout
//! - [`plan`]: what makes a burst; [`program`]: what its clients ask.
//! - [`schedule`]: who goes on next, by seed; [`burst`]: one burst so; [`threads`]: one on threads.
//! - [`known`]: what clients have seen, and so can name.
//! - [`judge`]: judges a history; [`linear`]: the search for an order; [`state`]: the model's
//!   state as the search has it; [`listing`]: the weaker rule for listings.
//! - [`shrink`], [`report`]: a failing burst made small, printed, saved.
//! - [`options`]: the command `harness check bursts`.

pub mod burst;
pub mod judge;
pub mod known;
pub mod linear;
pub mod listing;
pub mod options;
pub mod plan;
pub mod program;
pub mod report;
pub mod schedule;
pub mod shrink;
pub mod state;
pub mod threads;

pub use options::{Options, run_command};
