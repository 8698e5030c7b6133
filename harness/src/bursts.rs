//! Bursts: a few clients at once on the same blob, container and queue, in one moment.
//!
//! A sequential prelude makes the state. Then every client sends its operations one after the
//! other, side by side with the others, some of them without ever seeing the answer. The burst is
//! *linearizable* when there is one order of all its operations that keeps to real time and in
//! which the model answers every one of them as the service did.
//!
//! # Layout
//! - [`linear`]: the search for such an order.
//! - [`burst`]: one burst against an emulator.
//! - [`options`]: the command `harness bursts`.

pub mod burst;
pub mod linear;
pub mod options;

pub use options::{Options, run_command};
