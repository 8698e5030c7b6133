//! Types of the Azure Storage wire protocol: names and limits, error codes, time and ETags, typed
//! headers, XML documents, signing. The crate has no IO, no clock and no async: it contains only
//! values and pure functions.
//!
//! Servers and clients share these types and nothing else. This crate parses headers; the caller
//! decides what they mean for a blob or a message.
//!
//! ```
//! use smalt_protocol::{ErrorCode, Service, Timestamp, connection_string, names};
//!
//! let text = "UseDevelopmentStorage=true";
//! let account = connection_string::ConnectionString::parse(text).unwrap();
//! assert_eq!(account.account, "devstoreaccount1");
//! assert!(names::validate_account_name("Capitals").is_err());
//! assert_eq!(ErrorCode::BlobNotFound.status(), 404);
//! assert_eq!(Timestamp::from_unix_s(0).rfc1123(), "Thu, 01 Jan 1970 00:00:00 GMT");
//! assert_eq!(Service::ALL.len(), 3);
//! ```
//!
//! # Layout
//! - [`limits`], [`names`], [`version`]: what the service allows, each with its source.
//! - [`error`]: the table of error codes with status and message.
//! - [`time`], [`etag`], [`range`], [`conditions`], [`lease`], [`metadata`], [`uri`]: values of
//!   headers and queries, parsed and written.
//! - [`xml`]: documents, one file per family, over one bounded reader and one writer.
//! - [`table`]: entities, filters and batches of the Table service.
//! - [`signing`]: Shared Key and shared access signatures. [`connection_string`]: accounts.
//! - [`size`]: byte sizes in the settings of the programs.
//! - [`terminal`]: escaping of untrusted text for terminals and logs.
//!
//! # Conventions
//! - Lengths, offsets and limits count bytes unless a name says otherwise; units come last in names
//!   (`_bytes_max`, `_s`). A [`Timestamp`] counts ticks of 100 ns.
//! - A request that the service rejects is a [`StorageError`] with Azure's status, code and
//!   message. Each function lists its errors under *Errors*.
//! - Each rule names its source: a page of Microsoft's REST reference in italics, or *recorded* for
//!   an answer of the production service. Where the two differ, the recording counts.
//! - Behaviour that depends on the version takes an [`ApiVersion`] or is left to the caller.

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
pub mod size;
pub mod table;
pub mod terminal;
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
pub use size::Size;
pub use time::Timestamp;
pub use version::ApiVersion;
