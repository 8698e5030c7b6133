//! Access tiers, and the transitions between them.
//!
//! Sources: "Set Blob Tier"; "Blob rehydration from the archive tier" for the time that rehydration
//! takes; "Smart tier" for the tier that a smart blob is moved to.

use smalt_protocol::time::DAY_S;
use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use crate::records::Access;

/// Tiers of block blobs.
pub const BLOCK_BLOB: [&str; 5] = [HOT, COOL, COLD, ARCHIVE, SMART];
/// Tiers of page blobs.
pub const PAGE_BLOB: [&str; 11] = [
    "P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80",
];
/// The tier in which content can be neither read nor changed.
pub const ARCHIVE: &str = "Archive";
/// The default rehydration priority.
pub const STANDARD: &str = "Standard";

/// The tier that moves a blob between hot, cool and cold by its use.
pub const SMART: &str = "Smart";

const HOT: &str = "Hot";
const COOL: &str = "Cool";
const COLD: &str = "Cold";
const HIGH: &str = "High";
/// Since this version block blobs have the tier `Cold`. "Set Blob Tier".
const COLD_SINCE: ApiVersion = ApiVersion::V2021_12_02;
/// Since this version block blobs have the tier `Smart`. Same page.
const SMART_SINCE: ApiVersion = ApiVersion::V2026_06_06;
/// A smart blob that was not used for this long is cool, in seconds.
const SMART_COOL_S: u64 = 30 * DAY_S;
/// A smart blob that was not used for this long is cold, in seconds.
const SMART_COLD_S: u64 = 90 * DAY_S;
/// The longest rehydration at standard priority, in seconds.
const REHYDRATION_STANDARD_S: u64 = 15 * 60 * 60;
/// The longest rehydration at high priority for blobs below 10 GB, in seconds.
const REHYDRATION_HIGH_S: u64 = 60 * 60;

/// How a blob reaches its new tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Immediately, with status 200.
    Done,
    /// By rehydration from the archive, with status 202.
    Rehydrate,
}

/// Parses the name of a tier, ignoring case; `None` if this version does not know it.
pub fn parse(text: &str, version: ApiVersion) -> Option<&'static str> {
    let known = BLOCK_BLOB.into_iter().chain(PAGE_BLOB);
    known
        .into_iter()
        .find(|tier| tier.eq_ignore_ascii_case(text))
        .filter(|tier| match *tier {
            COLD => version >= COLD_SINCE,
            SMART => version >= SMART_SINCE,
            _ => true,
        })
}

/// Returns the effective tier of a smart blob that was last used at `used`.
pub fn smart(used: Timestamp, now: Timestamp) -> &'static str {
    if now < used.plus_s(SMART_COOL_S) {
        HOT
    } else if now < used.plus_s(SMART_COLD_S) {
        COOL
    } else {
        COLD
    }
}

/// Returns how long a rehydration takes, in seconds.
pub fn rehydration_s(priority: &str) -> u64 {
    if priority == HIGH {
        REHYDRATION_HIGH_S
    } else {
        REHYDRATION_STANDARD_S
    }
}

/// Returns the priority of a rehydration that is requested again: "The rehydration priority setting
/// cannot be lowered from High to Standard for a pending operation."
pub fn raised(pending: Option<&str>, asked: &'static str) -> &'static str {
    match pending {
        Some(HIGH) => HIGH,
        _ => asked,
    }
}

/// Parses a rehydration priority, ignoring case.
pub fn parse_priority(text: &str) -> Option<&'static str> {
    [STANDARD, HIGH]
        .into_iter()
        .find(|priority| priority.eq_ignore_ascii_case(text))
}

/// Returns how a blob reaches the tier `to`.
///
/// # Errors
/// 409 `BlobBeingRehydrated` when it is already being rehydrated to another tier.
pub fn judge(access: &Access, to: &str) -> Result<Move, StorageError> {
    match &access.rehydration {
        Some(way) if way.tier == to => Ok(Move::Rehydrate),
        Some(_) => Err(ErrorCode::BlobBeingRehydrated.into()),
        None if access.tier.as_deref() == Some(ARCHIVE) && to != ARCHIVE => Ok(Move::Rehydrate),
        None => Ok(Move::Done),
    }
}

/// Returns the access tier at `now`, with a rehydration completed if its time has passed.
#[must_use]
pub fn settled(access: Access, now: Timestamp) -> Access {
    let Some(way) = &access.rehydration else {
        return access;
    };
    let ends = way.since.plus_s(rehydration_s(&way.priority));
    if now < ends {
        return access;
    }
    Access {
        tier: Some(way.tier.clone()),
        changed: Some(ends),
        rehydration: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Rehydration;

    fn access(tier: Option<&str>, on_the_way_to: Option<&str>) -> Access {
        Access {
            tier: tier.map(str::to_owned),
            changed: None,
            rehydration: on_the_way_to.map(|tier| Rehydration {
                tier: tier.to_owned(),
                priority: STANDARD.to_owned(),
                since: Timestamp::from_unix_s(1_000),
            }),
        }
    }

    #[test]
    fn tier_changes_follow_the_table() {
        for (from, on_the_way, to, expected) in [
            (None, None, "Hot", Ok(Move::Done)),
            (Some("Hot"), None, ARCHIVE, Ok(Move::Done)),
            (Some("Cool"), None, "Hot", Ok(Move::Done)),
            (Some(ARCHIVE), None, ARCHIVE, Ok(Move::Done)),
            (Some(ARCHIVE), None, "Hot", Ok(Move::Rehydrate)),
            (Some(ARCHIVE), Some("Hot"), "Hot", Ok(Move::Rehydrate)),
            (
                Some(ARCHIVE),
                Some("Hot"),
                "Cool",
                Err(ErrorCode::BlobBeingRehydrated),
            ),
            (
                Some(ARCHIVE),
                Some("Hot"),
                ARCHIVE,
                Err(ErrorCode::BlobBeingRehydrated),
            ),
        ] {
            let way = judge(&access(from, on_the_way), to).map_err(|e| e.code());
            assert_eq!(way, expected, "{from:?} {on_the_way:?} -> {to}");
        }
    }

    /// "Blob rehydration from the archive tier": up to 15 hours, under one hour with high priority.
    #[test]
    fn rehydration_ends_by_the_clock() {
        for (priority, hours) in [("Standard", 15), ("High", 1)] {
            let mut on_the_way = access(Some(ARCHIVE), Some("Cool"));
            let way = on_the_way.rehydration.as_mut().unwrap();
            way.priority = priority.to_owned();
            let ends = way.since.plus_s(hours * 3_600);
            let before = Timestamp::from_ticks(ends.ticks() - 1);
            assert_eq!(settled(on_the_way.clone(), before), on_the_way);
            let back = settled(on_the_way, ends);
            assert_eq!(back.tier.as_deref(), Some("Cool"), "{priority}");
            assert_eq!((back.changed, back.rehydration), (Some(ends), None));
        }
        let at_home = access(Some("Cool"), None);
        assert_eq!(settled(at_home.clone(), Timestamp::MAX), at_home);
    }

    #[test]
    fn unused_smart_blob_cools_down() {
        let used = Timestamp::from_unix_s(1_000);
        for (days, expected) in [(0, HOT), (29, HOT), (30, COOL), (89, COOL), (90, COLD)] {
            assert_eq!(smart(used, used.plus_s(days * DAY_S)), expected, "{days}");
        }
    }

    #[test]
    fn names_are_parsed_in_any_case_and_by_version() {
        for (text, version, expected) in [
            ("cool", ApiVersion::LATEST, Some("Cool")),
            ("p10", ApiVersion::LATEST, Some("P10")),
            ("Cold", ApiVersion::V2021_12_02, Some("Cold")),
            ("Cold", ApiVersion::V2020_10_02, None),
            ("smart", ApiVersion::V2026_06_06, Some(SMART)),
            ("Smart", ApiVersion::V2026_04_06, None),
            ("Lukewarm", ApiVersion::LATEST, None),
        ] {
            assert_eq!(parse(text, version), expected, "{text}");
        }
        assert_eq!(parse_priority("high"), Some(HIGH));
        assert_eq!(parse_priority("urgent"), None);
    }

    #[test]
    fn priority_of_a_pending_rehydration_is_never_lowered() {
        for (pending, asked, expected) in [
            (None, STANDARD, STANDARD),
            (None, HIGH, HIGH),
            (Some(STANDARD), HIGH, HIGH),
            (Some(HIGH), STANDARD, HIGH),
        ] {
            assert_eq!(raised(pending, asked), expected, "{pending:?} {asked}");
        }
    }
}
