//! A disk that can only be read.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Disk, DiskFile, Entry};

/// Wraps another disk and rejects everything that would change it.
#[derive(Clone, Debug)]
pub struct ReadingDisk(Arc<dyn Disk>);

impl ReadingDisk {
    /// Wraps `disk`.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        ReadingDisk(disk)
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for ReadingDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        if create {
            return refused();
        }
        self.0.open_to_read(path)
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.0.list(dir)
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn copy(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    /// A lock file that does not exist is not held, nor is one on a read-only file system.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let nobody = || Ok(Some(Box::new(()) as Box<dyn Any + Send + Sync>));
        if self.0.open_to_read(path).is_err() {
            return nobody();
        }
        match self.0.lock(path) {
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => nobody(),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => nobody(),
            locked => locked,
        }
    }
}
