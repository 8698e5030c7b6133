//! Opening: locks, formats, damage. Never a panic, never a silent reset.

use std::path::{Path, PathBuf};

use super::fault_disk::Faults;
use super::{config, dump, durable, get, put};
use crate::disk::{Disk, SystemDisk, files_below, read_small};
use crate::store::engine::Engine as _;
use crate::store::home::FORMAT;
use crate::store::keys;
use crate::store::log::Found;
use crate::store::sled_engine::{Damage, SledEngine};
use crate::store::view::Writes;
use crate::store::{OpenError, Store, StoreConfig, Transaction};

fn rewrite(path: &Path, bytes: &[u8]) {
    SystemDisk.remove(path).unwrap();
    let file = SystemDisk.open(path, true).unwrap();
    file.write_at(bytes, 0).unwrap();
}

fn contents(path: &Path) -> Vec<u8> {
    read_small(&SystemDisk, path).unwrap().unwrap()
}

fn snapshots(engine: &Path) -> Vec<PathBuf> {
    let all = files_below(engine).unwrap().into_iter();
    all.filter(|path| path.to_string_lossy().starts_with("snap."))
        .map(|path| engine.join(path))
        .collect()
}

async fn filled(dir: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    for round in 0..2_u8 {
        let store = durable(dir);
        for tens in 0..10_u8 {
            let job = move |tx: &mut Transaction<'_>, _: &_| {
                for n in tens * 20..(tens + 1) * 20 {
                    tx.put(vec![0x20, n], vec![n ^ round; 2_000]);
                }
                Ok(())
            };
            store.commit(job).await.unwrap();
        }
        store.close().unwrap();
    }
    let store = durable(dir);
    let all = dump(&store);
    store.close().unwrap();
    all
}

#[tokio::test]
async fn directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let store = durable(dir.path());
    let second = Store::open(config(dir.path()));
    assert!(matches!(second, Err(OpenError::Locked { .. })));
    store.close().unwrap();
    durable(dir.path());
}

#[test]
fn persistent_mode_needs_a_directory() {
    let none = StoreConfig {
        dir: None,
        ..config(Path::new(""))
    };
    assert!(matches!(Store::open(none), Err(OpenError::NoDirectory)));
    let file = tempfile::NamedTempFile::new().unwrap();
    let taken = Store::open(config(file.path()));
    assert!(matches!(taken, Err(OpenError::Io { .. })));
}

#[tokio::test]
async fn newer_store_is_refused_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let format = dir.path().join("format");
    let ours = contents(&format);
    rewrite(&format, b"smalt store\nformat 3\nengine other\n");
    let before = files_below(dir.path()).unwrap();
    let refused = Store::open(config(dir.path())).err().unwrap();
    assert!(matches!(
        refused,
        OpenError::Newer {
            found: 3,
            known: 2,
            ..
        }
    ));
    assert!(refused.to_string().contains("newer release"));
    assert_eq!(files_below(dir.path()).unwrap(), before);
    rewrite(&format, &ours);
    durable(dir.path());
}

/// The known case: sled fails on an empty snapshot although its log is intact.
#[tokio::test]
async fn store_opens_with_an_empty_sled_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let all = filled(dir.path()).await;
    let snapshots = snapshots(&dir.path().join("sled-1"));
    assert!(!snapshots.is_empty());
    for snapshot in snapshots {
        rewrite(&snapshot, b"");
    }
    let store = durable(dir.path());
    assert_eq!(dump(&store), all);
    assert!(dir.path().join("damaged-1").is_dir());
    store.close().unwrap();
    assert_eq!(dump(&durable(dir.path())), all);
}

/// sled does not sync its settings, so a power loss or a full disk truncates them.
#[tokio::test]
async fn store_opens_with_truncated_sled_settings() {
    let dir = tempfile::tempdir().unwrap();
    let all = filled(dir.path()).await;
    let whole = contents(&dir.path().join("sled-1/conf"));
    let zeros = vec![0; whole.len()];
    for (n, damaged) in [&whole[..whole.len() - 4], &whole[..9], &zeros]
        .iter()
        .enumerate()
    {
        let settings = dir.path().join(format!("sled-{}/conf", n + 1));
        rewrite(&settings, damaged);
        let store = durable(dir.path());
        assert_eq!(dump(&store), all);
        store.close().unwrap();
        assert_eq!(
            contents(&dir.path().join(format!("sled-{}/conf", n + 2))),
            whole
        );
    }
}

/// Intact settings with other values belong to another sled release, and are not replaced.
#[tokio::test]
async fn settings_of_another_sled_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let path = dir.path().join("sled-1/conf");
    let mut settings = contents(&path);
    let end = settings.len() - 4;
    // One of the numbers in them is the version.
    settings[..end]
        .iter_mut()
        .for_each(|byte| *byte = byte.wrapping_add(1));
    let sum = crc32fast::hash(&settings[..end]);
    settings[end..].copy_from_slice(&sum.to_le_bytes());
    rewrite(&path, &settings);
    let refused = Store::open(config(dir.path())).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { .. }));
}

/// A log that was cut or overwritten is an error that names the copy, unless nothing is missing.
#[tokio::test]
async fn damaged_log_never_opens_as_an_empty_store() {
    let dir = tempfile::tempdir().unwrap();
    let all = filled(dir.path()).await;
    let whole = contents(&dir.path().join("sled-1/db"));
    let mut refused = 0;
    for case in 0..12 {
        let copy = tempfile::tempdir().unwrap();
        for file in files_below(dir.path()).unwrap() {
            let target = copy.path().join(&file);
            SystemDisk.create_dir(target.parent().unwrap()).unwrap();
            SystemDisk.copy(&dir.path().join(&file), &target).unwrap();
        }
        let path = copy.path().join("sled-1/db");
        let mut bytes = whole.clone();
        match case {
            0..8 => bytes.truncate(whole.len() * case / 8),
            8 => bytes.fill(0),
            9 => bytes.fill(0xA5),
            _ => bytes[whole.len() / (case - 7)..].fill(0x5A),
        }
        rewrite(&path, &bytes);
        match Store::open(config(copy.path())) {
            Ok(store) => assert_eq!(dump(&store), all),
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                let OpenError::Damaged { backup, .. } = error else {
                    panic!("{error}");
                };
                let backup = backup.unwrap();
                assert!(text.contains(&backup.display().to_string()));
                // sled may have zeroed what follows the last complete record before it failed.
                assert!(contents(&backup.join("db")).len() >= bytes.len());
                // The next start fails in the same way.
                let again = Store::open(config(copy.path())).err().unwrap();
                assert!(matches!(again, OpenError::Damaged { .. }));
            }
        }
    }
    assert!(refused > 4);
}

#[tokio::test]
async fn lost_engine_files_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    SystemDisk.remove_dir(&dir.path().join("sled-1")).unwrap();
    let lost = Store::open(config(dir.path())).err().unwrap();
    assert!(matches!(lost, OpenError::Damaged { .. }));
    let garbled = tempfile::tempdir().unwrap();
    filled(garbled.path()).await;
    rewrite(&garbled.path().join("format"), b"hello");
    let garbled = Store::open(config(garbled.path())).err().unwrap();
    assert!(matches!(garbled, OpenError::Damaged { .. }));
}

/// A store whose creation was killed is created again; other files in its directory do not count as
/// damage.
#[tokio::test]
async fn store_is_created_beside_other_files_and_over_an_unfinished_one() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("notes/sled.txt");
    SystemDisk.create_dir(other.parent().unwrap()).unwrap();
    SystemDisk.open(&other, true).unwrap();
    // The state after a kill between the first file and the last one.
    let beginning = b"smalt store\nformat 1\nindex 1\ntick 0\nbeginning\n";
    let format = SystemDisk.open(&dir.path().join("format"), true).unwrap();
    format.write_at(beginning, 0).unwrap();
    SystemDisk.create_dir(&dir.path().join("sled-1")).unwrap();
    let cut = SystemDisk.open(&dir.path().join("sled-1/conf"), true);
    cut.unwrap().write_at(b"cut", 0).unwrap();
    let store = durable(dir.path());
    put(&store, &[0x20], b"kept").await.unwrap();
    store.close().unwrap();
    assert!(!contents(&dir.path().join("format")).ends_with(b"beginning\n"));
    assert_eq!(get(&durable(dir.path()), &[0x20]), Some(b"kept".to_vec()));
    assert!(
        files_below(dir.path())
            .unwrap()
            .contains(&PathBuf::from("notes/sled.txt"))
    );
}

/// The next process reads unsynced writes of a killed one, so it makes them durable first;
/// otherwise a power loss would remove commits that `format` records.
#[test]
fn commits_found_on_opening_are_synced() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Faults::default();
    let open = |new| SledEngine::open(&disk, dir.path(), 1 << 20, 1 << 20, new, Damage::Refuse);
    let engine = open(true).unwrap();
    let format = (
        keys::FORMAT.to_vec(),
        Some(keys::value(&[FORMAT.into()]).into()),
    );
    engine.apply(&Writes::from([format])).unwrap();
    let written = Writes::from([(b"\x20".to_vec(), Some("logged".into()))]);
    engine.record(&written).unwrap();
    engine.sync_log().unwrap();
    drop(engine);
    // The file of sled is synced as it was found, and again before the log begins anew.
    for passing in 0..2 {
        disk.fail_syncs_after(passing, Some("db"));
        assert!(open(false).is_err(), "{passing}");
        assert_eq!(Found::read(&disk, dir.path()).unwrap().writes, written);
    }
    disk.fail_syncs_of(None);
    assert_eq!(
        open(false).unwrap().get(b"\x20").unwrap(),
        Some("logged".into())
    );
}
