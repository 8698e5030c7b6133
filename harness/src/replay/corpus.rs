//! The directory of recordings and traces, and the files that are written: only this module
//! accesses files.
#![expect(
    clippy::disallowed_methods,
    reason = "recordings come from files, reports and traces go to them"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use smalt_protocol::Service;

use super::recording::{self, LoadError, Recording};
use crate::traces::{convert, format};

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

/// Returns the sorted paths of all recordings below a directory, relative to it.
pub fn names(dir: &Path) -> Result<Vec<String>, CorpusError> {
    let files = files(dir, &["jsonl", "ndjson"])?;
    let relative = files.iter().filter_map(|path| path.strip_prefix(dir).ok());
    let mut names: Vec<String> = relative
        .map(|path| path.to_string_lossy().replace('\\', "/"))
        .collect();
    names.sort();
    Ok(names)
}

/// Returns the sorted paths of all files below a directory with one of these extensions.
pub fn files(dir: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, CorpusError> {
    let mut files = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        let entries = fs::read_dir(&next).map_err(|e| CorpusError::Io(next.clone(), e))?;
        for entry in entries {
            let path = entry.map_err(|e| CorpusError::Io(next.clone(), e))?.path();
            if path.is_dir() {
                open.push(path);
            } else if let Some(found) = path.extension()
                && extensions.iter().any(|extension| found == *extension)
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads one recording, in the corpus's format or as a trace.
pub fn load(dir: &Path, name: &str) -> Result<Recording, CorpusError> {
    let path = dir.join(name);
    let text = fs::read_to_string(&path).map_err(|e| CorpusError::Io(path, e))?;
    if format::is_trace(&text) {
        return Ok(convert::recording(name, &text)?);
    }
    Ok(recording::parse(name, &text)?)
}

/// Reads a text file: a ledger, a document, a recording of another tool.
pub fn read(path: &Path) -> Result<String, CorpusError> {
    fs::read_to_string(path).map_err(|e| CorpusError::Io(path.to_owned(), e))
}

/// Writes a report or a trace, and creates its directory.
pub fn write(path: &Path, text: &str) -> Result<(), CorpusError> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|e| CorpusError::Io(dir.to_owned(), e))?;
    }
    fs::write(path, text).map_err(|e| CorpusError::Io(path.to_owned(), e))
}

/// Parses the name of a service.
pub fn service(text: &str) -> Result<Service, String> {
    let found = Service::ALL
        .into_iter()
        .find(|service| service.as_str() == text);
    found.ok_or_else(|| format!("unknown service {text}: use blob, queue or table"))
}
