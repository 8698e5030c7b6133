//! The storage client that both workers use: Microsoft's Rust SDK behind a narrow port.

mod error;
pub mod port;

pub use error::{ErrorKind, PortError};
