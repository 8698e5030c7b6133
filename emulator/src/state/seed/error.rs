//! Errors of a seed, with their location.

use std::path::PathBuf;

use http::StatusCode;

use crate::store::StoreError;

/// Why a seed cannot be applied. The state is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Io {
        /// The file or folder that failed.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The seed is invalid.
    #[error("{place}: {what}")]
    Invalid {
        /// Location of the invalid field.
        place: Place,
        /// The field and the cause.
        what: String,
    },
    /// The service rejects a resource of the seed.
    #[error("{place}: the service rejected {what}: {status} {code}")]
    Refused {
        /// Location of the resource.
        place: Place,
        /// The resource: `container "photos"`.
        what: String,
        /// Status of the response.
        status: StatusCode,
        /// Error code or text of the response.
        code: String,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A location in a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file or folder.
    pub file: PathBuf,
    /// The line, from 1; `None` in a folder.
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
