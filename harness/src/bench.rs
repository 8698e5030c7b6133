//! How fast it is: one table from one run on one machine.
//!
//! Absolute figures belong to the machine; what counts are ratios to a bare hyper server that does
//! nothing but answer with as many bytes (the ceiling), and to Azurite where it is asked for.
//!
//! Every server is a child process, driven in the same way by one load generator in this process:
//! kept-alive HTTP/1.1 connections of hyper, the same requests byte for byte, signed beforehand by
//! an account SAS. Smalt is the release binary in its durable mode.
//!
//! # Layout
//! - [`lines`]: what is measured, and the targets. [`requests`]: the requests.
//! - [`load`]: the generator. [`echo`]: the bare server. [`servers`]: starting each.
//! - [`rates`]: operations per second; [`scale`]: with many blobs; [`queue`], [`table`]: with many
//!   messages or entities, by [`lengths`]; [`inproc`]: without a socket.
//! - [`page`]: what a page of a listing costs the sweeper.
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
pub mod report;
pub mod requests;
pub mod scale;
pub mod servers;
pub mod table;

pub use options::{Options, run_command};
