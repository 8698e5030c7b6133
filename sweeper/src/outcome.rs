//! The closed list of outcomes of a blob. Reports, logs and exit codes derive from it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The outcome of one blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Deleted for good (S7).
    Deleted,
    /// Copied, verified, then deleted (S8).
    Moved,
    /// Another client removed it first.
    Gone,
    /// A directory: never removed, whatever its metadata say.
    Directory,
    /// Has no `TimeToLive` and matches no rule: never touched (S5).
    NoTtl,
    /// The time to live has not passed.
    NotDue,
    /// Kept by a `protect` or `exclude` pattern.
    Protected,
    /// Due, but younger than `min_age`.
    TooYoung,
    /// Due, but another client holds a lease on it.
    Leased,
    /// Overwritten or extended while it was processed; the next cycle decides again.
    Changed,
    /// Left for the next cycle because the worker was stopping.
    Stopped,
    /// `TimeToLive` is invalid (DS14): reported and kept.
    InvalidTtl,
    /// Has a `DeadBlobContainer`, but no account for dead blobs is configured (DS4).
    DbcUnconfigured,
    /// `DeadBlobContainer` names the blob itself (DS5).
    DbcSelf,
    /// `DeadBlobContainer` names a place that is swept itself (DS5).
    DbcSwept,
    /// `DeadBlobContainer` names a container that blobs may not choose: it is not on the
    /// allow-list, holds the state document, or has a name that begins with `$`.
    DbcNotAllowed,
    /// `DeadBlobContainer` is not a valid place, or the blob's own name cannot be addressed.
    BadName,
    /// The container for dead blobs does not exist and may not be created.
    DbcMissing,
    /// Another blob exists at the destination, and policy keeps it.
    Collision,
    /// The copy failed, was aborted, or does not equal its source.
    CopyFailed,
    /// 409 `SnapshotsPresent` under the policy `refuse`.
    SnapshotsPresent,
    /// 409 because of an immutability policy or a legal hold.
    Immutable,
    /// In the archive tier: must be rehydrated before it can be copied.
    Archived,
    /// The index tags are required, but the credential may not read them.
    TagsDenied,
    /// The service answered 401 or 403.
    Denied,
    /// Storage did not answer in time after all retries; the next cycle tries again.
    Deferred,
    /// Refused by the service for another reason.
    Failed,
}

/// Classes of outcomes, as counted in the state document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The blob was removed from its place.
    Done,
    /// The blob stays, as intended.
    Kept,
    /// The blob should have been removed but was not.
    Failed,
}

impl Outcome {
    /// Returns the class of this outcome.
    pub const fn class(self) -> Class {
        match self {
            Outcome::Deleted | Outcome::Moved | Outcome::Gone => Class::Done,
            Outcome::Directory
            | Outcome::NoTtl
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
}

/// The name used in logs, reports and JSON.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
