//! The storage client that both workers use: Microsoft's Rust SDK behind a narrow port.

mod account;
mod ambient;
mod clock;
mod context;
#[cfg(feature = "entra")]
mod entra;
mod error;
mod failure;
mod names;
mod policy;
pub mod port;
mod redact;
mod storage;
#[cfg(test)]
mod tests;
mod tracked;
pub mod transport;

pub use account::{Account, AccountError, Credential};
pub use ambient::SystemClock;
pub use clock::{Clock, TokioClock};
pub use context::CLIENT_REQUEST_ID_BYTES_MAX;
pub use error::{ErrorKind, PortError};
pub use policy::backoff::RetrySettings;
pub use storage::{AzureStorage, Settings};
pub use tracked::TrackedBlob;
pub use transport::{
    FnTransport, HyperTransport, HyperTransportSettings, Transport, TransportError,
};
