//! Words of the Azure Storage wire: names and limits, error codes, time and ETags, typed headers,
//! XML documents, signing. No IO, no clock, no async: everything here is a value or a pure function.

pub mod error;
pub mod etag;
pub mod time;

pub use error::{ErrorCode, StorageError};
pub use etag::ETag;
pub use time::Timestamp;
