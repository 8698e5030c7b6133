//! Crashes of every kind, and what must exist afterwards: C1 to C8 ([`property`]).
//!
//! - **Rounds**: the binary `smalt` on a directory, several connections, `kill -9` at a random
//!   moment, two starts, everything examined; the next round continues with the same store.
//! - **Kills**: the same with children without sockets, many in a short time.
//! - **Failpoints**: such a child dies at every named step of the store.
//! - **Images**: such a child works under a shim that journals its file operations. The journal
//!   shows what a power failure can leave at each sync, and each of these images is opened.
//! - **Errors**: under the same shim, calls fail: a full disk, a failing sync, short transfers.
//! - **Stores of releases**: each opens, and shows what it showed then.
//!
//! docs/crash.md has the table of properties and the commands.
//!
//! # Layout
//! - [`content`]: bytes from a seed; [`model`]: what is expected; [`transport`], [`wire`],
//!   [`wire_entities`]: the operations; [`worker`]: one connection at work.
//! - [`survey`], [`verify_queue`], [`verify_lease`]: what exists; [`compare`], [`items`]: how it
//!   differs from the model. [`mode`]: the modes on disk.
//! - [`round`]: start, work, kill, start, verify. [`options`]: the command line and the table.
//! - [`child`]: the process that dies; [`events`]: its log; [`kill`]: its end; [`examine`]:
//!   its store afterwards. [`kills`], [`failpoints`], [`errors`]: many of them. [`campaign`]: their
//!   part of the command.
//! - [`shim`], [`journal`], [`image`], [`images`]: power failures.
//! - [`fixture`]: stores of releases. [`files`]: all access to files.

pub mod campaign;
pub mod child;
pub mod compare;
pub mod content;
pub mod errors;
pub mod events;
pub mod examine;
pub mod failpoints;
pub mod files;
pub mod fixture;
pub mod image;
pub mod images;
pub mod items;
pub mod journal;
pub mod kill;
pub mod kills;
pub mod mode;
pub mod model;
pub mod options;
pub mod property;
pub mod round;
pub mod shim;
pub mod survey;
pub mod transport;
pub mod verify_lease;
pub mod verify_queue;
pub mod wire;
pub mod wire_entities;
pub mod worker;

pub use child::{ChildOptions, run_child};
pub use fixture::{FixtureOptions, run_fixture};
pub use options::{Options, run_command};
