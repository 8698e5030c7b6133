//! The journal: one record for each call that changed something in the watched directory, in the
//! order in which the calls returned.
//!
//! ```text
//! record: kind (u8) | offset (u64) | length of path (u32) | length of data (u32) | path | data
//! ```
//!
//! Numbers are little-endian. Paths are relative to the directory. `harness/src/crash/journal.rs`
//! reads it.

use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::system;

/// The kind of a recorded call.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Created an empty file.
    Create = 1,
    /// Wrote `data` at `offset`.
    Write = 2,
    /// Changed the length to `offset`.
    Truncate = 3,
    /// Renamed the file to `data`.
    Rename = 4,
    /// Removed the file's name.
    Unlink = 5,
    /// Created a directory.
    MakeDir = 6,
    /// Removed a directory.
    RemoveDir = 7,
    /// Synced contents and length, or the names of a directory.
    Sync = 8,
    /// Wrote out a range from `offset`, of the number of bytes in `data` (u64).
    SyncRange = 9,
}

struct Watch {
    directory: PathBuf,
    journal: Option<c_int>,
    /// Held during the call and its record, so that both have the same order.
    order: Mutex<()>,
}

static WATCH: OnceLock<Option<Watch>> = OnceLock::new();

fn watch() -> Option<&'static Watch> {
    let made = WATCH.get_or_init(|| {
        let directory = PathBuf::from(std::env::var_os("SMALT_SHIM_DIR")?);
        let journal = std::env::var_os("SMALT_SHIM_JOURNAL");
        Some(Watch {
            directory,
            journal: journal.and_then(|path| system::open_journal(Path::new(&path))),
            order: Mutex::new(()),
        })
    });
    made.as_ref()
}

/// Returns the path relative to the watched directory, if it is inside.
pub(crate) fn watched(path: Option<PathBuf>) -> Option<PathBuf> {
    let below = path?.strip_prefix(&watch()?.directory).ok()?.to_owned();
    Some(below)
}

/// Makes the call while no other record is written, then writes its own if the call succeeded.
pub(crate) fn record<R>(
    kind: Kind,
    path: &Path,
    call: impl FnOnce() -> R,
    describe: impl FnOnce(&R) -> Option<(u64, Vec<u8>)>,
) -> R {
    let Some(watch) = watch() else {
        return call();
    };
    let order = watch.order.lock().unwrap_or_else(PoisonError::into_inner);
    let done = call();
    if let Some(journal) = watch.journal
        && let Some((offset, data)) = describe(&done)
    {
        let path = path.as_os_str().as_bytes();
        let mut record = Vec::with_capacity(17 + path.len() + data.len());
        record.push(kind as u8);
        record.extend(offset.to_le_bytes());
        for length in [path.len(), data.len()] {
            record.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        }
        record.extend(path);
        record.extend(data);
        system::append(journal, &record);
    }
    drop(order);
    done
}
