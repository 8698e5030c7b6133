//! Export and import of a state as one stream: a tar archive with records, and payloads by their
//! SHA-256.
//!
//! ```text
//! smalt-state.json        format, release, clock, settings of accounts
//! payloads/<sha256>       bytes of a payload above 16 KiB, before the first record that needs it
//! records/<n>-<sha256>    records in the order of their keys
//! end.json                number of payloads and records, SHA-256 over those of record files
//! ```
//!
//! A record is length of key, length of value (four bytes each, big-endian), key, value. A record
//! of a payload's location contains the payload's hash and length instead. docs/state.md describes
//! the format.

mod read;
mod write;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::about::About;
use crate::store::StoreError;

pub use read::import;
pub use write::export;

/// The format that this release writes, and the only one that it reads.
pub const FORMAT: u32 = 1;
/// Format of the records; changes when older releases cannot read them.
pub const RECORDS: u32 = 1;

const MANIFEST: &str = "smalt-state.json";
const END: &str = "end.json";
const PAYLOADS: &str = "payloads/";
const RECORD_FILES: &str = "records/";
/// A file of records ends once it has this size.
const CHUNK_BYTES: usize = 1024 * 1024;
/// First byte of a record value that refers to a payload of the archive. The store's own values
/// begin with 0 or 1.
const BY_HASH: u8 = 2;

type Hash = [u8; 32];

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    records: u32,
    smalt: String,
    #[serde(flatten)]
    about: About,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    payloads: u64,
    records: u64,
    sha256: String,
}

/// The counts of a completed import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Number of imported records.
    pub records: u64,
    /// Number of payloads above 16 KiB, without duplicates.
    pub payloads: u64,
}

/// Why a state cannot be exported or imported. A failed import leaves the state unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The stream has another format.
    #[error(
        "the stream has format {format} with records {records}; \
         this release reads format {FORMAT} with records {RECORDS}: use the release that wrote it"
    )]
    Version {
        /// Format of the stream.
        format: u32,
        /// Format of the stream's records.
        records: u32,
    },
    /// The stream is not an exported state, or was altered or truncated.
    #[error("the stream is damaged: {0}")]
    Damaged(String),
    /// The stream contains data of an account that this emulator does not have.
    #[error("the stream contains data of account {0}: add the account to AZURITE_ACCOUNTS")]
    Account(String),
    /// The stream cannot be read or written.
    #[error("cannot read or write the stream: {0}")]
    Io(#[from] std::io::Error),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn damaged(what: impl std::fmt::Display) -> ArchiveError {
    ArchiveError::Damaged(what.to_string())
}

fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

pub(super) fn hex(hash: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in hash {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
