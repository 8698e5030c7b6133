//! The listener as a library against an in-memory queue, and as a command. A single test program,
//! because every test program is linked separately.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers, too"
)]

mod agent;
mod budget;
mod commands;
mod defects;
mod embedding;
mod failures;
mod fleet;
#[cfg(unix)]
mod handlers;
mod notify;
mod partitioned;
mod scale;
#[cfg(unix)]
mod signals;
#[path = "../../examples/fleet/simulation.rs"]
mod simulation;
#[path = "../support/mod.rs"]
mod support;
mod unable;
