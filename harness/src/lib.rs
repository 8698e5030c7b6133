//! The proof of smalt: recorded traffic, models, scenarios, simulation, crash tests, benchmark.
//!
//! # Layout
//! - [`replay`]: recorded traffic of the real service, sent to the emulator and compared.
//! - [`cases`]: one notation for tests of the wire, run in process, over sockets, against Azurite
//!   and against an account.
//! - [`crash`]: `kill -9` in the middle of work, and everything acknowledged still there.
//! - [`bench`](mod@bench): how fast it is, beside bare hyper and Azurite.
//! - [`wire`]: requests, answers, and the ways to send them; [`target`]: what is asked, be it in
//!   process or over sockets; [`servers`]: servers as child processes.
//! - [`drivers`]: `harness check`: drivers run cases out of seeds; [`check`]: what they share.
//! - [`certificate`]: throw-away certificates and signatures for the production path.
//! - [`bursts`]: clients at once, judged by a search for an order that the model agrees to.
//! - [`histories`]: random histories of one client, judged by the model.
//! - [`table_histories`]: the same of tables.
//! - [`fleet`]: listener processes that are killed, and an account of every message.
//! - [`soak`]: long runs, everything in them accounted for.
//! - [`diff`]: two services asked the same, and a ledger of how they differ.
//! - [`traces`]: traffic recorded in a format of our own, by a proxy in front of any service.
//! - [`testing`]: for tests of your own code: an account in the test, faults, assertions.
//! - [`planted`]: bugs put into smalt on purpose, and the checks that catch them.
//! - [`scenario`]: both workers among rivals, faults and crashes, judged by their history.
//! - [`interrupt`]: the end that somebody asks for.

#[cfg(test)]
mod arguments;
pub mod bench;
pub mod bursts;
pub mod cases;
pub mod certificate;
pub mod check;
pub mod crash;
pub mod diff;
pub mod drivers;
pub mod fleet;
pub mod fuzz;
pub mod histories;
pub mod interrupt;
pub mod planted;
pub mod replay;
pub mod scenario;
pub mod servers;
pub mod soak;
pub mod table_histories;
pub mod target;
pub mod testing;
pub mod traces;
pub mod wire;
