//! Words of the Azure Storage wire: names and limits, error codes, time and ETags, typed headers,
//! XML documents, signing. No IO, no clock, no async: everything here is a value or a pure function.

pub mod connection_string;
pub mod error;
pub mod etag;
pub mod limits;
pub mod metadata;
pub mod names;
pub mod service;
pub mod signing;
pub mod time;
pub mod uri;
pub mod version;

pub use connection_string::ConnectionString;
pub use error::{ErrorCode, StorageError};
pub use etag::ETag;
pub use metadata::Metadata;
pub use service::Service;
pub use time::Timestamp;
pub use version::ApiVersion;
