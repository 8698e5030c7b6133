//! Sweeper processes that share a sweep, and an account of every blob.
//!
//! The run fills its own service with blobs: some without a time to live, some that are not due,
//! and some that are due, of which a part must move to another container. Several processes of the
//! binary `smalt-sweeper` sweep them; now and then one is killed (`kill -9`) and started again. At
//! the end every blob is checked: those that are not due exist unchanged, those that were due are
//! gone, and those that had to move are at their destination, with the same bytes and metadata.
//! Without kills, the workers' own counts must add up as well: nothing was done twice.
//!
//! # Layout
//! - [`blobs`]: the blobs and their fates. [`judge`]: the account. Both without IO.
//! - [`ask`]: fills the service and reads it. [`crew`]: the workers, until a cycle is over.
//! - [`round`]: one run on its own service. [`options`]: the command line.

pub mod ask;
pub mod blobs;
pub mod crew;
pub mod judge;
pub mod options;
pub mod round;

pub use options::{Options, run_command};
