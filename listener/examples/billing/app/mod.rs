//! The parts of the billing example, without its command line, so that a test can run them in
//! process.
//!
//! - [`batch`]: transactions, chunks and sums; pure.
//! - [`ledger`]: the sums so far, and the chunks that they contain; pure.
//! - [`site`]: names and settings that the processes share.
//! - [`initiator`], [`processor`], [`controller`]: the three roles.

pub(crate) mod batch;
pub(crate) mod controller;
pub(crate) mod initiator;
pub(crate) mod ledger;
pub(crate) mod processor;
pub(crate) mod site;
