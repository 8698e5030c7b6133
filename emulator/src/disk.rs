//! The only module that opens the emulator's own files.
//!
//! [`Disk`] is a seam: tests put a disk in its place that loses, tears and refuses.

mod reading;
mod system;

use std::any::Any;
use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use reading::ReadingDisk;
pub use system::SystemDisk;

/// Tries to get a file that its last owner is about to let go, [`wait_for_lock`] apart: a second.
pub(crate) const LOCK_TRIES_MAX: u32 = 1_000;

/// A file or directory in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without the directory.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
}

/// Room on the file system that holds a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that this process may still take; 0 when no further file can be made.
    pub available: u64,
    /// Bytes of the whole file system.
    pub total: u64,
    /// Whether the file system accepts writes.
    pub is_writable: bool,
}

/// Tells a file from every other file that has, or later gets, the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// An identity of these two numbers.
    pub const fn new(device: u64, inode: u64) -> Self {
        Identity { device, inode }
    }
}

/// Whether an error says that the disk, or the quota of the user, is used up.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Files and directories.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file for reading and writing; with `create`, makes it when it is not there.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file to be read; writing to it fails.
    ///
    /// # Errors
    /// The system's.
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.open(path, false)
    }

    /// Makes an empty file that only its owner can read, where the system knows owners.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` when it is there.
    fn create_secret(&self, path: &Path) -> io::Result<()> {
        self.open(path, true).map(drop)
    }

    /// Makes a directory and those above it, and makes their names durable.
    ///
    /// # Errors
    /// The system's.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes a directory as [`Disk::create_dir`] does. If it is new, only its owner can enter it,
    /// where the system knows owners.
    ///
    /// # Errors
    /// The system's.
    fn create_private_dir(&self, dir: &Path) -> io::Result<()> {
        self.create_dir(dir)
    }

    /// The room that is left for files in `dir`; `None` where the system cannot tell.
    ///
    /// # Errors
    /// The system's.
    fn room(&self, dir: &Path) -> io::Result<Option<Room>> {
        let _ = dir;
        Ok(None)
    }

    /// The identity of the file that has this path now; `None` where the system has none.
    ///
    /// # Errors
    /// The system's; `NotFound` when there is no such file.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        let _ = path;
        Ok(None)
    }

    /// Takes `bytes` of the disk for a file without writing them. Where the system cannot do that
    /// it fails with `Unsupported`.
    ///
    /// # Errors
    /// The system's; the file may then exist and be shorter.
    fn set_aside(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let _ = (path, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What a directory holds; nothing when it is not there.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with everything in it, if it is there.
    ///
    /// # Errors
    /// The system's.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;

    /// Gives a file another name, in place of a file that has it.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Copies a file.
    ///
    /// # Errors
    /// The system's.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes durable which names a directory holds.
    ///
    /// # Errors
    /// The system's.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes a lock that lasts as long as what is returned; `None` when another process has it.
    ///
    /// # Errors
    /// The system's.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// An open file. Places are given with each call: many threads use one file at once.
pub trait DiskFile: Debug + Send + Sync {
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before; else the system's.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// The system's.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes contents and length durable.
    ///
    /// # Errors
    /// The system's. What was written before is then unknown.
    fn sync_data(&self) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// The system's.
    fn len(&self) -> io::Result<u64>;

    /// The identity of the open file, whatever has its path by now; `None` where the system has
    /// none.
    ///
    /// # Errors
    /// The system's.
    fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(None)
    }

    /// Whether it is empty.
    ///
    /// # Errors
    /// The system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// The longest file that is read as a whole: a database of Azurite, a seed.
const SMALL_BYTES_MAX: u64 = 1 << 30;

/// Reads a small file; `None` when it is not there.
///
/// # Errors
/// `FileTooLarge` above 1 GiB, so that a sparse file cannot exhaust the memory; else the system's.
pub fn read_small(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open_to_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.len()?;
    if length > SMALL_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; length as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(Some(bytes))
}

/// Replaces a small file: after a crash it is the old or the new one.
///
/// # Errors
/// The system's.
pub fn replace_small(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    if disk.open(&beside, true)?.len()? > bytes.len() as u64 {
        disk.remove(&beside)?;
    }
    let file = disk.open(&beside, true)?;
    file.write_at(bytes, 0)?;
    file.sync_data()?;
    disk.rename(&beside, path)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Replaces a small file as [`replace_small`] does, with one that only its owner can read.
///
/// # Errors
/// The system's.
pub fn replace_secret(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    match disk.remove(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => disk.create_secret(&beside)?,
    }
    replace_small(disk, path, bytes)
}

/// Copies the files of a directory and of those below it, but for those that `skip` names.
///
/// # Errors
/// The system's.
pub fn copy_dir(
    disk: &dyn Disk,
    from: &Path,
    to: &Path,
    skip: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    disk.create_private_dir(to)?;
    for path in files_below(from)? {
        if skip(&from.join(&path)) {
            continue;
        }
        let target = to.join(&path);
        disk.create_dir(target.parent().unwrap_or(to))?;
        disk.copy(&from.join(&path), &target)?;
    }
    disk.sync_dir(to)
}

/// Fails with `NotFound` unless the path still leads to this open file. What is written to a file
/// that was removed, moved or replaced is lost, and syncing it succeeds all the same.
///
/// # Errors
/// `NotFound`, or the system's.
pub fn check_is_at(disk: &dyn Disk, path: &Path, file: &dyn DiskFile) -> io::Result<()> {
    let opened = file.identity()?;
    if opened == disk.identity(path)? {
        return Ok(());
    }
    let text = format!(
        "{}: removed, moved or replaced while it was open",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::NotFound, text))
}

/// All files of a directory and of those below it, relative to it.
///
/// # Errors
/// The system's.
pub fn files_below(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        for entry in fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The names of the directories in a directory that can be shown as text.
///
/// # Errors
/// The system's.
pub fn folders_in(dir: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.path().is_dir() {
            found.extend(entry.file_name().into_string());
        }
    }
    Ok(found)
}

/// Between two tries to lock a file. A thread that merely yields leaves nothing to one of lower
/// priority, which its last owner may be.
#[expect(
    clippy::disallowed_methods,
    reason = "who opens a store waits for it, and nothing tells when a lock is free"
)]
pub(crate) fn wait_for_lock() {
    std::thread::sleep(Duration::from_millis(1));
}
