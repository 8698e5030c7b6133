//! Tests the sweeper against a model of the service: each defect of the original design, and
//! crashes at every call.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails, in its helpers, too"
)]

mod budget;
mod compat;
mod defects;
mod deputy;
mod fake;
mod life;
mod moves;
mod operator;
mod planned;
mod properties;
mod scope;
mod seed;
mod support;
mod undo;
mod watched;
