//! Export and import.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use smalt::{ArchiveError, Emulator};

use super::world::{fill, seen};
use crate::support::Client;

fn exported(emulator: &Emulator) -> Vec<u8> {
    let mut stream = Vec::new();
    emulator.export(&mut stream).unwrap();
    stream
}

/// From memory to disk and back: clients see the same, and the stream is the same.
#[tokio::test]
async fn import_restores_everything_that_was_exported() {
    let client = Client::new();
    fill(client.emulator()).await;
    client.advance_s(60);
    let before = seen(client.emulator()).await;
    let stream = exported(client.emulator());

    let dir = tempfile::tempdir().unwrap();
    let on_disk = Client::of(|builder| builder.durable(dir.path()));
    let imported = on_disk.emulator().import(stream.as_slice()).unwrap();
    // Equal bytes are in the stream once, however many blobs have them.
    assert_eq!(imported.payloads, 1);
    assert_eq!(seen(on_disk.emulator()).await, before);
    assert_eq!(
        on_disk.emulator().audit().unwrap().differences,
        Vec::<String>::new()
    );
    assert!(exported(on_disk.emulator()) == stream, "another stream");

    let other = Client::new();
    fill(other.emulator()).await;
    other.emulator().import(stream.as_slice()).unwrap();
    assert_eq!(seen(other.emulator()).await, before);
    on_disk.emulator().close().unwrap();
    drop(on_disk);
    let again = Client::of(|builder| builder.durable(dir.path()));
    assert_eq!(exported(again.emulator()).len(), stream.len());
}

/// Wherever a byte is cut or changed, the stream is refused, or imports exactly the exported state.
#[tokio::test]
async fn damaged_stream_is_refused_and_changes_nothing() {
    let client = Client::new();
    fill(client.emulator()).await;
    let stream = exported(client.emulator());
    let whole = seen(client.emulator()).await;
    let other = Client::new();
    other.create("mine").await;
    other.put("/mine/b", "mine").await;
    other.emulator().save("mine").unwrap();
    let before = exported(other.emulator());
    let mut refused = 0;
    let places = (0..stream.len()).step_by(997);
    for at in places {
        let mut flipped = stream.clone();
        flipped[at] ^= 0x40;
        for damaged in [&flipped[..], &stream[..at]] {
            match other.emulator().import(damaged) {
                Ok(_) => {
                    assert_eq!(seen(other.emulator()).await, whole, "byte {at}");
                    other.emulator().load("mine").unwrap();
                }
                Err(ArchiveError::Damaged(_) | ArchiveError::Version { .. }) => refused += 1,
                Err(error) => panic!("byte {at}: {error}"),
            }
            assert!(exported(other.emulator()) == before, "byte {at}");
        }
    }
    assert!(refused > 200, "{refused}");
}

#[tokio::test]
async fn other_versions_and_unknown_accounts_are_refused_by_name() {
    let client = Client::new();
    client.of_other_account().create("ccc").await;
    let stream = exported(client.emulator());
    let text = String::from_utf8_lossy(&stream[..2048]).into_owned();
    assert!(text.contains("\"format\": 1"), "{text}");
    assert!(!text.contains("b3RoZXI="), "a key is shown");

    let at = stream
        .windows(11)
        .position(|part| part == b"\"format\": 1")
        .unwrap();
    let mut newer = stream.clone();
    newer[at + 10] = b'7';
    let error = client.emulator().import(newer.as_slice()).unwrap_err();
    assert!(
        matches!(error, ArchiveError::Version { format: 7, .. }),
        "{error}"
    );

    let alone = Emulator::builder().open().unwrap();
    let error = alone.import(stream.as_slice()).unwrap_err();
    assert!(
        matches!(&error, ArchiveError::Account(name) if name == "other"),
        "{error}"
    );
    for no_state in [&b""[..], b"hello", &[0; 4096]] {
        let error = alone.import(no_state).unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged(_)), "{error}");
    }
}

/// A hole in a tar archive claims many bytes without having them; it is not filled.
#[test]
fn hole_in_an_archive_is_not_filled() {
    let emulator = Emulator::builder().open().unwrap();
    let stream = exported(&emulator);
    let mut whole = tar::Archive::new(stream.as_slice());
    let mut manifest = whole.entries().unwrap().next().unwrap().unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut manifest, &mut bytes).unwrap();
    let mut holed = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    let name = manifest.path().unwrap();
    let added = holed.append_data(&mut header, name, bytes.as_slice());
    added.unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_path("payloads/0").unwrap();
    header.set_entry_type(tar::EntryType::GNUSparse);
    header.set_size(0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.realsize.copy_from_slice(b"00000400000\0");
    gnu.sparse[0].offset.copy_from_slice(b"00000400000\0");
    gnu.sparse[0].numbytes.copy_from_slice(b"00000000000\0");
    header.set_cksum();
    holed.append(&header, &b""[..]).unwrap();
    let error = emulator.import(holed.into_inner().unwrap().as_slice());
    let told = error.unwrap_err().to_string();
    // The SHA-256 of zero bytes.
    assert!(told.contains("has hash e3b0c442"), "{told}");
}
