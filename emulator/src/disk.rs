//! The only module that opens the emulator's own files.
//!
//! [`Disk`] is a trait so that tests can use a disk that loses writes, tears them or fails.

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

/// Attempts, 1 ms apart ([`wait_for_lock`]), to lock a file that its last owner is about to
/// release.
pub(crate) const LOCK_TRIES_MAX: u32 = 1_000;

/// A file or directory in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file name without the directory.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
}

/// Free space of the file system that holds a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that this process may still allocate; 0 when no further file can be created.
    pub available: u64,
    /// Total bytes of the file system.
    pub total: u64,
    /// Whether the file system accepts writes.
    pub is_writable: bool,
}

/// Distinguishes a file from every other file that has, or later gets, the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Creates an identity from device and inode.
    pub const fn new(device: u64, inode: u64) -> Self {
        Identity { device, inode }
    }
}

/// Whether the error means that the disk or the user's quota is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Operations on files and directories.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file for reading and writing; with `create`, creates it if it does not exist.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading; writing to it fails.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.open(path, false)
    }

    /// Creates an empty file that only its owner can read, where the system has owners.
    ///
    /// # Errors
    /// Any error of the operating system; `AlreadyExists` when the file exists.
    fn create_secret(&self, path: &Path) -> io::Result<()> {
        self.open(path, true).map(drop)
    }

    /// Creates a directory and its parents, and makes their names durable.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Creates a directory as [`Disk::create_dir`] does. A new directory can be entered only by its
    /// owner, where the system has owners.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn create_private_dir(&self, dir: &Path) -> io::Result<()> {
        self.create_dir(dir)
    }

    /// Returns the space that is left for files in `dir`; `None` where the system cannot tell.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn room(&self, dir: &Path) -> io::Result<Option<Room>> {
        let _ = dir;
        Ok(None)
    }

    /// Returns the identity of the file that has this path now; `None` where the system has none.
    ///
    /// # Errors
    /// Any error of the operating system; `NotFound` when there is no such file.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        let _ = path;
        Ok(None)
    }

    /// Allocates `bytes` for a file without writing them. Fails with `Unsupported` where the system
    /// cannot do that.
    ///
    /// # Errors
    /// Any error of the operating system; the file may then exist and be shorter.
    fn set_aside(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let _ = (path, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Lists a directory; a missing one is empty.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    /// Removes a file.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and its contents, if it exists.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;

    /// Renames a file and replaces a file that has the new name.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Copies a file.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes a lock that is released when the returned value is dropped; `None` when another
    /// process has it.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// An open file. Each call gives its own offset: many threads use one file at once.
pub trait DiskFile: Debug + Send + Sync {
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends earlier; otherwise any error of the operating system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes contents and length durable.
    ///
    /// # Errors
    /// Any error of the operating system. It is then unknown which earlier writes are durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn len(&self) -> io::Result<u64>;

    /// Returns the identity of the open file, even if its path now leads elsewhere; `None` where
    /// the system has none.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(None)
    }

    /// Whether the file is empty.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Longest file in bytes that is read as a whole: an Azurite database or a seed.
const SMALL_BYTES_MAX: u64 = 1 << 30;

/// Reads a small file; returns `None` if it does not exist.
///
/// # Errors
/// `FileTooLarge` above 1 GiB, so that a sparse file cannot exhaust the memory; otherwise any error
/// of the operating system.
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

/// Replaces a small file atomically: after a crash it is the old or the new one.
///
/// # Errors
/// Any error of the operating system.
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
/// Any error of the operating system.
pub fn replace_secret(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    match disk.remove(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => disk.create_secret(&beside)?,
    }
    replace_small(disk, path, bytes)
}

/// Copies the files of a directory and its subdirectories, except those that `skip` matches.
///
/// # Errors
/// Any error of the operating system.
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

/// Fails with `NotFound` unless `path` still leads to this open file. Writes to a file that was
/// removed, moved or replaced are lost, although syncing it succeeds.
///
/// # Errors
/// `NotFound`, or any other error of the operating system.
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

/// Lists all files of a directory and its subdirectories, with paths relative to `dir`.
///
/// # Errors
/// Any error of the operating system.
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

/// Lists the names of the subdirectories that are valid UTF-8.
///
/// # Errors
/// Any error of the operating system.
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

/// Sleeps between two attempts to lock a file. Merely yielding would starve a thread of lower
/// priority, which may be the lock's last owner.
#[expect(
    clippy::disallowed_methods,
    reason = "opening a store waits for its lock, and the system does not signal a release"
)]
pub(crate) fn wait_for_lock() {
    std::thread::sleep(Duration::from_millis(1));
}
