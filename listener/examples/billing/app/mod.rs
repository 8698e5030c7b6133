//! The parts of the billing example, apart from its command line: so that a test runs them in
//! process.
//!
//! - [`batch`]: transactions, chunks and sums; pure.
//! - [`ledger`]: the sums so far, and which chunks are in them; pure.
//! - [`site`]: names and settings of what the processes share.
//! - [`initiator`], [`processor`], [`controller`]: the three roles.

pub(crate) mod batch;
pub(crate) mod controller;
pub(crate) mod initiator;
pub(crate) mod ledger;
pub(crate) mod processor;
pub(crate) mod site;
