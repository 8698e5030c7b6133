//! The proof of smalt: recorded traffic, models, scenarios, simulation, crash tests, benchmark.
//!
//! # Layout
//! - [`replay`]: recorded traffic of the real service, sent to the emulator and compared.

pub mod replay;
