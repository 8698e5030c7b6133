//! Storage Analytics logging: a line for each request, in blobs of the container `$logs`.
//!
//! Sources: "Storage Analytics log format", "About Storage Analytics logging", "Set Blob Service
//! Properties" (`Logging`). As in production, logging is best effort: lines wait in memory, so that
//! no request waits for them, and a process that is killed loses them.

mod line;
pub mod log;
pub mod waiting;
mod write;
