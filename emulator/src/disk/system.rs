//! The machine's file system as a [`Disk`]. All platform-specific code is here.

use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Disk, DiskFile, Entry};
#[cfg(unix)]
use super::{Identity, Room};

/// The machine's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

/// A file system with fewer free inodes counts as full: a segment needs one, and a new file of the
/// engine another.
#[cfg(unix)]
const FREE_NAMES_MIN: u64 = 16;

impl SystemDisk {
    fn make_dir(&self, dir: &Path, how: &fs::DirBuilder) -> io::Result<()> {
        if dir.as_os_str().is_empty() || dir.is_dir() {
            return Ok(());
        }
        let parent = dir.parent().unwrap_or(Path::new(""));
        self.create_dir(parent)?;
        match how.create(dir) {
            // Another process created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made?,
        }
        self.sync_dir(if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        })
    }
}

#[cfg(unix)]
fn identity(found: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    Identity::new(found.dev(), found.ino())
}

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

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
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
        self.make_dir(dir, &fs::DirBuilder::new())
    }

    fn create_private_dir(&self, dir: &Path) -> io::Result<()> {
        let private = fs::DirBuilder::new();
        #[cfg(unix)]
        let private = {
            let mut private = private;
            std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
            private
        };
        self.make_dir(dir, &private)
    }

    #[cfg(unix)]
    fn room(&self, dir: &Path) -> io::Result<Option<Room>> {
        let found = rustix::fs::statvfs(dir)?;
        // A file system that does not count inodes, such as btrfs, reports 0 of them.
        let has_names = found.f_files == 0 || found.f_favail >= FREE_NAMES_MIN;
        Ok(Some(Room {
            available: if has_names {
                found.f_bavail.saturating_mul(found.f_frsize)
            } else {
                0
            },
            total: found.f_blocks.saturating_mul(found.f_frsize),
            is_writable: !(found.f_flag).contains(rustix::fs::StatVfsMountFlags::RDONLY),
        }))
    }

    #[cfg(unix)]
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        Ok(Some(identity(&fs::symlink_metadata(path)?)))
    }

    #[cfg(unix)]
    fn set_aside(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let flags = rustix::fs::FallocateFlags::empty();
        Ok(rustix::fs::fallocate(&file, flags, 0, bytes)?)
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

    /// Windows makes names durable by itself and cannot open a directory for syncing.
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

    #[cfg(unix)]
    fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(Some(identity(&self.0.metadata()?)))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Only the new directory becomes private; its parents and existing directories keep their
    /// permissions.
    #[test]
    fn only_the_owner_enters_a_private_directory() {
        let above = tempfile::tempdir().unwrap();
        let (parent, dir) = (above.path().join("a"), above.path().join("a/data"));
        SystemDisk.create_private_dir(&dir).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        SystemDisk.create_dir(&above.path().join("usual")).unwrap();
        assert_eq!(mode(&parent), mode(&above.path().join("usual")));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        SystemDisk.create_private_dir(&dir).unwrap();
        assert_eq!(mode(&dir), 0o755);
    }

    /// A reserve reduces the free space; removing the file returns it.
    #[test]
    fn reserve_takes_disk_space() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reserve");
        match SystemDisk.set_aside(&path, 1 << 20) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            taken => {
                taken.unwrap();
                let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap());
                assert!(blocks * 512 >= 1 << 20, "{blocks}");
            }
        }
        let room = SystemDisk.room(dir.path()).unwrap().unwrap();
        assert!(room.is_writable && room.total >= room.available);
    }
}
