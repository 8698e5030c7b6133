//! The listener's rules: functions of their arguments, without I/O, clock or randomness.

pub mod backoff;
pub mod bucket;
pub mod budget;
pub mod cost;
pub mod dispatch;
pub mod done;
pub mod envelope;
pub mod instances;
pub mod load;
pub mod renewal;
pub mod requeue;
pub mod retry_curve;
pub mod scaling;
pub mod sentinel;
pub mod trigger;
