//! The store: one ordered map of small values, one committer, append-only extents for payloads.
//!
//! - [`View`]: the state that a check reads. Readers get published, durable state of one moment;
//!   inside a commit the view is that state plus the earlier changes of the group.
//! - [`Transaction`]: a view that collects writes. They are all dropped when the operation refuses.
//! - [`Stamp`]: the time of the commit, given in commit order.
//! - [`Store`]: opens, reads, commits, stages payloads, maintains.
//! - [`adopt`], [`retain`], [`release`], [`location`]: payloads inside commits and views. Records
//!   of operations name payloads by [`PayloadId`] only, so that compaction moves bytes by
//!   rewriting one record of the store's own.
//!
//! # Keys
//! The first byte of a key names its owner: `0x00..=0x0F` belong to the store, all others to the
//! operations. Numbers are big-endian, so that byte order is numeric order.
//!
//! | key | value | |
//! | --- | --- | --- |
//! | `00 01` | `now`, `tick` (u64 each) | the last stamp |
//! | `00 02` | u64 | the last payload id |
//! | `00 03` | u64 | format version: absent means an empty or lost store |
//! | `01`, payload id (u64) | `00` + bytes, or `01` + segment, offset, length (u64s) | its place |
//! | `02`, payload id | u64 | references beyond the first; absent for none |
//! | `03`, segment (u64) | u64 | bytes of the segment that live payloads take; absent for none |
//! | `04`, segment, payload id | empty | which payloads a segment holds, for compaction |

mod commit;
mod committer;
mod config;
mod dispatch;
mod engine;
mod error;
mod extents;
pub mod failpoint;
mod handle;
mod home;
mod image;
mod inspect;
#[cfg(all(test, feature = "shuttle"))]
mod kernels;
mod keys;
mod log;
mod maintain;
mod overlay;
mod payload;
mod points;
mod reader;
mod references;
mod saved;
mod shared;
mod sled_engine;
mod sled_waker;
mod staging;
mod stamp;
mod stats;
#[cfg(any(test, feature = "schedule"))]
mod stepped;
mod successor;
mod sync;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;
mod trouble;
mod view;

pub use config::{Mode, StoreConfig};
pub use error::{CUT_OFF, OpenError, StoreError, StoreResult};
pub use extents::{Carved, Segment};
pub use handle::Store;
pub use home::Purpose;
pub use image::{Entry, Image};
pub use inspect::Inspected;
pub use keys::{OWN_PREFIXES, location as payload_key, payload_at as payload_of_key};
pub use maintain::MaintainReport;
pub use payload::{Payload, PayloadId, adopt, location, release, retain};
pub use points::Point;
pub use reader::PayloadReader;
pub use references::{disagreements, references};
pub use saved::{Snapshot, SnapshotError, Snapshots};
pub use staging::{PayloadWriter, Staged};
pub use stats::Stats;
pub use successor::Successor;
pub use trouble::Trouble;
pub use view::{INLINE_BYTES_MAX, Stamp, Transaction, VALUE_BYTES_MAX, View, Visit, Writes};
