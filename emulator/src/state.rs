//! The whole state as one thing: named snapshots, export and import, seeds, data of Azurite.
//!
//! Everything here makes another state beside the current one and then goes on with it
//! ([`Store::replace`](crate::store::Store::replace)): after a crash there is the one or the other.

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
    /// payloads, settings of accounts, a clock that was moved; no keys. It blocks; others read and
    /// write meanwhile.
    ///
    /// # Errors
    /// When the state cannot be read, or the stream not be written.
    pub fn export(&self, to: impl Write) -> Result<(), archive::ArchiveError> {
        archive::export(self.core(), to)
    }

    /// Goes on with the state of a stream in place of the current one, which goes at once. It
    /// blocks meanwhile.
    ///
    /// # Errors
    /// What is wrong with the stream, or that the store cannot write: then the state is as it was.
    pub fn import(&self, from: impl Read) -> Result<archive::Imported, archive::ArchiveError> {
        archive::import(self.core(), from)
    }

    /// Makes what a seed names and the emulator does not have: a file in TOML, or a folder whose
    /// sub-folders are containers.
    ///
    /// # Errors
    /// What is wrong with the seed, or that the store cannot write: then the state is as it was.
    pub async fn plant(&self, seed: &Path) -> Result<seed::Seeded, seed::SeedError> {
        seed::plant(self, &SystemDisk, seed).await
    }

    /// Imports a data directory of Azurite into an emulator that holds nothing. It blocks
    /// meanwhile.
    ///
    /// # Errors
    /// What is wrong with the directory, or that the store cannot write: then the emulator still
    /// holds nothing.
    pub fn import_azurite(&self, dir: &Path) -> Result<azurite::Report, azurite::AzuriteError> {
        azurite::import(self.core(), &SystemDisk, dir)
    }
}
