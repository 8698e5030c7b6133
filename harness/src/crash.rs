//! Crashes of every kind, and what must be there afterwards: C1 to C7 ([`property`]).
//!
//! - **Rounds**: the binary `smalt` on a directory, several connections, `kill -9` at a random
//!   moment, two starts, everything looked at; the next round goes on with the same store.
//! - **Kills**: the same with children that need no sockets, many in a short time.
//! - **Failpoints**: such a child dies at every named step of the store.
//! - **Images**: such a child works under a shim that journals what it does to its files; from the
//!   journal comes what a loss of power can leave at each sync, and each image is opened.
//! - **Errors**: under the same shim, calls fail: a full disk, a failing sync, short transfers.
//! - **Stores of releases**: each opens, and shows what it showed then.
//!
//! docs/crash.md has the table of properties and the commands.
//!
//! # Layout
//! - [`content`]: bytes from a seed; [`model`]: what is expected; [`transport`], [`wire`],
//!   [`wire_entities`]: the operations; [`worker`]: one connection at work; [`verify`],
//!   [`verify_entities`], [`verify_queue`], [`verify_lease`]: everything against the model.
//! - [`promise`]: what the modes promise; [`history`], [`prefix`], [`survey`]: everything against
//!   every state that there was, where a kill may take the end; [`beat`]: its clock.
//!   [`entities`]: the judge of entities and of transactions for both modes.
//! - [`round`]: start, work, kill, start, verify. [`options`]: the command line and the table.
//! - [`child`]: the process that dies; [`events`]: what it tells; [`kill`]: its end; [`examine`]:
//!   its store afterwards. [`kills`], [`failpoints`], [`errors`]: many of them. [`campaign`]: their
//!   part of the command.
//! - [`shim`], [`journal`], [`image`], [`images`]: the loss of power.
//! - [`fixture`]: stores of releases. [`files`]: all access to files.

pub mod beat;
pub mod campaign;
pub mod child;
pub mod content;
pub mod entities;
pub mod errors;
pub mod events;
pub mod examine;
pub mod failpoints;
pub mod files;
pub mod fixture;
pub mod history;
pub mod image;
pub mod images;
pub mod journal;
pub mod kill;
pub mod kills;
pub mod model;
pub mod options;
pub mod prefix;
pub mod promise;
pub mod property;
pub mod round;
pub mod shim;
pub mod survey;
pub mod transport;
pub mod verify;
pub mod verify_entities;
pub mod verify_lease;
pub mod verify_queue;
pub mod wire;
pub mod wire_entities;
pub mod worker;

pub use child::{ChildOptions, run_child};
pub use fixture::{FixtureOptions, run_fixture};
pub use options::{Options, run_command};
