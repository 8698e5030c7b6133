//! Deleted containers that can be restored: their records and versions.
//!
//! Source: "Soft delete for containers". The version of a deleted container is a FILETIME in
//! hexadecimal, as recorded: here that of its deletion.

use smalt_protocol::Timestamp;

use crate::keys;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, Deleted, Record};
use crate::rules::lease::LeaseState;
use crate::store::{Stamp, StoreResult, Transaction};

const VERSION_DIGITS: usize = 16;

/// Returns the `x-ms-deleted-container-version` of a container that was deleted at this time:
/// `01D934E8B074DD9C`.
pub fn version(deleted_at: Timestamp) -> String {
    let ticks = deleted_at
        .ticks()
        .saturating_sub(Timestamp::WINDOWS_EPOCH.ticks());
    format!("{ticks:0VERSION_DIGITS$X}")
}

/// Parses a version.
pub fn parse_version(text: &str) -> Option<Timestamp> {
    let is_hex = text.len() == VERSION_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
    let ticks = u64::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
    let ticks = ticks.checked_add(Timestamp::WINDOWS_EPOCH.ticks())?;
    Some(Timestamp::from_ticks(ticks))
}

impl ContainerRecord {
    /// Returns deletion time and retention of a deleted container that is kept.
    pub fn kept(&self) -> Option<Deleted> {
        Some(Deleted {
            at: self.deleted_at?,
            retention_days: self.retention_days?,
        })
    }
}

/// Returns the `RemainingRetentionDays` of a container. Recorded: it rounds to hours before it
/// truncates to days, so that the full number is shown for half an hour.
pub fn remaining_days(deleted: Deleted, now: Timestamp) -> u32 {
    const HOUR_S: u64 = 60 * 60;
    let left_s = deleted.until().since(now).as_secs();
    let hours = (left_s + HOUR_S / 2) / HOUR_S;
    u32::try_from(hours / 24).unwrap_or(u32::MAX)
}

/// Deletes a container that can be restored for the given number of days. Its name stays reserved
/// for a while.
///
/// # Errors
/// When the store fails.
pub fn keep(
    tx: &mut Transaction<'_>,
    name: &ContainerName,
    mut container: ContainerRecord,
    retention_days: u32,
    being_deleted_s: u64,
    stamp: &Stamp,
) -> StoreResult<()> {
    container.lease = LeaseState::Available;
    container.deleted_at = Some(stamp.now);
    if being_deleted_s == 0 {
        tx.delete(name.key());
    } else {
        let free_at = stamp.now.plus_s(being_deleted_s);
        let which = stamp.now.ticks().to_be_bytes().to_vec();
        tx.put(keys::expiring(free_at, &name.key()), which);
        container.save(tx, name.key())?;
    }
    container.retention_days = Some(retention_days);
    // The version must be unique: it is the tick of the deletion.
    let key = keys::deleted_container(&name.account, &name.container, stamp.tick);
    if let Some(deleted) = container.kept() {
        tx.put(keys::expiring(deleted.until(), &key), Vec::new());
    }
    container.save(tx, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_days_match_the_recordings() {
        let at = Timestamp::from_unix_s(1_700_000_000);
        let deleted = Deleted {
            at,
            retention_days: 7,
        };
        for (passed_s, days) in [
            (0, 7),
            (1_722, 7),
            (1_861, 6),
            (257_884, 4),
            (7 * 86_400 - 60, 0),
            (8 * 86_400, 0),
        ] {
            assert_eq!(
                remaining_days(deleted, at.plus_s(passed_s)),
                days,
                "{passed_s}"
            );
        }
    }

    #[test]
    fn versions_match_the_recordings() {
        let recorded = "01D934E8B074DD9C";
        let deleted_at = parse_version(recorded).unwrap();
        assert_eq!(deleted_at.iso_ticks(), "2023-01-30T20:23:18.1646236Z");
        assert_eq!(version(deleted_at), recorded);
        for bad in [
            "",
            "01D934E8B074DD9",
            "+1D934E8B074DD9C",
            "FFFFFFFFFFFFFFFF",
        ] {
            assert_eq!(parse_version(bad), None, "{bad}");
        }
    }
}
