//! The checks of the harness at the size of `cargo test`, and workers in the worlds of their
//! examples. One program, because each more is linked with everything.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod billing;
mod bursts;
mod channels;
mod conform;
mod crash;
mod fuzz;
mod gridwich;
mod histories;
mod partitions;
mod payloads;
mod replay;
mod scenarios;
mod soak;
mod tokens;
