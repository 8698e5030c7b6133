//! Entity tags of the Table service, and the conditions on them.
//!
//! A tag is `W/"datetime'2013-08-22T00%3A20%3A16.3134645Z'"`: the entity's timestamp. Source:
//! recordings, for the form and for the answers to tags that the service did not issue.

use std::fmt;

use crate::error::{ErrorCode, StorageError};
use crate::table::literal::date_time;
use crate::time::Timestamp;

/// The tag of one version of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityTag(Timestamp);

/// A parsed `If-Match` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: the entity must exist.
    Any,
    /// The entity must have this tag.
    Tag(EntityTag),
    /// A weak tag in a form that the service never issues; it matches nothing.
    Foreign,
}

impl EntityTag {
    /// Returns the tag of an entity written at this time.
    pub const fn of(timestamp: Timestamp) -> Self {
        EntityTag(timestamp)
    }

    /// Returns the time in the tag.
    pub const fn timestamp(self) -> Timestamp {
        self.0
    }

    /// Parses a tag; returns `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let inner = text
            .strip_prefix("W/\"datetime'")?
            .strip_suffix("'\"")?
            .replace("%3A", ":")
            .replace("%3a", ":");
        Timestamp::parse_iso(&inner).map(EntityTag)
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = date_time(self.0).replace(':', "%3A");
        write!(f, "W/\"datetime'{escaped}'\"")
    }
}

impl IfMatch {
    /// Parses the header. As in Azurite, a strong tag is malformed and `w/` is accepted for `W/`.
    ///
    /// # Errors
    /// 400 `InvalidInput`, with the recorded message, for anything but `*` and one weak tag.
    pub fn parse(header: &str) -> Result<Self, StorageError> {
        let text = header.trim();
        if text == "*" {
            return Ok(IfMatch::Any);
        }
        if let Some(tag) = EntityTag::parse(text) {
            return Ok(IfMatch::Tag(tag));
        }
        let weak = text.strip_prefix("W/").or_else(|| text.strip_prefix("w/"));
        let inner = weak.and_then(|t| t.strip_prefix('"')?.strip_suffix('"'));
        if inner.is_some_and(|inner| !inner.contains('"')) {
            return Ok(IfMatch::Foreign);
        }
        let message = format!(
            "The etag value '{text}' specified in one of the request headers is not valid. Please \
             make sure only one etag value is specified and is valid."
        );
        Err(StorageError::new(ErrorCode::InvalidInput).with_message(message))
    }

    /// Checks whether an entity with this tag may be written.
    ///
    /// # Errors
    /// 412 `UpdateConditionNotSatisfied` for another tag, 412 `ConditionNotMet` for a tag that the
    /// service never issues, both recorded.
    pub fn check(self, tag: EntityTag) -> Result<(), StorageError> {
        match self {
            IfMatch::Any => Ok(()),
            IfMatch::Tag(wanted) if wanted == tag => Ok(()),
            IfMatch::Tag(_) => Err(ErrorCode::UpdateConditionNotSatisfied.into()),
            IfMatch::Foreign => Err(ErrorCode::ConditionNotMet.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_have_no_trailing_zeros() {
        for (iso, tag) in [
            (
                "2013-08-22T00:20:16.3134645Z",
                "W/\"datetime'2013-08-22T00%3A20%3A16.3134645Z'\"",
            ),
            (
                "2015-11-16T19:38:21.673573Z",
                "W/\"datetime'2015-11-16T19%3A38%3A21.673573Z'\"",
            ),
            (
                "2015-11-16T19:38:21Z",
                "W/\"datetime'2015-11-16T19%3A38%3A21Z'\"",
            ),
        ] {
            let time = Timestamp::parse_iso(iso).unwrap();
            assert_eq!(EntityTag::of(time).to_string(), tag);
            assert_eq!(EntityTag::parse(tag), Some(EntityTag::of(time)));
        }
    }

    #[test]
    fn conditions_are_parsed_and_checked() {
        let tag = EntityTag::of(Timestamp::from_unix_s(7));
        let code = |header: &str| {
            IfMatch::parse(header)
                .and_then(|condition| condition.check(tag))
                .err()
                .map(|error| (error.status(), error.code()))
        };
        assert_eq!(code("*"), None);
        assert_eq!(code(&tag.to_string()), None);
        for (header, status, expected) in [
            (
                "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\"",
                412,
                ErrorCode::UpdateConditionNotSatisfied,
            ),
            (
                "W/\"datetime''2017-04-01T01%3A07%3A23.8881885Z''\"",
                412,
                ErrorCode::ConditionNotMet,
            ),
            ("W/\"wrong\"", 412, ErrorCode::ConditionNotMet),
            ("w/\"wrong\"", 412, ErrorCode::ConditionNotMet),
            (
                "w/\"datetime'2015-01-01T23%3A14%3A33.498Z'\"",
                412,
                ErrorCode::ConditionNotMet,
            ),
            ("\"0x1\"", 400, ErrorCode::InvalidInput),
            (
                "\"datetime'2015-01-01T23%3A14%3A33.498Z'\"",
                400,
                ErrorCode::InvalidInput,
            ),
            ("W/\"", 400, ErrorCode::InvalidInput),
            ("GolangRocksOnAzure", 400, ErrorCode::InvalidInput),
            ("", 400, ErrorCode::InvalidInput),
            ("\"a\",\"b\"", 400, ErrorCode::InvalidInput),
            ("\"", 400, ErrorCode::InvalidInput),
        ] {
            assert_eq!(code(header), Some((status, expected)), "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_tag_parses_back(ticks in 0..=Timestamp::MAX.ticks()) {
            let tag = EntityTag::of(Timestamp::from_ticks(ticks));
            prop_assert_eq!(EntityTag::parse(&tag.to_string()), Some(tag));
        }

        #[test]
        fn any_header_is_parsed_or_rejected(text in "(W/)?\"?.{0,40}\"?") {
            let _ = IfMatch::parse(&text);
        }
    }
}
