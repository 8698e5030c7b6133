//! Import of an Azurite data directory: three LokiJS databases and the extent files.
//!
//! The import reads and checks everything first and then builds the new state beside the current
//! one, so that a failed import leaves nothing behind. It opens Azurite's files for reading only.
//!
//! Bytes, block lists, page ranges, snapshots, uncommitted blocks, properties, metadata, tags,
//! tiers, leases, ETags, times, message ids and visibility, and entities are preserved. Azurite's
//! pop receipts are not: a dequeued message becomes visible at its time or is dequeued again.

mod blobs;
mod build;
mod document;
mod error;
mod extents;
mod loki;
mod queues;
mod tables;

use std::path::Path;

use self::build::Build;
use self::error::{BLOBS, QUEUES, TABLES};
use self::extents::Extents;
use self::loki::Database;
use crate::check;
use crate::core::Core;
use crate::disk::Disk;

pub use build::Report;
pub use error::{AzuriteError, DATABASES};

const BLOB_EXTENTS: &str = "__blobstorage__";
const QUEUE_EXTENTS: &str = "__queuestorage__";
/// Returns `true` if a directory contains Azurite data.
///
/// # Errors
/// Fails if the directory cannot be read.
pub fn is_azurite(disk: &dyn Disk, dir: &Path) -> std::io::Result<bool> {
    let found = disk.list(dir)?;
    Ok(found
        .iter()
        .any(|entry| DATABASES.contains(&entry.name.as_str())))
}

/// Imports an Azurite directory into an empty emulator.
///
/// # Errors
/// Fails if the directory is unreadable or invalid, or the store cannot write. The emulator then
/// stays empty.
pub fn import(core: &Core, disk: &dyn Disk, dir: &Path) -> Result<Report, AzuriteError> {
    let data = Data::read(disk, dir)?;
    let configured = |name: &str| core.config.account(name).is_some();
    if let Some(unknown) = data.accounts().find(|name| !configured(name)) {
        return Err(AzuriteError::Account(unknown.to_owned()));
    }
    core.store.replace(|successor| {
        if !core.store.is_fresh() {
            return Err(AzuriteError::NotEmpty);
        }
        let now = core.clock.now();
        let mut build = Build::new(successor, now);
        data.build(&mut build)?;
        let (report, stamp) = (build.report, build.stamp());
        successor.stamp(stamp)?;
        match check::first(successor)? {
            // For example, two documents have the same name.
            Some(finding) => Err(AzuriteError::Shape {
                file: dir.to_owned(),
                what: finding.what,
            }),
            None => Ok(report),
        }
    })
}

/// The checked contents of a directory.
struct Data {
    blobs: blobs::Blobs,
    queues: queues::Queues,
    tables: tables::Tables,
    blob_extents: Extents,
    queue_extents: Extents,
}

impl Data {
    fn read(disk: &dyn Disk, dir: &Path) -> Result<Self, AzuriteError> {
        let open = |name: &str| Database::read(disk, &dir.join(name));
        let (blobs, queues, tables) = (open(BLOBS)?, open(QUEUES)?, open(TABLES)?);
        if blobs.is_none() && queues.is_none() && tables.is_none() {
            return Err(AzuriteError::None(dir.to_owned()));
        }
        let blobs = blobs::Blobs::read(blobs.unwrap_or_default())?;
        let queues = queues::Queues::read(queues.unwrap_or_default())?;
        let tables = tables::Tables::read(tables.unwrap_or_default())?;
        let mut missing = Vec::new();
        let mut extents = |name: &str, chunks: &mut dyn Iterator<Item = &extents::Chunk>| {
            Extents::open(disk, &dir.join(name), chunks, &mut missing)
        };
        let blob_extents = extents(BLOB_EXTENTS, &mut blobs.chunks())?;
        let queue_extents = extents(QUEUE_EXTENTS, &mut queues.chunks())?;
        if !missing.is_empty() {
            return Err(AzuriteError::Missing(missing));
        }
        Ok(Data {
            blobs,
            queues,
            tables,
            blob_extents,
            queue_extents,
        })
    }

    fn accounts(&self) -> impl Iterator<Item = &str> {
        let blobs = self.blobs.accounts().chain(self.queues.accounts());
        blobs.chain(self.tables.accounts())
    }

    fn build(mut self, build: &mut Build<'_, '_>) -> Result<(), AzuriteError> {
        self.blobs.build(build, &mut self.blob_extents)?;
        self.queues.build(build, &mut self.queue_extents)?;
        self.tables.build(build)
    }
}
