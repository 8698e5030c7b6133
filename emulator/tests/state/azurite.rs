//! Data directories of Azurite, made by hand here; ci/azurite_import.sh compares real ones.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use serde_json::{Value, json};
use smalt::AzuriteError;

use crate::support::Client;

#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn database(collections: &[(&str, Value)]) -> Value {
    let collections: Vec<_> = collections
        .iter()
        .map(|(name, data)| json!({ "name": name, "data": data }))
        .collect();
    json!({ "databaseVersion": 1.5, "engineVersion": 1.5, "collections": collections })
}

fn container() -> Value {
    json!({
        "accountName": "devstoreaccount1", "name": "ccc", "metadata": { "k": "v" },
        "properties": {
            "etag": "\"0x24A0DC568169B40\"", "lastModified": "2026-01-02T03:04:05.678Z",
            "leaseState": "available",
        },
    })
}

fn blob() -> Value {
    json!({
        "accountName": "devstoreaccount1", "containerName": "ccc", "name": "b", "snapshot": "",
        "isCommitted": true, "deleted": false,
        "properties": {
            "creationTime": "2026-01-02T03:04:05.678Z",
            "lastModified": "2026-01-02T03:04:06.000Z",
            "etag": "\"0x25D1E948EA45C00\"", "contentLength": 5, "blobType": "BlockBlob",
            "contentType": "text/plain", "leaseState": "available",
            "accessTier": "Hot", "accessTierInferred": true,
        },
        "persistency": { "id": "extent", "offset": 2, "count": 5 },
    })
}

/// Creates a directory with one blob, whose documents a test may change.
fn directory(bend: impl FnOnce(&mut Value, &mut Value)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (mut blob, mut container) = (blob(), container());
    bend(&mut blob, &mut container);
    let blobs = database(&[
        ("$CONTAINERS_COLLECTION$", json!([container])),
        ("$BLOBS_COLLECTION$", json!([blob])),
    ]);
    write(
        &dir.path().join("__azurite_db_blob__.json"),
        blobs.to_string().as_bytes(),
    );
    write(&dir.path().join("__blobstorage__/extent"), b"--hello--");
    dir
}

#[tokio::test]
async fn azurite_blob_is_imported_with_bytes_and_etag() {
    let dir = directory(|_, _| {});
    let client = Client::new();
    let report = client.emulator().import_azurite(dir.path()).unwrap();
    assert_eq!((report.containers, report.blobs), (1, 1));
    let answer = client.get("/ccc/b").await;
    assert_eq!((answer.status, answer.body.as_ref()), (200, &b"hello"[..]));
    assert_eq!(answer.header("etag"), "\"0x25D1E948EA45C00\"");
    assert_eq!(
        answer.header("last-modified"),
        "Fri, 02 Jan 2026 03:04:06 GMT"
    );
    assert_eq!(
        client.emulator().audit().unwrap().differences,
        Vec::<String>::new()
    );
    let again = client.emulator().import_azurite(dir.path());
    assert!(matches!(again, Err(AzuriteError::NotEmpty)));
}

/// Each error names the cause, and the emulator is empty afterwards.
#[tokio::test]
async fn unimportable_data_is_refused_by_name() {
    let cases: Vec<(&str, tempfile::TempDir)> = vec![
        (
            "extent",
            directory(|blob, _| blob["persistency"]["count"] = json!(99)),
        ),
        (
            "gone",
            directory(|blob, _| blob["persistency"]["id"] = json!("gone")),
        ),
        (
            "secret",
            directory(|blob, _| blob["persistency"]["id"] = json!("../secret")),
        ),
        (
            "stranger",
            directory(|_, container| container["accountName"] = json!("stranger")),
        ),
        (
            "0xZZ",
            directory(|blob, _| blob["properties"]["etag"] = json!("\"0xZZ\"")),
        ),
        (
            "FileBlob",
            directory(|blob, _| blob["properties"]["blobType"] = json!("FileBlob")),
        ),
        (
            "yesterday",
            directory(|_, c| c["properties"]["lastModified"] = json!("yesterday")),
        ),
        (
            "document 0",
            directory(|blob, _| blob["properties"] = json!(7)),
        ),
        (
            "length",
            directory(|blob, _| blob["properties"]["contentLength"] = json!(6)),
        ),
    ];
    for (named, dir) in cases {
        let client = Client::new();
        let error = client
            .emulator()
            .import_azurite(dir.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains(named), "{named}: {error}");
        assert!(
            client.get("/?comp=list").await.elements("Name").is_empty(),
            "{named}"
        );
    }
}

#[tokio::test]
async fn unknown_azurite_version_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::new();
    let none = client.emulator().import_azurite(dir.path());
    assert!(matches!(none, Err(AzuriteError::None(_))));
    let path = dir.path().join("__azurite_db_table__.json");
    for (text, found) in [
        (r#"{"databaseVersion": 2, "collections": []}"#, "version 2"),
        (r#"{"collections": []}"#, "version unknown"),
        ("{", "EOF"),
        (r#"{"databaseVersion": 1.5}"#, "collections"),
    ] {
        write(&path, text.as_bytes());
        let error = client
            .emulator()
            .import_azurite(dir.path())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(found) && error.contains("__azurite_db_table__.json"),
            "{error}"
        );
    }
    let unknown = database(&[("$FUTURE$", json!([]))]).to_string();
    write(&path, unknown.as_bytes());
    let error = client
        .emulator()
        .import_azurite(dir.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains("$FUTURE$"), "{error}");
}
