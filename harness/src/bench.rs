//! Measures how fast smalt is: one table from one run on one machine.
//!
//! Absolute figures depend on the machine; the meaningful ones are ratios to a bare hyper server
//! that answers with as many bytes without doing any work (the ceiling), and on request to Azurite.
//!
//! Every server is a child process, driven in the same way by one load generator in this process:
//! kept-alive HTTP/1.1 connections of hyper, byte-identical requests, signed in advance with an
//! account SAS. Smalt is the release binary in its durable mode.
//!
//! # Layout
//! - [`lines`]: the measured lines and their targets. [`requests`]: the requests.
//! - [`load`]: the load generator. [`echo`]: the bare server. [`servers`]: starts each
//!   server.
//! - [`rates`]: operations per second; [`scale`]: with many blobs; [`queue`], [`table`]: with
//!   many messages or entities, on top of [`lengths`]; [`inproc`]: without a socket.
//! - [`page`]: the sweeper's cost of a listing page. [`rename`]: hierarchical accounts.
//! - [`report`]: the table. [`options`]: the command line.

pub mod echo;
pub mod inproc;
pub mod lengths;
pub mod lines;
pub mod load;
pub mod options;
pub mod page;
pub mod queue;
pub mod rates;
pub mod rename;
pub mod report;
pub mod requests;
pub mod scale;
pub mod servers;
pub mod table;

pub use options::{Options, run_command};
