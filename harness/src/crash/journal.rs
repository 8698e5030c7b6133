//! Reads the journal of the shim: what a process did to the files below one directory, in order.
//!
//! `harness/shim/src/journal.rs` defines the format.

use std::path::PathBuf;

/// A change of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An empty file was created.
    Create,
    /// Bytes were written from this offset on.
    Write(u64, Vec<u8>),
    /// The length was set.
    Truncate(u64),
    /// The path was changed to this one.
    Rename(PathBuf),
    /// The name was removed.
    Unlink,
    /// A directory was created.
    MakeDir,
    /// A directory was removed.
    RemoveDir,
    /// Contents and length of a file, or the names of a directory, were synced.
    Sync,
    /// A range, by offset and length, was written out without its metadata.
    SyncRange(u64, u64),
}

/// A record of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Path below the watched directory.
    pub path: PathBuf,
    /// The change.
    pub change: Change,
}

/// Bytes of the numbers before path and data.
const HEAD_BYTES: usize = 17;

/// Parses all complete records.
///
/// # Errors
/// The position of a malformed record.
pub fn parse(mut bytes: &[u8]) -> Result<Vec<Record>, String> {
    let all = bytes.len();
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let at = all - bytes.len();
        let (record, rest) =
            first(bytes).ok_or_else(|| format!("malformed record at byte {at}"))?;
        records.push(record);
        bytes = rest;
    }
    Ok(records)
}

fn first(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let offset = number(head.get(1..9)?)?;
    let (path, rest) = rest.split_at_checked(usize::try_from(number(head.get(9..13)?)?).ok()?)?;
    let (data, rest) = rest.split_at_checked(usize::try_from(number(head.get(13..17)?)?).ok()?)?;
    let text = |bytes: &[u8]| PathBuf::from(String::from_utf8_lossy(bytes).into_owned());
    let change = match head.first()? {
        1 => Change::Create,
        2 => Change::Write(offset, data.to_vec()),
        3 => Change::Truncate(offset),
        4 => Change::Rename(text(data)),
        5 => Change::Unlink,
        6 => Change::MakeDir,
        7 => Change::RemoveDir,
        8 => Change::Sync,
        9 => Change::SyncRange(offset, number(data)?),
        _ => return None,
    };
    let path = text(path);
    Some((Record { path, change }, rest))
}

/// Reads a little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, offset: u64, path: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(offset.to_le_bytes());
        bytes.extend((path.len() as u32).to_le_bytes());
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(path.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn records_are_read_in_order_and_damage_is_named() {
        let mut bytes = record(1, 0, "a/db", b"");
        bytes.extend(record(2, 512, "a/db", b"xyz"));
        bytes.extend(record(4, 0, "a/db", b"a/db2"));
        bytes.extend(record(9, 4, "a/db2", &8_u64.to_le_bytes()));
        let records = parse(&bytes).unwrap();
        let changes: Vec<_> = records.iter().map(|record| record.change.clone()).collect();
        let expected = [
            Change::Create,
            Change::Write(512, b"xyz".to_vec()),
            Change::Rename("a/db2".into()),
            Change::SyncRange(4, 8),
        ];
        assert_eq!(changes, expected);
        assert_eq!(records[3].path, PathBuf::from("a/db2"));
        assert!(parse(&bytes[..bytes.len() - 1]).is_err());
        assert!(parse(&record(77, 0, "a", b"")).is_err());
    }
}
