//! Entity tags: `"0x8D6D4173A7F45B7"`, the hexadecimal tick of the write that created the version.
//!
//! Source: *Specifying Conditional Headers for Blob Service Operations* for the form; recordings
//! for the meaning of the number: see [`time`](crate::time).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The entity tag of one version of a resource. Tags are unique and increase within a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ETag(u64);

impl ETag {
    /// Returns the tag of the write at this tick.
    pub const fn from_tick(tick: Timestamp) -> Self {
        ETag(tick.ticks())
    }

    /// Returns the tag as in the `ETag` header: `"0x8D6D4173A7F45B7"`.
    pub fn quoted(self) -> String {
        format!("\"{self}\"")
    }

    /// Parses a tag with or without quotes (both since 2011-08-18). Returns `None` for a malformed
    /// tag, which as a condition matches nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("W/").unwrap_or(text);
        let bare = text
            .strip_prefix('"')
            .and_then(|t| t.strip_suffix('"'))
            .unwrap_or(text);
        let hex = bare
            .strip_prefix("0x")
            .or_else(|| bare.strip_prefix("0X"))?;
        (!hex.is_empty() && hex.len() <= 16 && !hex.starts_with('+'))
            .then(|| u64::from_str_radix(hex, 16).ok().map(ETag))
            .flatten()
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:X}", self.0)
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_as_azure_and_parses_both_forms() {
        let tag = ETag(0x8D6_D417_3A7F_45B7);
        assert_eq!(tag.quoted(), "\"0x8D6D4173A7F45B7\"");
        for text in [
            "\"0x8D6D4173A7F45B7\"",
            "0x8D6D4173A7F45B7",
            "W/\"0x8d6d4173a7f45b7\"",
        ] {
            assert_eq!(ETag::parse(text), Some(tag));
        }
        for text in ["", "*", "0x", "\"abc\"", "0x11112222333344445", "0x+1"] {
            assert_eq!(ETag::parse(text), None);
        }
    }
}
