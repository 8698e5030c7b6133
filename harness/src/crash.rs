//! `kill -9` in the middle of work, and what must be there afterwards.
//!
//! The binary `smalt` runs in its durable mode on a directory. Several connections write to it,
//! each on a container and a queue of its own and one request at a time, and record every
//! acknowledgement. At a random moment the process is killed; it is started again, twice, and asked
//! for everything. The next round goes on with the same store. What is proved:
//!
//! - **C1** every acknowledged operation is visible, exactly: bytes, metadata, ETags, texts,
//!   dequeue counts; what was deleted stays so.
//! - **C2** an operation without an acknowledgement happened whole or not at all.
//! - **C3** no content is short, mixed or another's.
//! - **C4** no ETag and no message id is given twice; a receipt that was given works, one that was
//!   replaced does not; no message is handed out twice while it is hidden.
//! - **C6**, **C7** it opens again in bounded time, and opening once more changes nothing.
//!
//! Losing power differs from losing the process: pages that were not synced are gone as well. The
//! store's own tests (`emulator/src/store/tests/crash.rs`) prove that with a disk that forgets
//! them.
//!
//! # Layout
//! - [`content`]: bytes from a seed; [`model`]: what is expected; [`wire`]: the operations.
//! - [`worker`]: one connection at work; [`verify`], [`verify_queue`]: everything against the
//!   model.
//! - [`round`]: start, work, kill, start, verify. [`options`]: the command line and the table.

pub mod campaign;
pub mod child;
pub mod content;
pub mod errors;
pub mod events;
pub mod examine;
pub mod failpoints;
pub mod files;
pub mod image;
pub mod images;
pub mod journal;
pub mod kill;
pub mod kills;
pub mod model;
pub mod options;
pub mod property;
pub mod round;
pub mod shim;
pub mod transport;
pub mod verify;
pub mod verify_lease;
pub mod verify_queue;
pub mod wire;
pub mod worker;

pub use child::{ChildOptions, run_child};
pub use options::{Options, run_command};
