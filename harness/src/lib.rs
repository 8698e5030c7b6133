//! The proof of smalt: recorded traffic, models, scenarios, simulation, crash tests, benchmark.
//!
//! # Layout
//! - [`replay`]: replays recorded traffic of the real service against the emulator and
//!   compares.
//! - [`cases`]: one notation for wire tests, run in process, over sockets, against Azurite
//!   and against an account.
//! - [`crash`]: kills the service (`kill -9`) at work and verifies that everything
//!   acknowledged is still there.
//! - [`bench`](mod@bench): measures smalt against a bare hyper server and Azurite.
//! - [`wire`]: requests, answers, and the ways to send them; [`target`]: the services that
//!   checks run against, in process or over sockets; [`servers`]: servers as child processes.
//! - [`drivers`]: `harness check`: drivers run cases generated from seeds; [`check`]: code
//!   they share.
//! - [`certificate`]: throw-away certificates and signatures for the production path.
//! - [`bursts`]: concurrent clients, checked by a search for an order that the model accepts.
//! - [`histories`]: random histories of one client, checked by the model.
//! - [`facts`]: what the real service answers with, as a table without recorded values.
//! - [`fleet`]: worker processes that are killed, with an account of every message or blob.
//! - [`soak`]: long runs that account for every message.
//! - [`diff`]: sends the same requests to two services, with a ledger of their differences.
//! - [`traces`]: traffic in our own format, recorded by a proxy in front of any service.
//! - [`testing`]: support for tests of your own code: an in-process account, faults,
//!   assertions.
//! - [`planted`]: deliberate bugs in smalt, and the checks that catch them.
//! - [`scenario`]: both workers among rivals, faults and crashes, checked against their
//!   history.
//! - [`interrupt`]: waiting for Ctrl-C and SIGTERM.

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
pub mod facts;
pub mod fleet;
pub mod fuzz;
pub mod histories;
pub mod interrupt;
pub mod planted;
pub mod replay;
pub mod scenario;
pub mod servers;
pub mod soak;
pub mod target;
pub mod testing;
pub mod traces;
pub mod wire;
