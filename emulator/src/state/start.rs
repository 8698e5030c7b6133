//! Prepares the state between opening the store and the first request: import, seed, snapshot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::azurite::{self, AzuriteError};
use super::seed::{self, SeedError, Seeded};
use crate::disk::{Disk, read_small, replace_small};
use crate::emulator::Emulator;
use crate::rules::subscription::Subscription;
use crate::store::SnapshotError;

/// File beside the store with the fingerprint of the imported Azurite data.
const NOTE: &str = "azurite-import";

/// What to do at the start.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Directory of the store; `None` in memory.
    pub location: Option<PathBuf>,
    /// Azurite data directory to import.
    pub azurite: Option<PathBuf>,
    /// Seed to apply: a file or folder.
    pub seed: Option<PathBuf>,
    /// TOML file with event subscriptions to create or change.
    pub subscriptions: Option<PathBuf>,
}

/// What the start has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// The imported Azurite directory and what it contained.
    pub imported: Option<(PathBuf, azurite::Report)>,
    /// The counts of the applied seed.
    pub seeded: Option<Seeded>,
    /// Directory with Azurite data that was not imported, because the store already has other data.
    pub passed_over: Option<PathBuf>,
}

/// Why the start failed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The Azurite data cannot be imported.
    #[error(
        "cannot import the Azurite data in {}: {error}; nothing was imported or changed. To start \
         without it, choose another --location",
        dir.display()
    )]
    Azurite {
        /// The Azurite directory.
        dir: PathBuf,
        /// The cause.
        error: AzuriteError,
    },
    /// The seed cannot be applied.
    #[error("cannot apply the seed")]
    Seed(#[from] SeedError),
    /// The subscriptions are invalid.
    #[error("cannot read the event subscriptions in {}: {error}", file.display())]
    Subscriptions {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// The snapshot of the state after the start cannot be saved.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A file cannot be read or written.
    #[error("cannot read or write {}: {error}", file.display())]
    Io {
        /// The file that failed.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

/// Imports Azurite data, applies the seed and saves the state after the start.
///
/// A location with Azurite data and no store yet is imported automatically: users who only replace
/// `azurite` by `smalt` on the command line expect to find the same data. Azurite's files stay
/// unchanged.
///
/// # Errors
/// Fails if the import or the seed fails; the state is then unchanged.
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
            // Written first, because the next start repeats an interrupted import.
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
    let is_new = what.seed.is_some() || emulator.core().store.is_fresh();
    if let Some(file) = &what.subscriptions {
        subscribe(emulator, disk, file).await?;
    }
    emulator.keep_start(is_new)?;
    Ok(started)
}

/// Creates or changes the subscriptions of a file. Webhooks need not answer yet, because programs
/// usually start after the services that they use.
async fn subscribe(emulator: &Emulator, disk: &dyn Disk, file: &Path) -> Result<(), StartError> {
    let invalid = |error: &dyn std::fmt::Display| StartError::Subscriptions {
        file: file.to_owned(),
        error: error.to_string(),
    };
    let bytes = read_small(disk, file).map_err(io(file))?;
    let bytes = bytes.ok_or_else(|| invalid(&"there is no such file"))?;
    let text = String::from_utf8(bytes).map_err(|error| invalid(&error))?;
    let all: BTreeMap<String, Subscription> =
        toml::from_str(&text).map_err(|error| invalid(&error))?;
    for (name, settings) in all {
        let subscribed = emulator.subscribe_trusted(&name, settings).await;
        subscribed.map_err(|error| invalid(&format!("{name}: {error}")))?;
    }
    Ok(())
}

/// Returns the Azurite directory to import, if any.
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

    /// Azurite data in the location is imported once, and later changes to it are reported.
    #[tokio::test]
    async fn azurite_data_in_the_location_is_imported() {
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

    /// A failed import fails every start, and leaves nothing that would prevent a later import.
    #[tokio::test]
    async fn failed_azurite_import_fails_every_start() {
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

    #[tokio::test]
    async fn subscriptions_of_a_file_exist_after_the_start_and_a_reset() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("events.toml");
        let write = |text: &str| replace_small(&SystemDisk, &file, text.as_bytes()).unwrap();
        let emulator = Emulator::builder().open().unwrap();
        let what = Start {
            subscriptions: Some(file.clone()),
            ..Start::default()
        };
        let queue = r#"kind = "queue", account = "devstoreaccount1", queue = "q""#;
        for bad in [
            "x",
            "[ab]\ndestination = { kind = \"channel\" }",
            "[one]\ndestination = { kind = \"queue\", account = \"nobody\", queue = \"q\" }",
        ] {
            write(bad);
            let error = start(&emulator, &SystemDisk, &what).await.unwrap_err();
            assert!(error.to_string().contains("events.toml"), "{error}");
        }
        write(&format!("[one]\ndestination = {{ {queue} }}\n"));
        start(&emulator, &SystemDisk, &what).await.unwrap();
        emulator.unsubscribe("one").await.unwrap();
        emulator.load(crate::state::snapshots::START).unwrap();
        assert!(emulator.subscriptions().unwrap().contains_key("one"));
    }
}
