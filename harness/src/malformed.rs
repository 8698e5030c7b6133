//! Requests that no client should send, and the one right answer to each.
//!
//! The table is data: `fixtures/malformed/*.toml`. Every case states the request, byte by byte
//! where that matters, and the status and error code that Azure gives. The runner sends each on a
//! TCP connection of its own and checks that
//! - the answer is the stated one, never another 5xx, never a hang;
//! - nothing was stored: the dump of the control endpoint is the same before and after;
//! - the server still answers, and the blob and the message that were there are untouched.
//!
//! # Layout
//! - [`table`]: what a case is; [`template`]: how its texts are written; [`request`]: its bytes.
//! - [`raw`]: one exchange on a bare connection; [`subject`]: what the cases are about.
//! - [`runner`]: all cases against one server. [`options`]: the command line.

pub mod options;
pub mod raw;
pub mod request;
pub mod runner;
pub mod subject;
pub mod table;
pub mod template;

#[cfg(test)]
mod tests;

pub use options::{Options, run_command};
