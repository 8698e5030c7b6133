//! Bursts: a few concurrent clients on the same blob, container and queue.
//!
//! A sequential prelude creates the state. Then every client sends its operations in sequence,
//! concurrently with the others, and ignores some of the answers. The burst is *linearizable* when
//! there is one order of all its operations that respects real time and in which the model gives
//! the same answer to each as the service did. `docs/concurrency.md` says which check applies to
//! what.
//!
//! # Layout
//! - [`plan`]: the parameters of a burst; [`program`]: the operations of its clients.
//! - [`schedule`]: picks the next step from a seed; [`burst`]: one burst on a schedule;
//!   [`threads`]: one on threads.
//! - [`known`]: what clients have seen, and so can name.
//! - [`judge`]: checks a history; [`linear`]: the search for an order; [`state`]: the model's
//!   state during the search; [`listing`]: the weaker rule for listings.
//! - [`shrink`], [`report`]: reduce, print and save a failing burst.
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
