//! Why a seed was refused, and where in it.

use std::path::PathBuf;

use http::StatusCode;

use crate::store::StoreError;

/// Why a seed was refused. The state is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The seed is not what it should be.
    #[error("{place}: {what}")]
    Invalid {
        /// File and line.
        place: Place,
        /// The field, and what is wrong with it.
        what: String,
    },
    /// The service refuses what the seed asks for.
    #[error("{place}: {what} is refused with {status} {code}")]
    Refused {
        /// File and line.
        place: Place,
        /// What it asks for.
        what: String,
        /// The answer's status.
        status: StatusCode,
        /// The answer's code and message.
        code: String,
    },
    /// The store cannot read or write.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where something stands in a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file or folder.
    pub file: PathBuf,
    /// The line, counted from 1; absent in a folder.
    pub line: Option<usize>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}
