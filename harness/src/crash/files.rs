//! All file access of the crash test: models and events of a child, the journal of the shim, images
//! after a crash.
#![expect(
    clippy::disallowed_methods,
    reason = "a crash test makes directories and looks at what is in them"
)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a file to append to it.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Writes a file, and creates its directories.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, bytes)
}

/// Reads a file; a missing one is empty.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}

/// Creates a directory and its parents.
pub fn make_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Removes a file or a directory with its contents, if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a directory with its contents.
pub fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Returns the bytes of all files directly in a directory; 0 when it does not exist.
pub fn bytes_in(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|found| found.len())
        .sum()
}

/// Returns the directories in a directory, sorted by name.
pub fn dirs_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = entries(dir)?;
    all.retain(|path| path.is_dir());
    Ok(all)
}

/// Returns the files in a directory, sorted by name.
pub fn files_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = entries(dir)?;
    all.retain(|path| path.is_file());
    Ok(all)
}

fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)? {
        all.push(entry?.path());
    }
    all.sort();
    Ok(all)
}
