//! Immutability policies and legal holds of whole containers, which the management plane keeps.
//!
//! Sources: "Container-level WORM policies for immutable blob data"; the resource provider's *Blob
//! Containers* for the states of a policy. Each blob is retained from its creation on. A retained
//! blob can be neither changed nor deleted; one whose retention is over can be deleted, but still
//! not changed. Clients may create new blobs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use smalt_protocol::{ErrorCode, Timestamp};

use super::immutability::Protection;
use crate::records::BlobKind;

const DAY_S: u64 = 24 * 60 * 60;
/// Valid retention periods, in days.
const DAYS: std::ops::RangeInclusive<u32> = 1..=146_000;
/// Number of times that a locked policy can be extended.
const EXTENSIONS_MAX: u8 = 5;
/// Valid lengths of a tag of a legal hold.
const TAG_CHARS: std::ops::RangeInclusive<usize> = 3..=23;
/// Most tags of a container.
const TAGS_MAX: usize = 10;

/// Policy and legal holds of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worm {
    /// The immutability policy; `None` if there is none.
    #[serde(default)]
    pub immutability_policy: Option<Retention>,
    /// Tags of the legal holds, in lower case.
    #[serde(default)]
    pub legal_hold: BTreeSet<String>,
    /// Whether clients may append to blobs of both kinds in spite of the legal holds.
    #[serde(default)]
    pub legal_hold_allow_protected_append_writes_all: bool,
}

/// An immutability policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Number of days after the creation of a blob for which it is retained.
    pub days: u32,
    /// Whether clients may append to append blobs.
    pub allow_protected_append_writes: bool,
    /// Whether the policy can only be extended; set by a lock.
    pub locked: bool,
    /// Number of times that the locked policy was extended.
    pub extensions: u8,
    /// Whether clients may append to append blobs and to block blobs.
    #[serde(default)]
    pub allow_protected_append_writes_all: bool,
}

/// A change of policy or legal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Creates the policy or replaces an unlocked one.
    Set(Retention),
    /// Deletes an unlocked policy.
    Delete,
    /// Locks the policy.
    Lock,
    /// Extends a locked policy to this number of days.
    Extend(u32),
    /// Adds tags of legal holds, and says whether they allow appends.
    Hold(BTreeSet<String>, bool),
    /// Removes tags of legal holds.
    Release(BTreeSet<String>),
}

/// Why a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A value is invalid.
    Invalid(&'static str),
    /// The current policy does not allow the change.
    Conflict(&'static str),
}

impl Worm {
    /// Returns the protection of a blob that was created at this time.
    pub fn protection(&self, created: Timestamp, now: Timestamp) -> Option<Protection> {
        if !self.legal_hold.is_empty() {
            return Some(Protection::LegalHold);
        }
        let policy = self.immutability_policy?;
        let until = created.plus_s(u64::from(policy.days) * DAY_S);
        Some(match now < until {
            true => Protection::Policy,
            false => Protection::PastPolicy,
        })
    }

    /// Returns whether clients may append to blobs of this kind all the same. Block blobs have an
    /// append only in the Data Lake interface.
    pub fn allows_appends(&self, kind: BlobKind) -> bool {
        let policy = self.immutability_policy;
        let is_held =
            !self.legal_hold.is_empty() && !self.legal_hold_allow_protected_append_writes_all;
        !is_held
            && policy.is_none_or(|it| {
                it.allow_protected_append_writes_all
                    || it.allow_protected_append_writes && kind == BlobKind::Append
            })
    }

    /// Checks that clients may delete the container: one with a policy must be empty, whether the
    /// policy is locked or not.
    ///
    /// # Errors
    /// `ContainerHasLegalHold`, `ContainerImmutabilityPolicyLocked`, `BlobImmutableDueToPolicy`.
    pub fn check_deletable(&self, is_empty: bool) -> Result<(), ErrorCode> {
        match self.immutability_policy {
            _ if !self.legal_hold.is_empty() => Err(ErrorCode::ContainerHasLegalHold),
            None => Ok(()),
            Some(_) if is_empty => Ok(()),
            Some(policy) if policy.locked => Err(ErrorCode::ContainerImmutabilityPolicyLocked),
            Some(_) => Err(ErrorCode::BlobImmutableDueToPolicy),
        }
    }

    /// Makes a change.
    ///
    /// # Errors
    /// Why it is refused; nothing has changed then.
    pub fn change(&mut self, change: Change) -> Result<(), Refused> {
        use Refused::{Conflict, Invalid};
        const LOCKED: Refused = Conflict("the policy is locked: it can only be extended");
        const NO_POLICY: Refused = Conflict("the container has no immutability policy");
        let current = self.immutability_policy;
        let is_locked = current.is_some_and(|policy| policy.locked);
        match change {
            Change::Set(_) | Change::Delete if is_locked => return Err(LOCKED),
            Change::Set(policy) if !DAYS.contains(&policy.days) => {
                return Err(Invalid("days: 1 to 146000"));
            }
            Change::Set(policy)
                if policy.allow_protected_append_writes
                    && policy.allow_protected_append_writes_all =>
            {
                return Err(Invalid(
                    "allow_protected_append_writes, allow_protected_append_writes_all: one of them",
                ));
            }
            Change::Set(policy) => self.immutability_policy = Some(policy),
            Change::Delete => {
                current.ok_or(NO_POLICY)?;
                self.immutability_policy = None;
            }
            Change::Lock => {
                let policy = current.ok_or(NO_POLICY)?;
                let locked = true;
                self.immutability_policy = Some(Retention { locked, ..policy });
            }
            Change::Extend(days) => {
                let policy = current.ok_or(NO_POLICY)?;
                if !policy.locked {
                    return Err(Conflict("the policy is not locked: set it instead"));
                }
                if policy.extensions >= EXTENSIONS_MAX {
                    return Err(Conflict("the policy was extended five times already"));
                }
                if days <= policy.days || !DAYS.contains(&days) {
                    return Err(Invalid("days: more than before, up to 146000"));
                }
                let extensions = policy.extensions + 1;
                self.immutability_policy = Some(Retention {
                    days,
                    extensions,
                    ..policy
                });
            }
            Change::Hold(tags, allows_appends) => {
                self.legal_hold.extend(checked(tags)?);
                self.legal_hold_allow_protected_append_writes_all = allows_appends;
            }
            Change::Release(tags) => {
                let tags = checked(tags)?;
                self.legal_hold.retain(|tag| !tags.contains(tag));
                self.legal_hold_allow_protected_append_writes_all &= !self.legal_hold.is_empty();
            }
        }
        Ok(())
    }
}

/// Returns the tags in lower case.
fn checked(tags: BTreeSet<String>) -> Result<BTreeSet<String>, Refused> {
    let is_valid = |tag: &String| {
        TAG_CHARS.contains(&tag.len()) && tag.chars().all(|c| c.is_ascii_alphanumeric())
    };
    if tags.is_empty() || tags.len() > TAGS_MAX || !tags.iter().all(is_valid) {
        return Err(Refused::Invalid(
            "tags: 1 to 10 of 3 to 23 letters and digits",
        ));
    }
    Ok(tags.into_iter().map(|tag| tag.to_lowercase()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(days: u32, locked: bool, extensions: u8) -> Retention {
        Retention {
            days,
            locked,
            extensions,
            allow_protected_append_writes: false,
            allow_protected_append_writes_all: false,
        }
    }

    fn tags(tags: &[&str]) -> BTreeSet<String> {
        tags.iter().map(|&tag| tag.to_owned()).collect()
    }

    #[test]
    fn policies_and_holds_change_as_the_management_plane_allows() {
        let of = |immutability_policy| Worm {
            immutability_policy,
            ..Worm::default()
        };
        let (open, locked) = (policy(5, false, 0), policy(5, true, 0));
        for (before, change, expected) in [
            (None, Change::Set(open), Some(Some(open))),
            (
                Some(open),
                Change::Set(policy(1, false, 0)),
                Some(Some(policy(1, false, 0))),
            ),
            (None, Change::Set(policy(0, false, 0)), None),
            (None, Change::Set(policy(146_001, false, 0)), None),
            (Some(locked), Change::Set(open), None),
            (Some(open), Change::Delete, Some(None)),
            (Some(locked), Change::Delete, None),
            (None, Change::Delete, None),
            (Some(open), Change::Lock, Some(Some(locked))),
            (Some(locked), Change::Lock, Some(Some(locked))),
            (None, Change::Lock, None),
            (Some(open), Change::Extend(6), None),
            (Some(locked), Change::Extend(5), None),
            (
                Some(locked),
                Change::Extend(6),
                Some(Some(policy(6, true, 1))),
            ),
            (Some(policy(9, true, 5)), Change::Extend(10), None),
        ] {
            let mut worm = of(before);
            let changed = worm.change(change.clone()).is_ok();
            assert_eq!(changed, expected.is_some(), "{before:?} {change:?}");
            assert_eq!(
                worm,
                of(expected.unwrap_or(before)),
                "{before:?} {change:?}"
            );
        }
    }

    #[test]
    fn tags_of_legal_holds_add_up() {
        let mut worm = Worm::default();
        for wrong in [tags(&[]), tags(&["ab"]), tags(&["a-b"]), tags(&["x"; 1])] {
            assert!(worm.change(Change::Hold(wrong, false)).is_err());
        }
        worm.change(Change::Hold(tags(&["Case1", "case2"]), false))
            .unwrap();
        worm.change(Change::Hold(tags(&["case1", "case3"]), true))
            .unwrap();
        assert_eq!(worm.legal_hold, tags(&["case1", "case2", "case3"]));
        worm.change(Change::Release(tags(&["case1", "case9"])))
            .unwrap();
        assert_eq!(worm.legal_hold, tags(&["case2", "case3"]));
        assert!(worm.legal_hold_allow_protected_append_writes_all);
        worm.change(Change::Release(tags(&["case2", "case3"])))
            .unwrap();
        assert_eq!(worm, Worm::default());
    }

    /// What policy and hold allow, and to which kinds of blobs clients may append.
    #[test]
    fn appends_are_allowed_to_append_blobs_or_to_all() {
        let policy = |appends, all| Retention {
            allow_protected_append_writes: appends,
            allow_protected_append_writes_all: all,
            ..policy(5, true, 0)
        };
        for (policy, hold, to_append, to_block) in [
            (None, None, true, true),
            (Some(policy(false, false)), None, false, false),
            (Some(policy(true, false)), None, true, false),
            (Some(policy(false, true)), None, true, true),
            (None, Some(false), false, false),
            (None, Some(true), true, true),
            (Some(policy(false, true)), Some(false), false, false),
            (Some(policy(true, false)), Some(true), true, false),
            (Some(policy(false, false)), Some(true), false, false),
        ] {
            let worm = Worm {
                immutability_policy: policy,
                legal_hold: hold.map_or(tags(&[]), |_| tags(&["case1"])),
                legal_hold_allow_protected_append_writes_all: hold == Some(true),
            };
            let kinds = [BlobKind::Append, BlobKind::Block];
            let allowed = kinds.map(|kind| worm.allows_appends(kind));
            assert_eq!(allowed, [to_append, to_block], "{worm:?}");
        }
        let both = Change::Set(policy(true, true));
        assert!(matches!(
            Worm::default().change(both),
            Err(Refused::Invalid(_))
        ));
    }
}
