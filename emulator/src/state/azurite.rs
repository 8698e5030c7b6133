//! Import of a data directory of Azurite: three databases of LokiJS and the files of its extents.
//!
//! All of it is read and checked before anything is built, and the state that it becomes is built
//! beside the current one: a directory that cannot be imported leaves nothing. Azurite's files are
//! opened for reading only.
//!
//! Kept as they are: bytes, block lists, page ranges, snapshots, uncommitted blocks, properties,
//! metadata, tags, tiers, leases, ETags, times, message ids and visibility, entities. Pop receipts
//! of Azurite are not: a message that was taken comes back at its time or is taken again.

mod blobs;
mod document;
mod extents;
mod loki;
mod queues;
mod tables;

use std::path::{Path, PathBuf};

use serde::Serialize;
use smalt_protocol::{Service as ServiceName, Timestamp};

use self::extents::Extents;
use self::loki::Database;
use crate::check;
use crate::core::Core;
use crate::disk::Disk;
use crate::keys;
use crate::records::Record as _;
use crate::store::{Stamp, StoreError, Successor};

const BLOBS: &str = "__azurite_db_blob__.json";
const QUEUES: &str = "__azurite_db_queue__.json";
const TABLES: &str = "__azurite_db_table__.json";
/// The databases; a directory of Azurite has one of them at least.
pub const DATABASES: [&str; 3] = [BLOBS, QUEUES, TABLES];
const BLOB_EXTENTS: &str = "__blobstorage__";
const QUEUE_EXTENTS: &str = "__queuestorage__";
/// Names of missing files that an error shows.
const MISSING_SHOWN: usize = 10;

/// What an import brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Containers.
    pub containers: u64,
    /// Blobs, without their snapshots.
    pub blobs: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Uncommitted blocks.
    pub uncommitted_blocks: u64,
    /// Queues.
    pub queues: u64,
    /// Messages that have not expired.
    pub messages: u64,
    /// Tables.
    pub tables: u64,
    /// Entities.
    pub entities: u64,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} containers, {} blobs, {} snapshots, {} uncommitted blocks, {} queues, \
             {} messages, {} tables, {} entities",
            self.containers,
            self.blobs,
            self.snapshots,
            self.uncommitted_blocks,
            self.queues,
            self.messages,
            self.tables,
            self.entities
        )
    }
}

/// Why a directory of Azurite cannot be imported. Nothing is then.
#[derive(Debug, thiserror::Error)]
pub enum AzuriteError {
    /// There is no database of Azurite.
    #[error("{} holds no data of Azurite: there is no {BLOBS}, {QUEUES} or {TABLES}", .0.display())]
    None(PathBuf),
    /// A database is of another version than this release knows.
    #[error(
        "{} is of database version {found}; this release imports version {}, \
         which Azurite 3 writes",
        file.display(),
        loki::VERSION
    )]
    Version {
        /// The database.
        file: PathBuf,
        /// Its version.
        found: String,
    },
    /// A database holds what Azurite 3 does not write.
    #[error("{}: {what}", file.display())]
    Shape {
        /// The database.
        file: PathBuf,
        /// Where, and what is wrong.
        what: String,
    },
    /// Files that the databases refer to are missing or too short.
    #[error("files of Azurite are missing or too short: {}", shown(.0))]
    Missing(Vec<PathBuf>),
    /// The databases hold accounts that this emulator does not have.
    #[error("the data is of account {0}, too: start smalt with it (AZURITE_ACCOUNTS)")]
    Account(String),
    /// The emulator holds data of its own.
    #[error("the store holds data already: import into an empty one (another --location)")]
    NotEmpty,
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The store cannot write.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn shown(missing: &[PathBuf]) -> String {
    let mut names: Vec<_> = missing.iter().take(MISSING_SHOWN).collect();
    names.sort();
    let names: Vec<_> = names
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    match missing.len().saturating_sub(MISSING_SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Whether a directory holds data of Azurite.
///
/// # Errors
/// When the directory cannot be read.
pub fn is_azurite(disk: &dyn Disk, dir: &Path) -> std::io::Result<bool> {
    let found = disk.list(dir)?;
    Ok(found
        .iter()
        .any(|entry| DATABASES.contains(&entry.name.as_str())))
}

/// Imports a directory of Azurite into an emulator that holds nothing.
///
/// # Errors
/// What is wrong with the directory, or that the store cannot write: then the emulator still holds
/// nothing.
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
            // Two documents of one name, for instance.
            Some(finding) => Err(AzuriteError::Shape {
                file: dir.to_owned(),
                what: finding.what,
            }),
            None => Ok(report),
        }
    })
}

/// Everything that a directory holds, checked.
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

/// The state that the data becomes.
struct Build<'a, 'b> {
    successor: &'a mut Successor<'b>,
    now: Timestamp,
    tick: Timestamp,
    report: Report,
}

impl<'a, 'b> Build<'a, 'b> {
    fn new(successor: &'a mut Successor<'b>, now: Timestamp) -> Self {
        Build {
            successor,
            now,
            tick: now,
            report: Report::default(),
        }
    }

    /// The properties of a service in each account.
    fn services(
        &mut self,
        name: ServiceName,
        services: &[document::Service],
    ) -> Result<(), AzuriteError> {
        for service in services {
            let key = keys::service(service.account(), name.as_str());
            let properties = service.properties();
            self.successor.transact(|tx| properties.save(tx, key))?;
        }
        Ok(())
    }

    /// A tick that nothing else has.
    fn tick(&mut self) -> u64 {
        self.tick = self.tick.plus_ticks(1);
        self.tick.ticks()
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            now: self.now,
            tick: self.tick,
        }
    }
}
