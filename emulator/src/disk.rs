//! The only module that opens the emulator's own files. What is special to one system lives here.
//!
//! [`Disk`] is a seam: tests put a disk in its place that loses, tears and refuses.

use std::any::Any;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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

/// Files and directories.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file for reading and writing; with `create`, makes it when it is not there.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that somebody else owns, for reading only.
    ///
    /// # Errors
    /// The system's.
    fn open_foreign(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
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

    /// Whether it is empty.
    ///
    /// # Errors
    /// The system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Reads a small file; `None` when it is not there.
///
/// # Errors
/// The system's.
pub fn read_small(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    whole(disk.open(path, false))
}

/// Reads a file that somebody else owns as a whole; `None` when it is not there.
///
/// # Errors
/// The system's.
pub fn read_foreign(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    whole(disk.open_foreign(path))
}

fn whole(opened: io::Result<Arc<dyn DiskFile>>) -> io::Result<Option<Vec<u8>>> {
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; file.len()? as usize];
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

/// The machine's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

#[expect(
    clippy::disallowed_methods,
    reason = "this module opens the emulator's files"
)]
impl Disk for SystemDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(path)?;
        Ok(Arc::new(SystemFile(file)))
    }

    fn open_foreign(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SystemFile(File::open(path)?)))
    }

    fn create_secret(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).map(drop)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.as_os_str().is_empty() || dir.is_dir() {
            return Ok(());
        }
        let parent = dir.parent().unwrap_or(Path::new(""));
        self.create_dir(parent)?;
        match fs::create_dir(dir) {
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made?,
        }
        self.sync_dir(if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        entries
            .map(|entry| {
                let entry = entry?;
                Ok(Entry {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    len: entry.metadata()?.len(),
                })
            })
            .collect()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::copy(from, to)?;
        OpenOptions::new().write(true).open(to)?.sync_all()
    }

    #[cfg(not(windows))]
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    /// Windows writes names through by itself and opens no directory for it.
    #[cfg(windows)]
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[derive(Debug)]
struct SystemFile(File);

impl DiskFile for SystemFile {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, buffer, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.0, buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }

    #[cfg(windows)]
    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(&self.0, bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
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
