//! Why an Azurite directory cannot be imported.

use std::path::PathBuf;

use super::loki::VERSION;
use crate::store::StoreError;

pub(super) const BLOBS: &str = "__azurite_db_blob__.json";
pub(super) const QUEUES: &str = "__azurite_db_queue__.json";
pub(super) const TABLES: &str = "__azurite_db_table__.json";
/// The databases, of which an Azurite directory has at least one.
pub const DATABASES: [&str; 3] = [BLOBS, QUEUES, TABLES];
/// Maximum number of missing files that an error lists.
const MISSING_SHOWN: usize = 10;

/// Why an Azurite directory cannot be imported. Nothing is imported in this case.
#[derive(Debug, thiserror::Error)]
pub enum AzuriteError {
    /// The directory has no Azurite database.
    #[error("{} contains no Azurite data: there is no {BLOBS}, {QUEUES} or {TABLES}", .0.display())]
    None(PathBuf),
    /// A database has a version that this release does not support.
    #[error(
        "{} has database version {found}; this release imports version {}, \
         which Azurite 3 writes",
        file.display(),
        VERSION
    )]
    Version {
        /// The database file.
        file: PathBuf,
        /// Version in the file.
        found: String,
    },
    /// A database contains data that Azurite 3 does not write.
    #[error("{}: {what}", file.display())]
    Shape {
        /// The database file.
        file: PathBuf,
        /// Where and what is wrong.
        what: String,
    },
    /// Extent files of the databases are missing or too short.
    #[error("Azurite files are missing or too short: {}", shown(.0))]
    Missing(Vec<PathBuf>),
    /// The databases contain an account that this emulator does not have.
    #[error("the data contains account {0}: add the account to AZURITE_ACCOUNTS")]
    Account(String),
    /// The emulator already contains data.
    #[error("the store already contains data: choose another --location, with an empty store")]
    NotEmpty,
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Io {
        /// The file that failed.
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
