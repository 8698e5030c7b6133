//! Why a directory of Azurite cannot be imported.

use std::path::PathBuf;

use super::loki::VERSION;
use crate::store::StoreError;

pub(super) const BLOBS: &str = "__azurite_db_blob__.json";
pub(super) const QUEUES: &str = "__azurite_db_queue__.json";
pub(super) const TABLES: &str = "__azurite_db_table__.json";
/// The databases; a directory of Azurite has one of them at least.
pub const DATABASES: [&str; 3] = [BLOBS, QUEUES, TABLES];
/// Names of missing files that an error shows.
const MISSING_SHOWN: usize = 10;

/// Why a directory of Azurite cannot be imported. Nothing is then.
#[derive(Debug, thiserror::Error)]
pub enum AzuriteError {
    /// There is no database of Azurite.
    #[error("{} holds no data of Azurite: there is no {BLOBS}, {QUEUES} or {TABLES}", .0.display())]
    None(PathBuf),
    /// A database is of another version than this release knows.
    #[error(
        "{} is of database version {found}; this release imports version {}, \
         which Azurite 3 writes",
        file.display(),
        VERSION
    )]
    Version {
        /// The database.
        file: PathBuf,
        /// Its version.
        found: String,
    },
    /// A database holds what Azurite 3 does not write.
    #[error("{}: {what}", file.display())]
    Shape {
        /// The database.
        file: PathBuf,
        /// Where, and what is wrong.
        what: String,
    },
    /// Files that the databases refer to are missing or too short.
    #[error("files of Azurite are missing or too short: {}", shown(.0))]
    Missing(Vec<PathBuf>),
    /// The databases hold accounts that this emulator does not have.
    #[error("the data is of account {0}, too: start smalt with it (AZURITE_ACCOUNTS)")]
    Account(String),
    /// The emulator holds data of its own.
    #[error("the store holds data already: import into an empty one (another --location)")]
    NotEmpty,
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The store cannot write.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn shown(missing: &[PathBuf]) -> String {
    let mut names: Vec<_> = missing.iter().take(MISSING_SHOWN).collect();
    names.sort();
    let names: Vec<_> = names
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    match missing.len().saturating_sub(MISSING_SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
