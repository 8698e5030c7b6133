//! Why the store cannot open, read or commit.

use std::io;
use std::path::{Path, PathBuf};

use smalt_protocol::{ErrorCode, StorageError};

use crate::disk::is_full;

/// Why the store cannot answer. Operations never see why a commit failed; they see that it did.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk failed; the store takes no more writes until it is opened again.
    #[error("the store cannot reach its disk: {0}")]
    Io(String),
    /// Stored bytes are not what was written.
    #[error("the store holds damaged data: {0}")]
    Corrupt(String),
    /// A write failed earlier: what is on disk is unknown, so nothing more is acknowledged.
    #[error("the store is read-only since a failed write: {0}")]
    ReadOnly(String),
    /// There is no room. Nothing was written; the same may succeed later.
    #[error("the store takes no writes at present: {0}")]
    Refused(String),
    /// The store's files were removed, moved or replaced while it was open.
    #[error("the store's files are gone: {0}")]
    Gone(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// What the cause of a [`StoreError::ReadOnly`] says when the failed write was cut off while it was
/// being applied. The engine may then need a write to finish what it was at, and it finishes that
/// for readers too: those that come by there are refused until the store is opened again.
pub const CUT_OFF: &str = "in the middle of a batch: some reads may fail until it is opened again";

impl StoreError {
    /// Why a file cannot be written before any commit depends on it.
    pub(super) fn of_staging(path: &Path, error: &io::Error) -> Self {
        if is_full(error) {
            return StoreError::Refused("the disk is full".to_owned());
        }
        StoreError::Io(format!("{}: {error}", path.display()))
    }

    /// The same, met while a batch was being applied.
    pub(super) fn cut_off(self) -> Self {
        match self {
            StoreError::Io(cause) => StoreError::Io(format!("{cause}, {CUT_OFF}")),
            other => other,
        }
    }
}

impl From<StoreError> for StorageError {
    /// Whoever is refused before anything happened may try again: 503. Else it is unknown what
    /// happened: 500, with its cause in the log.
    fn from(error: StoreError) -> Self {
        let reason = match &error {
            StoreError::Refused(_) => error.to_string(),
            // What failed is in the log, with paths that are nothing to a client.
            StoreError::Gone(_) => "the data directory is gone".to_owned(),
            StoreError::ReadOnly(_) => {
                "no writes are taken until the store is opened again".to_owned()
            }
            _ => return StorageError::internal(error),
        };
        let code = ErrorCode::ServerBusy;
        StorageError::new(code).with_message(format!("{} ({reason})", code.message()))
    }
}

/// Shorthand for the store's results.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why a store cannot be opened. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A mode that keeps state needs a directory.
    #[error("the store needs a directory in this mode")]
    NoDirectory,
    /// Another process has the store open.
    #[error("{} is in use by another process: stop it, or choose another directory", dir.display())]
    Locked {
        /// The store's directory.
        dir: PathBuf,
    },
    /// The store was written by a newer release.
    #[error(
        "{} has format {found}, this release reads up to {known}: \
         use the newer release, or another directory",
        dir.display()
    )]
    Newer {
        /// The store's directory.
        dir: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this release reads.
        known: u32,
    },
    /// The store's own files are damaged beyond what can be recovered without losing data.
    #[error(
        "{} is damaged ({cause}){}; nothing was reset: look with `smalt check`, save what is \
         readable with `smalt salvage`, restore a copy, or choose another directory",
        dir.display(), backup_text(backup.as_ref())
    )]
    Damaged {
        /// The store's directory.
        dir: PathBuf,
        /// A copy of the damaged files as they were found.
        backup: Option<PathBuf>,
        /// What was found.
        cause: String,
    },
    /// A file or directory cannot be reached.
    #[error("cannot open the store at {}: {cause}", path.display())]
    Io {
        /// What was reached for.
        path: PathBuf,
        /// The system's message.
        cause: String,
    },
}

fn backup_text(backup: Option<&PathBuf>) -> String {
    backup.map_or_else(String::new, |path| {
        format!(", its files were copied to {}", path.display())
    })
}
