//! Listener processes that are killed at random, and an account of every message.
//!
//! Messages are put into one queue of a real service, over sockets. Several processes of the binary
//! `smalt-listener` process them; each posts its messages to this process, which records them and
//! accepts or rejects each. Now and then one of the listeners is killed (`kill -9`) in the middle
//! of its work and started again. At the end the account is made: no message may be lost, and every
//! message that the handler never accepts must be in the poison queue. A message may be handled
//! twice; that is counted.
//!
//! # Layout
//! - [`account`]: the checks, without IO; [`wrongs`]: findings. [`ledger`]: the record of a run.
//! - [`handler`]: the HTTP handler of the messages. [`herd`]: the processes and their kills.
//! - [`place`]: the service. [`run`]: one run. [`options`]: the command line.
//! - [`sweep`]: the same for sweepers, with an account of every blob.

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
