//! The proof of smalt: recorded traffic, models, scenarios, simulation, crash tests, benchmark.
//!
//! # Layout
//! - [`replay`]: recorded traffic of the real service, sent to the emulator and compared.
//! - [`scenario`]: both workers among rivals, faults and crashes, judged by their history.

pub mod replay;
pub mod scenario;
