//! The one place of the crash test that touches files: models and events of a child, the journal of
//! the shim, images of what a crash left.
#![expect(
    clippy::disallowed_methods,
    reason = "a crash test makes directories and looks at what is in them"
)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a file to append to it.
///
/// # Errors
/// The system's.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Writes a file, and the directories above it.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, bytes)
}

/// Reads a file; one that is not there is empty.
///
/// # Errors
/// The system's.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}

/// Makes a directory and those above it.
///
/// # Errors
/// The system's.
pub fn make_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Removes a file or a directory with everything in it, if it is there.
///
/// # Errors
/// The system's.
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

/// Copies a directory with everything in it.
///
/// # Errors
/// The system's.
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

/// Bytes of all files of a directory, without those below it; none when it is not there.
pub fn bytes_in(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|found| found.len())
        .sum()
}

/// Directories in a directory, in the order of their names.
///
/// # Errors
/// The system's.
pub fn dirs_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = entries(dir)?;
    all.retain(|path| path.is_dir());
    Ok(all)
}

/// Files in a directory, in the order of their names.
///
/// # Errors
/// The system's.
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
