//! Tiers of page blobs in premium accounts. Each tier has a size.
//!
//! Source: "High-performance Premium Storage and managed disks for VMs", "Scalability and
//! performance targets"; recordings for the tier of a blob without an explicit one.

use smalt_protocol::limits::{GIB, TIB};
use smalt_protocol::{ErrorCode, StorageError};

/// Tiers with the maximum blob length of each, in bytes.
const SIZES: [(&str, u64); 11] = [
    ("P4", 32 * GIB),
    ("P6", 64 * GIB),
    ("P10", 128 * GIB),
    ("P15", 256 * GIB),
    ("P20", 512 * GIB),
    ("P30", TIB),
    ("P40", 2 * TIB),
    ("P50", 4 * TIB),
    ("P60", 8 * TIB),
    ("P70", 16 * TIB),
    ("P80", 32 * TIB),
];
/// Tiers that can be inferred from a blob's length.
const INFERRED: [&str; 6] = ["P10", "P20", "P30", "P40", "P50", "P60"];

/// Returns the tier of a page blob without an explicit one, by its length in bytes.
pub fn inferred(length: u64) -> &'static str {
    let fits = |tier: &&&str| bytes_max(tier).is_some_and(|most| length <= most);
    INFERRED.iter().find(fits).copied().unwrap_or("P60")
}

/// Rejects a tier that is too small for a blob.
///
/// # Errors
/// `refusal`, because the code differs by operation.
pub fn check(tier: Option<&str>, length: u64, refusal: ErrorCode) -> Result<(), StorageError> {
    match tier.and_then(bytes_max) {
        Some(most) if length > most => Err(refusal.into()),
        _ => Ok(()),
    }
}

/// Checks a change of tier. An explicit tier cannot be lowered.
///
/// # Errors
/// 409 `CannotChangeToLowerTier`, 409 `BlobTierInadequateForContentLength`.
pub fn judge(current: Option<&str>, to: &str, length: u64) -> Result<(), StorageError> {
    let place = |tier: &str| SIZES.iter().position(|(name, _)| *name == tier);
    if current.and_then(place) > place(to) {
        return Err(ErrorCode::CannotChangeToLowerTier.into());
    }
    let too_small = ErrorCode::BlobTierInadequateForContentLength;
    check(Some(to), length, too_small)
}

fn bytes_max(tier: &str) -> Option<u64> {
    let found = SIZES.iter().find(|(name, _)| *name == tier);
    found.map(|(_, most)| *most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_cannot_be_lowered() {
        let (lower, small) = (
            ErrorCode::CannotChangeToLowerTier,
            ErrorCode::BlobTierInadequateForContentLength,
        );
        for (current, to, length, expected) in [
            (None, "P4", 512, None),
            (Some("P10"), "P10", 512, None),
            (Some("P10"), "P20", 512, None),
            (Some("P10"), "P6", 512, Some(lower)),
            (None, "P4", 33 * GIB, Some(small)),
        ] {
            let judged = judge(current, to, length).err().map(|error| error.code());
            assert_eq!(judged, expected, "{current:?} {to}");
        }
    }

    #[test]
    fn each_tier_is_twice_the_previous() {
        let doubles = (0..SIZES.len()).map(|step| (32 * GIB) << step);
        assert!(doubles.eq(SIZES.map(|(_, most)| most)));
    }

    #[test]
    fn tier_is_inferred_from_length() {
        for (length, tier) in [
            (0, "P10"),
            (128 * GIB, "P10"),
            (128 * GIB + 512, "P20"),
            (8 * TIB, "P60"),
        ] {
            assert_eq!(inferred(length), tier, "{length}");
        }
        let code = ErrorCode::ContentLengthLargerThanTierLimit;
        for (tier, length, fits) in [
            (Some("P4"), 32 * GIB, true),
            (Some("P4"), 32 * GIB + 512, false),
            (Some("Hot"), 8 * TIB, true),
            (None, 8 * TIB, true),
        ] {
            assert_eq!(check(tier, length, code).is_ok(), fits, "{tier:?} {length}");
        }
    }
}
