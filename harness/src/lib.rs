//! The proof of smalt: recorded traffic, models, scenarios, simulation, crash tests, benchmark.
//!
//! # Layout
//! - [`replay`]: recorded traffic of the real service, sent to the emulator and compared.
//! - [`certificate`]: throw-away certificates and signatures for the production path.
//! - [`scenario`]: both workers among rivals, faults and crashes, judged by their history.

pub mod certificate;
pub mod replay;
pub mod scenario;
