//! The directory of recordings, and the report's file: the one place of the replay that touches
//! files.
#![expect(
    clippy::disallowed_methods,
    reason = "recordings come from files, the report goes to one"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::recording::{self, LoadError, Recording};

/// Why a corpus cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or directory cannot be read.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// A file is not a recording.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// The paths of all recordings below a directory, relative to it, in order.
///
/// # Errors
/// When a directory cannot be read.
pub fn names(dir: &Path) -> Result<Vec<String>, CorpusError> {
    let mut names = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        let entries = fs::read_dir(&next).map_err(|e| CorpusError::Io(next.clone(), e))?;
        for entry in entries {
            let path = entry.map_err(|e| CorpusError::Io(next.clone(), e))?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "jsonl")
                && let Ok(relative) = path.strip_prefix(dir)
            {
                names.push(relative.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Reads one recording.
///
/// # Errors
/// When the file cannot be read or is not a recording.
pub fn load(dir: &Path, name: &str) -> Result<Recording, CorpusError> {
    let path = dir.join(name);
    let text = fs::read_to_string(&path).map_err(|e| CorpusError::Io(path, e))?;
    Ok(recording::parse(name, &text)?)
}

/// Writes the JSON report.
///
/// # Errors
/// When the file cannot be written.
pub fn write_report(path: &Path, json: &str) -> Result<(), CorpusError> {
    fs::write(path, json).map_err(|e| CorpusError::Io(path.to_owned(), e))
}
