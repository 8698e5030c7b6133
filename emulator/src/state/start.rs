//! What is done with the state between the opening of the store and the first request.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::azurite::{self, AzuriteError};
use super::seed::{self, SeedError, Seeded};
use crate::disk::{Disk, read_small, replace_small};
use crate::emulator::Emulator;
use crate::store::SnapshotError;

/// Beside the store: which data of Azurite it was made of.
const NOTE: &str = "azurite-import";

/// What a start is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Where the store is; absent in memory.
    pub location: Option<PathBuf>,
    /// A data directory of Azurite to import.
    pub azurite: Option<PathBuf>,
    /// A seed.
    pub seed: Option<PathBuf>,
}

/// What a start has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Which directory of Azurite was imported.
    pub imported: Option<(PathBuf, azurite::Report)>,
    /// What the seed did.
    pub seeded: Option<Seeded>,
    /// Where data of Azurite lies that the store was not made of.
    pub passed_over: Option<PathBuf>,
}

/// Why a start cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Data of Azurite cannot be imported.
    #[error(
        "{} holds data of Azurite that cannot be imported: {error}; nothing was imported or \
         changed. To start without it, choose another --location",
        dir.display()
    )]
    Azurite {
        /// The directory.
        dir: PathBuf,
        /// Why.
        error: AzuriteError,
    },
    /// The seed is refused.
    #[error("cannot apply the seed")]
    Seed(#[from] SeedError),
    /// The state after the start cannot be kept.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A file cannot be read or written.
    #[error("cannot read or write {}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

/// Imports what Azurite left, plants the seed, keeps the state after the start.
///
/// A location that holds data of Azurite and no store yet is imported by itself: whoever changes
/// one word of a command line expects to find the same data. Azurite's files stay as they are.
///
/// # Errors
/// When an import or the seed is refused: then the state is as it was.
pub async fn start(
    emulator: &Emulator,
    disk: &dyn Disk,
    what: &Start,
) -> Result<Started, StartError> {
    let mut started = Started::default();
    let location = what.location.as_deref();
    if let Some(dir) = source(disk, what)? {
        let note = location.map(|location| location.join(NOTE));
        let fingerprint = fingerprint(disk, &dir)?;
        if emulator.core().store.is_fresh() {
            // Before the import: without it the next start imports again.
            if let Some(note) = &note {
                replace_small(disk, note, fingerprint.as_bytes()).map_err(io(note))?;
            }
            let report = azurite::import(emulator.core(), disk, &dir);
            let report = report.map_err(|error| StartError::Azurite {
                dir: dir.clone(),
                error,
            })?;
            started.imported = Some((dir, report));
        } else if let Some(note) = &note
            && read_small(disk, note).map_err(io(note))? != Some(fingerprint.into_bytes())
        {
            started.passed_over = Some(dir);
        }
    }
    if let Some(seed) = &what.seed {
        started.seeded = Some(seed::plant(emulator, disk, seed).await?);
    }
    emulator.keep_start(what.seed.is_some())?;
    Ok(started)
}

/// The directory of Azurite that the store is to be made of.
fn source(disk: &dyn Disk, what: &Start) -> Result<Option<PathBuf>, StartError> {
    if what.azurite.is_some() {
        return Ok(what.azurite.clone());
    }
    let Some(location) = &what.location else {
        return Ok(None);
    };
    let found = azurite::is_azurite(disk, location).map_err(io(location))?;
    Ok(found.then(|| location.clone()))
}

fn fingerprint(disk: &dyn Disk, dir: &Path) -> Result<String, StartError> {
    let mut sum = Sha256::new();
    for name in azurite::DATABASES {
        let file = dir.join(name);
        let bytes = read_small(disk, &file).map_err(io(&file))?;
        sum.update(bytes.unwrap_or_default());
    }
    let hash: [u8; 32] = sum.finalize().into();
    Ok(super::archive::hex(&hash))
}

fn io(file: &Path) -> impl FnOnce(std::io::Error) -> StartError + use<'_> {
    move |error| StartError::Io {
        file: file.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SystemDisk;

    const EMPTY: &str = r#"{"databaseVersion": 1.5, "collections": []}"#;
    const CONTAINER: &str = r#"{"databaseVersion": 1.5, "collections": [
        {"name": "$CONTAINERS_COLLECTION$", "data": [{
            "accountName": "devstoreaccount1", "name": "there",
            "properties": {"etag": "0x1", "lastModified": "2026-01-02T03:04:05Z"}
        }]}
    ]}"#;

    fn write(dir: &Path, text: &str) {
        let file = dir.join("__azurite_db_blob__.json");
        replace_small(&SystemDisk, &file, text.as_bytes()).unwrap();
    }

    async fn started(dir: &Path) -> Result<Started, StartError> {
        let emulator = Emulator::builder().durable(dir).open().unwrap();
        let what = Start {
            location: Some(dir.to_owned()),
            ..Start::default()
        };
        let started = start(&emulator, &SystemDisk, &what).await;
        emulator.close().unwrap();
        started
    }

    /// Whoever starts smalt where Azurite was finds its data, once, and hears of later changes.
    #[tokio::test]
    async fn data_of_azurite_is_imported_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(started(dir.path()).await.unwrap(), Started::default());
        write(dir.path(), CONTAINER);
        let first = started(dir.path()).await.unwrap();
        assert_eq!(first.imported.unwrap().1.containers, 1);
        assert_eq!(started(dir.path()).await.unwrap(), Started::default());
        write(dir.path(), EMPTY);
        let later = started(dir.path()).await.unwrap();
        assert_eq!(later.passed_over.as_deref(), Some(dir.path()));
    }

    /// What cannot be imported ends the start, each time, and leaves nothing that hides it.
    #[tokio::test]
    async fn data_of_azurite_that_cannot_be_imported_is_not_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &EMPTY.replace("1.5", "9.5"));
        for _ in 0..2 {
            let error = started(dir.path()).await.unwrap_err().to_string();
            assert!(
                error.contains("version 9.5") && error.contains("--location"),
                "{error}"
            );
        }
        write(dir.path(), CONTAINER);
        assert!(started(dir.path()).await.unwrap().imported.is_some());
    }
}
