//! Sweeper processes that share a sweep, and an account of every blob.
//!
//! A service of its own is filled with blobs: some without a time to live, some whose time is still
//! to come, some whose time is over, and of those some that are to be kept elsewhere. Several
//! processes of the binary `smalt-sweeper` sweep them; now and then one is killed (`kill -9`) and
//! begun anew. At the end every blob is looked at: what is not due is there and unchanged, what was
//! due is gone, and what was to be moved stands at its place, equal in bytes and metadata. Without
//! deaths the workers' own counts have to add up as well: nothing was done twice.
//!
//! # Layout
//! - [`blobs`]: which blobs there are, and what is to become of each. [`judge`]: the account. Both
//!   without IO.
//! - [`ask`]: filling the service and looking at it. [`crew`]: the workers, until a cycle is over.
//! - [`round`]: one run on a service of its own. [`options`]: the command line.

pub mod ask;
pub mod blobs;
pub mod crew;
pub mod judge;
pub mod options;
pub mod round;

pub use options::{Options, run_command};
