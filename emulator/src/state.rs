//! Operations on the whole state: named snapshots, export and import, seeds, Azurite data.
//!
//! They build another state beside the current one and then switch to it
//! ([`Store::replace`](crate::store::Store::replace)), so that after a crash one of the two is
//! complete.

pub mod about;
pub mod archive;
pub mod azurite;
pub mod seed;

pub mod snapshots;
pub mod start;

use std::io::{Read, Write};
use std::path::Path;

use crate::disk::SystemDisk;
use crate::emulator::Emulator;

impl Emulator {
    /// Writes the whole state as one stream, which [`import`](Self::import) reads: records,
    /// payloads, account settings, a moved clock, but no keys. Blocks until done, while other
    /// threads can read and write.
    ///
    /// # Errors
    /// Fails if the state cannot be read or the stream cannot be written.
    pub fn export(&self, to: impl Write) -> Result<(), archive::ArchiveError> {
        archive::export(self.core(), to)
    }

    /// Replaces the current state atomically by that of a stream. Blocks until done.
    ///
    /// # Errors
    /// Fails if the stream is invalid or the store cannot write; the state is then unchanged.
    pub fn import(&self, from: impl Read) -> Result<archive::Imported, archive::ArchiveError> {
        archive::import(self.core(), from)
    }

    /// Creates the missing resources of a seed: a TOML file, or a folder whose sub-folders are
    /// containers.
    ///
    /// # Errors
    /// Fails if the seed is invalid, the service rejects it, or the store cannot write. The state
    /// is then unchanged.
    pub async fn plant(&self, seed: &Path) -> Result<seed::Seeded, seed::SeedError> {
        seed::plant(self, &SystemDisk, seed).await
    }

    /// Imports an Azurite data directory into an empty emulator. Blocks until done.
    ///
    /// # Errors
    /// Fails if the directory is unreadable or invalid, or the store cannot write. The emulator
    /// then stays empty.
    pub fn import_azurite(&self, dir: &Path) -> Result<azurite::Report, azurite::AzuriteError> {
        azurite::import(self.core(), &SystemDisk, dir)
    }
}
