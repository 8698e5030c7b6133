//! Errors of opening, reading and committing.

use std::io;
use std::path::{Path, PathBuf};

use smalt_protocol::{ErrorCode, StorageError};

use crate::disk::is_full;

/// An error of the store. Operations never see why a commit failed, only that it did.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk failed; the store accepts no writes until it is reopened.
    #[error("the store cannot access its disk: {0}")]
    Io(String),
    /// Stored bytes differ from those that were written.
    #[error("the store holds damaged data: {0}")]
    Corrupt(String),
    /// A write failed earlier, so the state on disk is unknown and nothing more is acknowledged.
    #[error("the store is read-only since a failed write: {0}")]
    ReadOnly(String),
    /// There is no room. Nothing was written; a retry may succeed.
    #[error("the store currently refuses writes: {0}")]
    Refused(String),
    /// The store's files were removed, moved or replaced while it was open.
    #[error("the store's files are gone: {0}")]
    Gone(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Part of the cause of a [`StoreError::ReadOnly`] when the engine needs a further write to finish
/// the one that failed, also for readers: reads in that place are refused until the store is
/// reopened.
pub const CUT_OFF: &str = "in the middle of a node: some reads may fail until it is opened again";

impl StoreError {
    /// Converts an error of writing a file on which no commit depends yet.
    pub(super) fn of_staging(path: &Path, error: &io::Error) -> Self {
        if is_full(error) {
            return StoreError::Refused("the disk is full".to_owned());
        }
        Self::of_file(path, error)
    }

    /// Converts an error of a file, and names the file.
    pub(super) fn of_file(path: &Path, error: &io::Error) -> Self {
        StoreError::Io(format!("{}: {error}", path.display()))
    }

    /// Adds [`CUT_OFF`].
    pub(super) fn cut_off(self) -> Self {
        match self {
            StoreError::Io(cause) => StoreError::Io(format!("{cause}, {CUT_OFF}")),
            other => other,
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        StoreError::Io(error.to_string())
    }
}

impl From<StoreError> for StorageError {
    /// A request that was refused before anything happened can be retried: 503. Otherwise the
    /// outcome is unknown: 500, with the cause in the log.
    fn from(error: StoreError) -> Self {
        let reason = match &error {
            StoreError::Refused(_) => error.to_string(),
            // The log has the cause, with paths that clients should not see.
            StoreError::Gone(_) => "the data directory is gone".to_owned(),
            StoreError::ReadOnly(_) => {
                "writes are refused until the store is opened again".to_owned()
            }
            _ => return StorageError::internal(error),
        };
        let code = ErrorCode::ServerBusy;
        StorageError::new(code).with_message(format!("{} ({reason})", code.message()))
    }
}

/// A result of the store.
pub type StoreResult<T> = Result<T, StoreError>;

/// The reason why a store cannot be opened. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The mode keeps state, but no directory is given.
    #[error("the store needs a directory in this mode")]
    NoDirectory,
    /// Another process has the store open.
    #[error("{} is in use by another process: stop it, or choose another directory", dir.display())]
    Locked {
        /// The store's directory.
        dir: PathBuf,
    },
    /// A newer release wrote the store.
    #[error(
        "{} has format {found}, this release reads up to {known}: \
         use the newer release, or another directory",
        dir.display()
    )]
    Newer {
        /// The store's directory.
        dir: PathBuf,
        /// Format version of the store.
        found: u32,
        /// The newest format that this release reads.
        known: u32,
    },
    /// The store's own files are damaged and cannot be recovered without losing data.
    #[error(
        "{} is damaged ({cause}){}; nothing was reset: run `smalt check`, save the readable data \
         with `smalt salvage`, restore a copy, or choose another directory",
        dir.display(), backup_text(backup.as_ref())
    )]
    Damaged {
        /// The store's directory.
        dir: PathBuf,
        /// A copy of the damaged files as they were found; `None` when there is none.
        backup: Option<PathBuf>,
        /// Description of the damage.
        cause: String,
    },
    /// A file or directory cannot be accessed.
    #[error("cannot open the store at {}: {cause}", path.display())]
    Io {
        /// The file or directory.
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
