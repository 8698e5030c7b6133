//! Conditional headers, judged.
//!
//! Source: "Specifying Conditional Headers for Blob Service Operations". Production recordings
//! decide two points that it leaves open: a lease is judged before the conditions, and
//! `If-None-Match: *` of a creation is refused with 409 `BlobAlreadyExists`.

use http::HeaderMap;
use smalt_protocol::conditions::{ConditionHeaders, ConditionSubject, TagCondition};
use smalt_protocol::{ApiVersion, ETag, ErrorCode, StorageError, Timestamp};

use crate::records::BlobRecord;
use crate::rules::tag_condition::TagExpression;

/// Since this version a read may combine conditions in any way. "Version 2013-08-15".
const READ_COMBINES: ApiVersion = ApiVersion::V2013_08_15;
/// Since this version `If-None-Match: *` makes a read fail. "Version 2016-05-31".
const READ_REFUSES_NONE: ApiVersion = ApiVersion::V2016_05_31;

const NAMES: [&str; 5] = [
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "x-ms-if-tags",
];
const SOURCE_NAMES: [&str; 5] = [
    "x-ms-source-if-match",
    "x-ms-source-if-none-match",
    "x-ms-source-if-modified-since",
    "x-ms-source-if-unmodified-since",
    "x-ms-source-if-tags",
];
const BLOB_NAMES: [&str; 4] = [
    "x-ms-blob-if-match",
    "x-ms-blob-if-none-match",
    "x-ms-blob-if-modified-since",
    "x-ms-blob-if-unmodified-since",
];

/// The conditions of a request on one resource. Valid by construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    headers: ConditionHeaders,
    tags: Option<TagExpression>,
}

/// What conditions are judged against: the resource as it stands.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// Its tag.
    pub etag: ETag,
    /// Its last change.
    pub last_modified: Timestamp,
    /// Its index tags.
    pub tags: &'a [(String, String)],
}

impl<'a> From<&'a BlobRecord> for Current<'a> {
    fn from(blob: &'a BlobRecord) -> Self {
        Current {
            etag: blob.etag,
            last_modified: blob.last_modified,
            tags: &blob.tags,
        }
    }
}

impl Conditions {
    /// Those of a write.
    ///
    /// # Errors
    /// 400 `MultipleConditionHeadersNotSupported` for headers that do not go together or several
    /// tags in one, 400 `InvalidHeaderValue` for a date that is none.
    pub fn of_write(headers: &HeaderMap) -> Result<Self, StorageError> {
        Self::read(headers, ConditionSubject::Target, &NAMES)?.in_order_of_write()
    }

    /// Those of a read.
    ///
    /// # Errors
    /// As [`Conditions::of_write`], before 2013-08-15; 400 `UnsatisfiableCondition` for
    /// `If-None-Match: *` since 2016-05-31.
    pub fn of_read(headers: &HeaderMap, version: ApiVersion) -> Result<Self, StorageError> {
        let conditions = Self::read(headers, ConditionSubject::Target, &NAMES)?;
        if version < READ_COMBINES {
            return conditions.in_order_of_write();
        }
        let refuses_all = conditions.headers.if_none_match == Some(TagCondition::Any);
        if refuses_all && version >= READ_REFUSES_NONE {
            return Err(ErrorCode::UnsatisfiableCondition.into());
        }
        Ok(conditions)
    }

    /// Those on the source of a copy.
    ///
    /// # Errors
    /// As [`Conditions::of_write`].
    pub fn of_source(headers: &HeaderMap) -> Result<Self, StorageError> {
        Self::read(headers, ConditionSubject::Source, &SOURCE_NAMES)?.in_order_of_write()
    }

    /// Those of Get and Set Blob Tags: the blob's own headers and `x-ms-if-tags`.
    ///
    /// # Errors
    /// As [`Conditions::of_write`].
    pub fn of_tags(headers: &HeaderMap) -> Result<Self, StorageError> {
        let mut conditions = Self::read(headers, ConditionSubject::Blob, &BLOB_NAMES)?;
        conditions.tags = Self::read(headers, ConditionSubject::Target, &NAMES[4..])?.tags;
        conditions.in_order_of_write()
    }

    /// Whether the index tags are among them.
    pub fn asks_for_tags(&self) -> bool {
        self.tags.is_some()
    }

    /// Judges a write to a resource that is there. `If-None-Match: *` is about creations only:
    /// production takes it on writes to what exists, as the authors of Azurite saw.
    ///
    /// # Errors
    /// 412 `ConditionNotMet`.
    pub fn check_write(&self, current: Current<'_>) -> Result<(), StorageError> {
        let is_unknown = self.asks_for_creation() || self.none_matches(current);
        self.demand(current, is_unknown, ErrorCode::ConditionNotMet)
    }

    /// Judges a write that makes the resource, or replaces it.
    ///
    /// # Errors
    /// 409 `BlobAlreadyExists` for `If-None-Match: *` where it is there, else 412
    /// `ConditionNotMet`, also for `If-Match` where it is not.
    pub fn check_create(&self, current: Option<Current<'_>>) -> Result<(), StorageError> {
        match current {
            Some(_) if self.asks_for_creation() => Err(ErrorCode::BlobAlreadyExists.into()),
            Some(current) => self.check_write(current),
            // Nothing to compare with: only a tag, or tags, can be missed.
            None if self.headers.if_match.is_some() || self.tags.is_some() => {
                Err(ErrorCode::ConditionNotMet.into())
            }
            None => Ok(()),
        }
    }

    /// Judges a read.
    ///
    /// # Errors
    /// 412 `ConditionNotMet` when the resource is not the wanted one, 304 `ConditionNotMet` when
    /// it is the known one.
    pub fn check_read(&self, current: Current<'_>) -> Result<(), StorageError> {
        if !(self.matches(current) && self.unmodified(current) && self.tags_hold(current)) {
            return Err(ErrorCode::ConditionNotMet.into());
        }
        let headers = &self.headers;
        let is_open = headers.if_none_match.is_none() && headers.if_modified_since.is_none();
        let is_new = headers.if_none_match.is_some() && self.none_matches(current)
            || headers.if_modified_since.is_some() && self.modified(current);
        if is_open || is_new {
            return Ok(());
        }
        Err(StorageError::new(ErrorCode::ConditionNotMet).with_status(304))
    }

    /// Judges the source of a copy.
    ///
    /// # Errors
    /// 412 `SourceConditionNotMet`; `ConditionNotMet` when it is the tags' that is not.
    pub fn check_source(&self, current: Current<'_>) -> Result<(), StorageError> {
        let is_unknown = self.none_matches(current);
        self.demand(current, is_unknown, ErrorCode::SourceConditionNotMet)
    }

    /// Judges the destination of a copy.
    ///
    /// # Errors
    /// 409 `BlobAlreadyExists` as in [`Conditions::check_create`], else 412
    /// `TargetConditionNotMet`; `ConditionNotMet` when it is the tags' that is not.
    pub fn check_copy_target(&self, current: Option<Current<'_>>) -> Result<(), StorageError> {
        match current {
            Some(current) if !self.asks_for_creation() => {
                let is_unknown = self.none_matches(current);
                self.demand(current, is_unknown, ErrorCode::TargetConditionNotMet)
            }
            None if self.headers.if_match.is_some() => Err(ErrorCode::TargetConditionNotMet.into()),
            _ => self.check_create(current),
        }
    }

    fn read(
        headers: &HeaderMap,
        subject: ConditionSubject,
        names: &[&'static str],
    ) -> Result<Self, StorageError> {
        let mut given = names
            .iter()
            .flat_map(|name| {
                headers
                    .get_all(*name)
                    .iter()
                    .map(move |value| (*name, value))
            })
            .peekable();
        if given.peek().is_none() {
            return Ok(Conditions::default());
        }
        // Bytes that are no text can be no tag and no date.
        let texts = given.map(|(name, value)| (name, value.to_str().unwrap_or("\u{fffd}")));
        let headers = ConditionHeaders::from_headers(subject, texts)?;
        let tags = match &headers.if_tags {
            Some(text) => Some(
                TagExpression::parse(text)
                    .ok_or_else(|| StorageError::invalid_header(names[names.len() - 1], text))?,
            ),
            None => None,
        };
        Ok(Conditions { headers, tags })
    }

    /// Keeps what a write evaluates: of a tag and a date that ask the same, the tag.
    fn in_order_of_write(mut self) -> Result<Self, StorageError> {
        let headers = &mut self.headers;
        if headers.if_match.is_some() {
            headers.if_unmodified_since = None;
        }
        if headers.if_none_match.is_some() {
            headers.if_modified_since = None;
        }
        let given = [
            headers.if_match.is_some(),
            headers.if_none_match.is_some(),
            headers.if_modified_since.is_some(),
            headers.if_unmodified_since.is_some(),
        ];
        let lists = [&headers.if_match, &headers.if_none_match];
        let has_list = lists
            .into_iter()
            .flatten()
            .any(|condition| matches!(condition, TagCondition::Tags(tags) if tags.len() > 1));
        if has_list || given.into_iter().filter(|given| *given).count() > 1 {
            return Err(ErrorCode::MultipleConditionHeadersNotSupported.into());
        }
        Ok(self)
    }

    /// Judges everything but `If-None-Match`, of which the caller says whether it is met.
    fn demand(
        &self,
        current: Current<'_>,
        is_unknown: bool,
        unmet: ErrorCode,
    ) -> Result<(), StorageError> {
        if !self.tags_hold(current) {
            return Err(ErrorCode::ConditionNotMet.into());
        }
        let holds = self.matches(current)
            && is_unknown
            && self.modified(current)
            && self.unmodified(current);
        if holds { Ok(()) } else { Err(unmet.into()) }
    }

    /// `If-None-Match: *`: only if the resource is not there.
    fn asks_for_creation(&self) -> bool {
        self.headers.if_none_match == Some(TagCondition::Any)
    }

    fn matches(&self, current: Current<'_>) -> bool {
        let wanted = self.headers.if_match.as_ref();
        wanted.is_none_or(|tags| tags.names(current.etag))
    }

    fn none_matches(&self, current: Current<'_>) -> bool {
        let known = self.headers.if_none_match.as_ref();
        known.is_none_or(|tags| !tags.names(current.etag))
    }

    /// A header names whole seconds, so whole seconds are compared.
    fn modified(&self, current: Current<'_>) -> bool {
        let since = self.headers.if_modified_since;
        since.is_none_or(|since| current.last_modified.floor_s() > since)
    }

    fn unmodified(&self, current: Current<'_>) -> bool {
        let since = self.headers.if_unmodified_since;
        since.is_none_or(|since| current.last_modified.floor_s() <= since)
    }

    fn tags_hold(&self, current: Current<'_>) -> bool {
        let wanted = self.tags.as_ref();
        wanted.is_none_or(|expression| expression.holds(current.tags))
    }
}

#[cfg(test)]
mod tests;
