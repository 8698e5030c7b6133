//! Which events a change raises, and when a failed delivery is repeated.
//!
//! Sources: "Azure Blob Storage as an Event Grid source"; "Event Grid message delivery and retry".

use serde::{Deserialize, Serialize};

/// The event that an operation can raise, with the `api` that the event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raises {
    /// `BlobCreated` when the base blob is created or replaced.
    Created(&'static str),
    /// `BlobDeleted` when the base blob is deleted.
    Deleted(&'static str),
    /// `BlobRenamed` when a path is renamed.
    Renamed(&'static str),
    /// `BlobTierChanged` when the tier of the base blob changes, and `AsyncOperationInitiated` when
    /// its rehydration starts.
    Tier(&'static str),
}

impl Raises {
    /// Returns the `api` of the event.
    pub const fn api(self) -> &'static str {
        match self {
            Raises::Created(api)
            | Raises::Deleted(api)
            | Raises::Renamed(api)
            | Raises::Tier(api) => api,
        }
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// A blob was created or replaced.
    #[serde(rename = "Microsoft.Storage.BlobCreated")]
    BlobCreated,
    /// A blob was deleted.
    #[serde(rename = "Microsoft.Storage.BlobDeleted")]
    BlobDeleted,
    /// A file has another name.
    #[serde(rename = "Microsoft.Storage.BlobRenamed")]
    BlobRenamed,
    /// A directory was created.
    #[serde(rename = "Microsoft.Storage.DirectoryCreated")]
    DirectoryCreated,
    /// A directory was deleted, with all that it held.
    #[serde(rename = "Microsoft.Storage.DirectoryDeleted")]
    DirectoryDeleted,
    /// A directory has another name, and so has all that it holds.
    #[serde(rename = "Microsoft.Storage.DirectoryRenamed")]
    DirectoryRenamed,
    /// A blob is in another tier.
    #[serde(rename = "Microsoft.Storage.BlobTierChanged")]
    BlobTierChanged,
    /// The rehydration of an archived blob, or a copy of one, has started.
    #[serde(rename = "Microsoft.Storage.AsyncOperationInitiated")]
    AsyncOperationInitiated,
}

impl EventKind {
    /// Returns the kind of the same event of a directory.
    #[must_use]
    pub const fn of_directory(self) -> Self {
        match self {
            EventKind::BlobCreated => EventKind::DirectoryCreated,
            EventKind::BlobDeleted => EventKind::DirectoryDeleted,
            EventKind::BlobRenamed => EventKind::DirectoryRenamed,
            other => other,
        }
    }
}

/// Pauses before the second and each further attempt, in seconds; the last one repeats.
const PAUSES_S: [u64; 10] = [10, 30, 60, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200];

/// Returns the pause before the next attempt, in seconds, after `attempts` that failed, the last
/// one with this HTTP status; `None` when another attempt would not help. A destination that was
/// not reached has the status 503.
pub fn pause_s(attempts: u32, status: u16, is_webhook: bool) -> Option<u64> {
    let least = match status {
        400 | 403 | 413 => return None,
        401 if is_webhook => return None,
        401 | 404 => 300,
        408 => 120,
        503 => 30,
        _ => 0,
    };
    let place = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    let pause = PAUSES_S[place.min(PAUSES_S.len() - 1)];
    Some(pause.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_hopeless_statuses_end_the_attempts() {
        for (attempts, status, is_webhook, expected) in [
            (1, 500, true, Some(10)),
            (2, 500, true, Some(30)),
            (1, 503, true, Some(30)),
            (1, 404, false, Some(300)),
            (1, 408, true, Some(120)),
            (5, 404, false, Some(600)),
            (10, 500, true, Some(43_200)),
            (u32::MAX, 500, true, Some(43_200)),
            (1, 400, true, None),
            (1, 403, false, None),
            (1, 413, false, None),
            (1, 401, true, None),
            (1, 401, false, Some(300)),
        ] {
            let found = pause_s(attempts, status, is_webhook);
            assert_eq!(found, expected, "{attempts} {status} {is_webhook}");
        }
    }
}
