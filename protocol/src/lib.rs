//! Words of the Azure Storage wire: names and limits, error codes, time and ETags, typed headers,
//! XML documents, signing. No IO, no clock, no async: everything here is a value or a pure
//! function.

pub mod conditions;
pub mod connection_string;
pub mod error;
pub mod etag;
pub mod lease;
pub mod limits;
pub mod metadata;
pub mod names;
pub mod range;
pub mod service;
pub mod signing;
pub mod time;
pub mod uri;
pub mod version;
pub mod xml;

pub use conditions::{ConditionHeaders, ConditionSubject, TagCondition};
pub use connection_string::ConnectionString;
pub use error::{ErrorCode, StorageError};
pub use etag::ETag;
pub use lease::{LeaseAction, LeaseDuration};
pub use metadata::Metadata;
pub use range::ByteRange;
pub use service::Service;
pub use signing::AccountKey;
pub use signing::permissions::Permissions;
pub use signing::sas::{Sas, SasKind, SasTarget};
pub use signing::shared_key::{Authorization, Scheme, SigningInput};
pub use time::Timestamp;
pub use version::ApiVersion;
