//! The proof of smalt: recorded traffic, models, scenarios, simulation, crash tests, benchmark.
//!
//! # Layout
//! - [`replay`]: recorded traffic of the real service, sent to the emulator and compared.
//! - [`crash`]: `kill -9` in the middle of work, and everything acknowledged still there.
//! - [`malformed`]: requests that no client should send, and the one right answer to each.
//! - [`bench`](mod@bench): how fast it is, beside bare hyper and Azurite.
//! - [`servers`]: servers as child processes, and connections to them.
//! - [`certificate`]: throw-away certificates and signatures for the production path.
//! - [`bursts`]: clients at once, judged by a search for an order that the model agrees to.
//! - [`histories`]: random histories of one client, judged by the model.
//! - [`soak`]: long runs, everything in them accounted for.
//! - [`traces`]: traffic recorded in a format of our own, by a proxy in front of any service.
//! - [`scenario`]: both workers among rivals, faults and crashes, judged by their history.

pub mod bench;
pub mod bursts;
pub mod certificate;
pub mod crash;
pub mod histories;
pub mod malformed;
pub mod replay;
pub mod scenario;
pub mod servers;
pub mod soak;
pub mod traces;
