//! The storage client of both workers: Microsoft's Rust SDK behind a narrow port.
//!
//! Workers use only [`port::Storage`], about twenty calls with typed errors. This crate implements
//! it from an [`Account`], a [`Transport`] and [`Settings`]:
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use smalt_sleeve::port::{BlobId, CallContext, Conditions, DeleteSnapshots, Storage};
//! use smalt_sleeve::{Account, AzureStorage, FnTransport, Settings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A service in the same process: any function from request to response. Over sockets it
//! // would be `HyperTransport::new(HyperTransportSettings::default())?`.
//! let transport = FnTransport::new(|request| async move {
//!     assert_eq!(request.method(), "DELETE");
//!     assert_eq!(request.uri().path(), "/devstoreaccount1/logs/2026%2F11.txt");
//!     assert!(request.headers().contains_key("authorization"));
//!     let mut answer = http::Response::new(Bytes::new());
//!     *answer.status_mut() = http::StatusCode::ACCEPTED;
//!     Ok(answer)
//! });
//! let account = Account::from_connection_string("UseDevelopmentStorage=true")?;
//! let storage = AzureStorage::open(account, Arc::new(transport), Settings::default())?;
//!
//! let blob = BlobId::new("logs", "2026/11.txt");
//! let cx = CallContext::default();
//! storage
//!     .delete_blob(&cx, &blob, &Conditions::default(), DeleteSnapshots::Refuse)
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What the sleeve adds to the SDK
//!
//! - **Credentials**: Shared Key, SAS and connection strings ([`Account`]); Entra ID under the
//!   feature `entra`. Requests are stamped and signed with an injected [`Clock`], so that virtual
//!   time works.
//! - **Transports** ([`transport`]): HTTP/1.1 over sockets with TLS, or any function. Each reports
//!   whether a failed request can have reached the service.
//! - **Safe retries** ([`RetrySettings`]): Put Message is never put twice, a delete that finds
//!   nothing after a lost response succeeds, and a conditional write never mistakes its own earlier
//!   attempt for another client's change ([`ErrorKind::OutcomeUnknown`]).
//! - **Names** that arrive unchanged, or are rejected before anything is sent.
//! - **Operation contexts**: the caller's request id, including muting ([`port::CallContext`]), and
//!   the way back in a [`notification`].
//! - **Sleeves**: a blob or container with the context and the ETag of its calls ([`Sleeve`]).
//! - **No leaked secrets**: no error and no `Debug` shows a key, a SAS or a signature.
//!
//! # Known limits
//!
//! - Metadata names are sent in lower case, like all headers of the SDK; the service compares them
//!   case-insensitively. Metadata values must be printable ASCII.
//! - Responses are read whole, up to [`HyperTransportSettings::answer_bytes_max`].

mod account;
mod ambient;
mod clock;
mod context;
#[cfg(feature = "entra")]
mod entra;
mod error;
mod failure;
mod names;
pub mod notification;
mod policy;
pub mod port;
mod redact;
mod sleeves;
pub mod stdout;
mod storage;
#[cfg(test)]
mod tests;
pub mod transport;

pub use account::{Account, AccountError, Credential};
pub use ambient::SystemClock;
pub use clock::{Clock, TokioClock};
pub use context::{CLIENT_REQUEST_ID_BYTES_MAX, ContextError, StorageContext};
#[cfg(feature = "entra")]
pub use entra::Identity;
pub use error::{ErrorKind, PortError};
pub use policy::backoff::RetrySettings;
pub use policy::retry::within;
pub use redact::redact;
pub use sleeves::{Accounts, BlobSleeve, ContainerSleeve, CopyFrom, Providers, Sleeve};
pub use storage::{AzureStorage, Settings};
pub use transport::{
    FnTransport, HyperTransport, HyperTransportSettings, Transport, TransportError,
};
