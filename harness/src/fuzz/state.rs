//! Whole states: seeds, exported archives, data directories of Azurite.
//!
//! An input is a list of files separated by lines of `---`, each with its path in the first line.
//! With a manifest the files form an archive: `records/` and `payloads/` get the counts and hashes
//! that their contents need, so that the fuzzer gets past these checks, and a number after a path
//! is the length that the archive claims for the file (`payloads/ 99999999`). With a database of
//! Azurite they form its data directory; otherwise they are a seed.

use std::fs;
use std::path::{Component, Path};

use sha2::{Digest as _, Sha256};
use smalt::{ArchiveError, AzuriteError, Emulator, SeedError};

use super::requests::{WORLD, agrees, emulator, exported, in_paused_time, serve, split, world};
use crate::traces::body::sha256_hex;

const MANIFEST: &str = "smalt-state.json";
const RECORDS: &str = "records/";
const PAYLOADS: &str = "payloads/";

/// Imports an archive or a data directory, or plants a seed.
///
/// # Panics
/// When an error is not the input's fault or changes the state, or when the resulting state is
/// inconsistent or serves no further requests.
pub fn state(input: &[u8]) {
    let files: Vec<File> = split(input).into_iter().filter_map(File::read).collect();
    let has = |start: &str| files.iter().any(|file| file.path.starts_with(start));
    // Azurite's data can only be imported into an empty emulator.
    let emulator = match has("__azurite") {
        true => emulator(),
        false => world(),
    };
    let before = exported(&emulator);
    let refused = match (has(MANIFEST), has("__azurite")) {
        (true, _) => import(&emulator, &files),
        (_, true) => import_azurite(&emulator, &files),
        _ => plant(&emulator, &files),
    };
    match refused {
        Some(refusal) => assert!(exported(&emulator) == before, "{refusal} changes the state"),
        None => in_paused_time(async {
            assert_eq!(serve(&emulator, b"GET control state").await, [200]);
            serve(&emulator, WORLD).await;
        }),
    }
    agrees(&emulator);
}

struct File<'a> {
    path: &'a str,
    claimed: Option<u64>,
    bytes: &'a [u8],
}

impl<'a> File<'a> {
    fn read(text: &'a [u8]) -> Option<Self> {
        let end = text.iter().position(|byte| *byte == b'\n');
        let (head, bytes) = end.map_or((text, &[][..]), |end| (&text[..end], &text[end + 1..]));
        let head = std::str::from_utf8(head).ok()?;
        let (path, claimed) = match head.split_once(' ') {
            Some((path, claimed)) => (path, Some(claimed.parse().ok()?)),
            None => (head, None),
        };
        let mut parts = Path::new(path).components();
        let is_inside = parts.all(|part| matches!(part, Component::Normal(_)));
        let is_valid = !path.is_empty() && path.len() < 100 && !path.contains('\0');
        (is_inside && is_valid).then_some(File {
            path,
            claimed,
            bytes,
        })
    }
}

fn import(emulator: &Emulator, files: &[File<'_>]) -> Option<String> {
    match emulator.import(archive(files).as_slice()) {
        Ok(_) => None,
        Err(ArchiveError::Store(error)) => unreachable!("not the input's fault: {error}"),
        Err(refusal) => Some(refusal.to_string()),
    }
}

/// Returns the files in the archive format of an export.
fn archive(files: &[File<'_>]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |path: &str, claimed: u64, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(claimed);
        let added = archive.append_data(&mut header, path, bytes);
        added.unwrap_or_else(|error| unreachable!("{error}"));
    };
    let (mut chunks, mut records, mut payloads) = (0, 0, 0);
    let mut hashes = Vec::new();
    for File {
        path,
        claimed,
        bytes,
    } in files
    {
        let path = match *path {
            RECORDS => {
                chunks += 1;
                records += count(bytes);
                hashes.extend(Sha256::digest(bytes));
                format!("{RECORDS}{chunks:08}-{}", sha256_hex(bytes))
            }
            PAYLOADS => {
                payloads += 1;
                format!("{PAYLOADS}{}", sha256_hex(bytes))
            }
            path => path.to_owned(),
        };
        add(&path, claimed.unwrap_or(bytes.len() as u64), bytes);
    }
    let sha256 = sha256_hex(&hashes);
    let end = serde_json::json!({ "payloads": payloads, "records": records, "sha256": sha256 });
    let end = end.to_string();
    add("end.json", end.len() as u64, end.as_bytes());
    archive
        .into_inner()
        .unwrap_or_else(|error| unreachable!("{error}"))
}

/// Counts the records in a file, as far as it can be read.
fn count(mut bytes: &[u8]) -> u64 {
    let mut records = 0;
    while let Some((lengths, rest)) = bytes.split_at_checked(8) {
        let length = |at: usize| {
            let length = lengths[at..at + 4].iter();
            length.fold(0, |length, byte| length << 8 | usize::from(*byte))
        };
        let Some((_, rest)) = rest.split_at_checked(length(0) + length(4)) else {
            break;
        };
        bytes = rest;
        records += 1;
    }
    records
}

fn import_azurite(emulator: &Emulator, files: &[File<'_>]) -> Option<String> {
    match emulator.import_azurite(folder(files)?.path()) {
        Ok(_) => None,
        Err(AzuriteError::Store(error)) => unreachable!("not the input's fault: {error}"),
        Err(refusal) => Some(refusal.to_string()),
    }
}

fn plant(emulator: &Emulator, files: &[File<'_>]) -> Option<String> {
    // A seed may name any file and folder of the machine; only those below its own folder are
    // allowed here.
    let leaves = |file: &File<'_>| {
        let text = String::from_utf8_lossy(file.bytes);
        let ways = ["..", "\"/", "'/", "\\"];
        file.path.ends_with("seed.toml") && ways.iter().any(|way| text.contains(way))
    };
    if files.iter().any(leaves) {
        return None;
    }
    let dir = folder(files)?;
    match in_paused_time(emulator.plant(dir.path())) {
        Ok(_) => None,
        Err(SeedError::Store(error)) => unreachable!("not the input's fault: {error}"),
        Err(refusal) => Some(refusal.to_string()),
    }
}

/// Writes the files to a new folder; `None` when they cannot coexist in one.
#[expect(
    clippy::disallowed_methods,
    reason = "seeds and Azurite's data directories are files"
)]
fn folder(files: &[File<'_>]) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap_or_else(|error| unreachable!("{error}"));
    for file in files {
        let path = dir.path().join(file.path);
        fs::create_dir_all(path.parent()?).ok()?;
        fs::write(path, file.bytes).ok()?;
    }
    Some(dir)
}
