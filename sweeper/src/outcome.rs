//! The closed list of what can become of a blob. Reports, logs and exit codes derive from it.

use serde::Serialize;

/// What became of one blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Deleted for good (S7).
    Deleted,
    /// Copied, the copy verified, then deleted (S8).
    Moved,
    /// Somebody else removed it first.
    Gone,
    /// No `TimeToLive` and no rule: never touched (S5).
    NoTtl,
    /// The time to live has not passed.
    NotDue,
    /// Kept by a `protect` or `exclude` pattern.
    Protected,
    /// Due, but younger than `min_age`.
    TooYoung,
    /// Due, but leased by somebody.
    Leased,
    /// Overwritten or extended while it was worked on; the next cycle looks again.
    Changed,
    /// Left for the next cycle: the worker was stopping.
    Stopped,
    /// `TimeToLive` cannot be read (DS14): reported, kept.
    InvalidTtl,
    /// `DeadBlobContainer` without a configured account for dead blobs (DS4).
    DbcUnconfigured,
    /// `DeadBlobContainer` means the blob itself (DS5).
    DbcSelf,
    /// `DeadBlobContainer` means a place that is swept itself (DS5).
    DbcSwept,
    /// `DeadBlobContainer` means a container that blobs may not choose: not on the allow-list, that
    /// of the state document, or one whose name begins with `$`.
    DbcNotAllowed,
    /// `DeadBlobContainer` is no valid place, or the blob's own name cannot be addressed.
    BadName,
    /// The container for dead blobs is missing and may not be created.
    DbcMissing,
    /// Another blob stands at the destination and policy says to keep it.
    Collision,
    /// The copy failed, was aborted, or is not equal to its source.
    CopyFailed,
    /// 409 `SnapshotsPresent` under policy `refuse`.
    SnapshotsPresent,
    /// 409: immutability policy or legal hold.
    Immutable,
    /// Archive tier: cannot be copied before it is rehydrated.
    Archived,
    /// The index tags must go along, but the credential may not read them.
    TagsDenied,
    /// 401 or 403.
    Denied,
    /// Storage did not answer in time, after all retries; the next cycle tries again.
    Deferred,
    /// Refused by the service for another reason.
    Failed,
}

/// Coarse classes of outcomes: the counters of the state document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The blob is gone from where it was.
    Done,
    /// The blob stays, as it should.
    Kept,
    /// The blob should have gone and did not.
    Failed,
}

impl Outcome {
    /// Every outcome, in the order of the documentation.
    pub const ALL: [Outcome; 26] = [
        Outcome::Deleted,
        Outcome::Moved,
        Outcome::Gone,
        Outcome::NoTtl,
        Outcome::NotDue,
        Outcome::Protected,
        Outcome::TooYoung,
        Outcome::Leased,
        Outcome::Changed,
        Outcome::Stopped,
        Outcome::InvalidTtl,
        Outcome::DbcUnconfigured,
        Outcome::DbcSelf,
        Outcome::DbcSwept,
        Outcome::DbcNotAllowed,
        Outcome::BadName,
        Outcome::DbcMissing,
        Outcome::Collision,
        Outcome::CopyFailed,
        Outcome::SnapshotsPresent,
        Outcome::Immutable,
        Outcome::Archived,
        Outcome::TagsDenied,
        Outcome::Denied,
        Outcome::Deferred,
        Outcome::Failed,
    ];

    /// Whether this outcome is done, kept or failed.
    pub const fn class(self) -> Class {
        match self {
            Outcome::Deleted | Outcome::Moved | Outcome::Gone => Class::Done,
            Outcome::NoTtl
            | Outcome::NotDue
            | Outcome::Protected
            | Outcome::TooYoung
            | Outcome::Leased
            | Outcome::Changed
            | Outcome::Stopped => Class::Kept,
            Outcome::InvalidTtl
            | Outcome::DbcUnconfigured
            | Outcome::DbcSelf
            | Outcome::DbcSwept
            | Outcome::DbcNotAllowed
            | Outcome::BadName
            | Outcome::DbcMissing
            | Outcome::Collision
            | Outcome::CopyFailed
            | Outcome::SnapshotsPresent
            | Outcome::Immutable
            | Outcome::Archived
            | Outcome::TagsDenied
            | Outcome::Denied
            | Outcome::Deferred
            | Outcome::Failed => Class::Failed,
        }
    }

    /// The word for it in logs, reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Deleted => "deleted",
            Outcome::Moved => "moved",
            Outcome::Gone => "gone",
            Outcome::NoTtl => "no_ttl",
            Outcome::NotDue => "not_due",
            Outcome::Protected => "protected",
            Outcome::TooYoung => "too_young",
            Outcome::Leased => "leased",
            Outcome::Changed => "changed",
            Outcome::Stopped => "stopped",
            Outcome::InvalidTtl => "invalid_ttl",
            Outcome::DbcUnconfigured => "dbc_unconfigured",
            Outcome::DbcSelf => "dbc_self",
            Outcome::DbcSwept => "dbc_swept",
            Outcome::DbcNotAllowed => "dbc_not_allowed",
            Outcome::BadName => "bad_name",
            Outcome::DbcMissing => "dbc_missing",
            Outcome::Collision => "collision",
            Outcome::CopyFailed => "copy_failed",
            Outcome::SnapshotsPresent => "snapshots_present",
            Outcome::Immutable => "immutable",
            Outcome::Archived => "archived",
            Outcome::TagsDenied => "tags_denied",
            Outcome::Denied => "denied",
            Outcome::Deferred => "deferred",
            Outcome::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json_and_each_is_listed_once() {
        let mut seen = std::collections::BTreeSet::new();
        for outcome in Outcome::ALL {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{}\"", outcome.name()));
            assert!(seen.insert(outcome));
        }
    }
}
