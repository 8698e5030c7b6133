//! Listener processes that die at any moment, and an account of every message.
//!
//! Messages are put into one queue of a real service, over sockets. Several processes of the binary
//! `smalt-listener` work them off; each posts its messages to this process, which notes what it was
//! given and says what comes of it. Now and then one of them is killed (`kill -9`) in the middle of
//! its work and started anew. At the end the account is made: nothing may be lost, and every
//! message that no handler takes stands in the poison queue. That a message is handled twice is
//! allowed, and counted.
//!
//! # Layout
//! - [`account`]: the judge, without IO; [`wrongs`]: what it found. [`ledger`]: what is noted while
//!   it runs.
//! - [`handler`]: where the messages are posted to. [`herd`]: the processes and their deaths.
//! - [`place`]: the service that is asked. [`run`]: one run. [`options`]: the command line.
//! - [`sweep`]: the same of sweepers, and an account of every blob.

pub mod account;
pub mod handler;
pub mod herd;
pub mod ledger;
pub mod options;
pub mod place;
pub mod run;
pub mod sweep;
pub mod wrongs;

pub use options::{Options, run_command};
