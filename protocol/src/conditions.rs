//! Conditional headers, parsed but not evaluated.
//!
//! Source: *Specifying Conditional Headers for Blob Service Operations*. A malformed tag is kept as
//! one that never matches: recordings answer `If-Match: garbage` with 412 and `If-None-Match:
//! garbage` with success.

use crate::error::StorageError;
use crate::etag::ETag;
use crate::time::Timestamp;

/// The resource that a set of conditions applies to; it determines the prefix of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionSubject {
    /// The addressed resource: `If-Match`, `If-None-Match`, ..., and `x-ms-if-tags`.
    Target,
    /// The source of a copy: `x-ms-source-if-match`, ...
    Source,
    /// The blob whose tags are addressed: `x-ms-blob-if-match`, ..., since 2026-02-06.
    Blob,
}

/// The value of an `If-Match` or `If-None-Match` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagCondition {
    /// `*`: matches any existing resource.
    Any,
    /// One or more tags. `None` stands for a malformed tag, which matches nothing.
    Tags(Vec<Option<ETag>>),
}

impl TagCondition {
    /// Returns whether the condition lists `tag`; `*` lists every tag.
    pub fn names(&self, tag: ETag) -> bool {
        match self {
            TagCondition::Any => true,
            TagCondition::Tags(tags) => tags.contains(&Some(tag)),
        }
    }
}

/// The conditional headers for one [`ConditionSubject`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionHeaders {
    /// `If-Match`.
    pub if_match: Option<TagCondition>,
    /// `If-None-Match`.
    pub if_none_match: Option<TagCondition>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<Timestamp>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<Timestamp>,
    /// The expression of `x-ms-if-tags`, unparsed.
    pub if_tags: Option<String>,
}

impl ConditionHeaders {
    /// Parses the conditions of `subject` from a request's headers and ignores all other headers.
    /// Empty headers count as absent; repeated tag headers are joined into one list.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` for a malformed date and for a repeated date.
    pub fn from_headers<'a>(
        subject: ConditionSubject,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, StorageError> {
        let mut conditions = ConditionHeaders::default();
        for (name, value) in headers {
            let value = value.trim();
            if !value.is_empty()
                && let Some(condition) = condition_of(subject, name)
            {
                conditions.add(condition, name, value)?;
            }
        }
        Ok(conditions)
    }

    /// Returns whether no condition is set.
    pub fn is_empty(&self) -> bool {
        *self == ConditionHeaders::default()
    }

    fn add(&mut self, condition: Condition, name: &str, value: &str) -> Result<(), StorageError> {
        match condition {
            Condition::Match => join(&mut self.if_match, value),
            Condition::NoneMatch => join(&mut self.if_none_match, value),
            Condition::ModifiedSince => set_date(&mut self.if_modified_since, name, value)?,
            Condition::UnmodifiedSince => set_date(&mut self.if_unmodified_since, name, value)?,
            Condition::Tags => self.if_tags = Some(value.to_owned()),
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Condition {
    Match,
    NoneMatch,
    ModifiedSince,
    UnmodifiedSince,
    Tags,
}

fn condition_of(subject: ConditionSubject, header: &str) -> Option<Condition> {
    let header = header.to_ascii_lowercase();
    let name = match subject {
        ConditionSubject::Target if header == "x-ms-if-tags" => return Some(Condition::Tags),
        ConditionSubject::Target => header.as_str(),
        ConditionSubject::Source => header.strip_prefix("x-ms-source-")?,
        ConditionSubject::Blob => header.strip_prefix("x-ms-blob-")?,
    };
    match name {
        "if-match" => Some(Condition::Match),
        "if-none-match" => Some(Condition::NoneMatch),
        "if-modified-since" => Some(Condition::ModifiedSince),
        "if-unmodified-since" => Some(Condition::UnmodifiedSince),
        "if-tags" if subject != ConditionSubject::Target => Some(Condition::Tags),
        _ => None,
    }
}

fn join(condition: &mut Option<TagCondition>, value: &str) {
    // `*` anywhere in the list matches every tag.
    if split_tags(value).any(|tag| tag == "*") {
        *condition = Some(TagCondition::Any);
        return;
    }
    let tags = split_tags(value).map(ETag::parse);
    match condition {
        Some(TagCondition::Any) => {}
        Some(TagCondition::Tags(known)) => known.extend(tags),
        None => *condition = Some(TagCondition::Tags(tags.collect())),
    }
}

/// Splits at commas outside of quotes.
fn split_tags(value: &str) -> impl Iterator<Item = &str> {
    let mut in_quotes = false;
    value
        .split(move |c| {
            in_quotes ^= c == '"';
            c == ',' && !in_quotes
        })
        .map(str::trim)
        .filter(|tag| !tag.is_empty())
}

fn set_date(date: &mut Option<Timestamp>, name: &str, value: &str) -> Result<(), StorageError> {
    match (&date, Timestamp::parse_rfc1123(value)) {
        (None, Some(read)) => *date = Some(read),
        _ => return Err(StorageError::invalid_header(name, value)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use proptest::prelude::*;

    const DATE: &str = "Thu, 09 May 2019 00:57:59 GMT";

    fn target(headers: &[(&str, &str)]) -> ConditionHeaders {
        let headers = headers.iter().copied();
        ConditionHeaders::from_headers(ConditionSubject::Target, headers).unwrap()
    }

    #[test]
    fn malformed_tags_never_match() {
        let tag = ETag::parse("0x8D6D4173A7F45B7");
        let tags = |tags: &[Option<ETag>]| Some(TagCondition::Tags(tags.to_vec()));
        for (value, expected) in [
            ("*", Some(TagCondition::Any)),
            (" \"0x8D6D4173A7F45B7\" ", tags(&[tag])),
            ("0x8D6D4173A7F45B7", tags(&[tag])),
            ("garbage", tags(&[None])),
            ("\"a,b\"", tags(&[None])),
            (
                "\"0x1\", \"0x8D6D4173A7F45B7\",,x",
                tags(&[ETag::parse("0x1"), tag, None]),
            ),
            (
                "W/\"datetime'2022-06-15T22%3A51%3A44.123Z'\"",
                tags(&[None]),
            ),
            (",", tags(&[])),
            ("", None),
        ] {
            assert_eq!(target(&[("If-Match", value)]).if_match, expected, "{value}");
            assert_eq!(
                target(&[("if-none-match", value)]).if_none_match,
                expected,
                "{value}"
            );
        }
        let repeated = target(&[("If-Match", "0x1"), ("If-Match", "0x8D6D4173A7F45B7")]);
        assert_eq!(repeated.if_match, tags(&[ETag::parse("0x1"), tag]));
        let named = repeated.if_match.unwrap();
        assert!(named.names(tag.unwrap()) && !named.names(ETag::parse("0x2").unwrap()));
    }

    #[test]
    fn each_subject_has_its_own_headers() {
        let headers = [
            ("If-Modified-Since", DATE),
            ("x-ms-if-tags", "a"),
            ("X-Ms-Source-If-Unmodified-Since", DATE),
            ("x-ms-source-if-tags", "b"),
            ("x-ms-blob-if-match", "*"),
            ("if-tags", "c"),
        ];
        let read =
            |subject| ConditionHeaders::from_headers(subject, headers.iter().copied()).unwrap();
        let date = Timestamp::parse_rfc1123(DATE);
        let none = ConditionHeaders::default();
        assert_eq!(
            read(ConditionSubject::Target),
            ConditionHeaders {
                if_modified_since: date,
                if_tags: Some("a".to_owned()),
                ..none.clone()
            }
        );
        assert_eq!(
            read(ConditionSubject::Source),
            ConditionHeaders {
                if_unmodified_since: date,
                if_tags: Some("b".to_owned()),
                ..none.clone()
            }
        );
        let blob = read(ConditionSubject::Blob);
        assert_eq!(
            blob,
            ConditionHeaders {
                if_match: Some(TagCondition::Any),
                ..none.clone()
            }
        );
        assert!(!blob.is_empty() && none.is_empty());
    }

    #[test]
    fn malformed_and_repeated_dates_are_rejected() {
        for headers in [
            &[("If-Modified-Since", "yesterday")][..],
            &[("If-Unmodified-Since", "2019-05-09T00:57:59Z")],
            &[("If-Modified-Since", DATE), ("If-Modified-Since", DATE)],
        ] {
            let all = headers.iter().copied();
            let error = ConditionHeaders::from_headers(ConditionSubject::Target, all).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidHeaderValue);
            assert_eq!(error.elements()[0].1, headers[0].0);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(tag in "[\"*,0x1-9 W/a]{0,30}", date in ".{0,30}") {
            let headers = [("If-Match", tag.as_str()), ("If-Modified-Since", &date)];
            let _ = ConditionHeaders::from_headers(ConditionSubject::Target, headers);
        }
    }
}
