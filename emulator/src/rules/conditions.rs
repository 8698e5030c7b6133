//! Conditional headers.
//!
//! Source: "Specifying Conditional Headers for Blob Service Operations". Production recordings
//! decide two points that it leaves open: the lease is checked before the conditions, and a
//! creation with `If-None-Match: *` fails with 409 `BlobAlreadyExists`.

use http::HeaderMap;
use smalt_protocol::conditions::{ConditionHeaders, ConditionSubject, TagCondition};
use smalt_protocol::{ApiVersion, ETag, ErrorCode, StorageError, Timestamp};

use crate::records::BlobRecord;
use crate::rules::tag_condition::TagExpression;

/// Since this version a read may combine conditions freely. "Version 2013-08-15".
const READ_COMBINES: ApiVersion = ApiVersion::V2013_08_15;
/// Since this version a read with `If-None-Match: *` fails. "Version 2016-05-31".
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

/// The parsed, valid conditions of a request on one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    headers: ConditionHeaders,
    tags: Option<TagExpression>,
}

/// The current state of a resource, which conditions are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// The current `ETag`.
    pub etag: ETag,
    /// When the resource was last changed.
    pub last_modified: Timestamp,
    /// Index tags as key and value.
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
    /// Parses the conditions of a write.
    ///
    /// # Errors
    /// 400 `MultipleConditionHeadersNotSupported` for headers that cannot be combined or several
    /// `ETag`s in one header, 400 `InvalidHeaderValue` for a malformed date.
    pub fn of_write(headers: &HeaderMap) -> Result<Self, StorageError> {
        Self::read(headers, ConditionSubject::Target, &NAMES)?.in_order_of_write()
    }

    /// Parses the conditions of a read.
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

    /// Parses the conditions on the source of a copy (`x-ms-source-if-*`).
    ///
    /// # Errors
    /// As [`Conditions::of_write`].
    pub fn of_source(headers: &HeaderMap) -> Result<Self, StorageError> {
        Self::read(headers, ConditionSubject::Source, &SOURCE_NAMES)?.in_order_of_write()
    }

    /// Parses the conditions of Get and Set Blob Tags: `x-ms-blob-if-*` and `x-ms-if-tags`.
    ///
    /// # Errors
    /// As [`Conditions::of_write`].
    pub fn of_tags(headers: &HeaderMap) -> Result<Self, StorageError> {
        let mut conditions = Self::read(headers, ConditionSubject::Blob, &BLOB_NAMES)?;
        conditions.tags = Self::read(headers, ConditionSubject::Target, &NAMES[4..])?.tags;
        conditions.in_order_of_write()
    }

    /// Returns `true` if there is a condition on index tags.
    pub fn asks_for_tags(&self) -> bool {
        self.tags.is_some()
    }

    /// Checks a write to an existing resource. `If-None-Match: *` is ignored, because it concerns
    /// creations only: production accepts it on writes to existing blobs, as the authors of Azurite
    /// observed.
    ///
    /// # Errors
    /// 412 `ConditionNotMet`.
    pub fn check_write(&self, current: Current<'_>) -> Result<(), StorageError> {
        let is_unknown = self.asks_for_creation() || self.none_matches(current);
        self.demand(current, is_unknown, ErrorCode::ConditionNotMet)
    }

    /// Checks a write that creates or replaces the resource.
    ///
    /// # Errors
    /// 409 `BlobAlreadyExists` for `If-None-Match: *` on an existing resource, else 412
    /// `ConditionNotMet`, also for `If-Match` or a tag condition on a missing one.
    pub fn check_create(&self, current: Option<Current<'_>>) -> Result<(), StorageError> {
        match current {
            Some(_) if self.asks_for_creation() => Err(ErrorCode::BlobAlreadyExists.into()),
            Some(current) => self.check_write(current),
            // Without a resource, only `If-Match` and tag conditions fail.
            None if self.headers.if_match.is_some() || self.tags.is_some() => {
                Err(ErrorCode::ConditionNotMet.into())
            }
            None => Ok(()),
        }
    }

    /// Checks a read.
    ///
    /// # Errors
    /// 412 `ConditionNotMet` when `If-Match`, `If-Unmodified-Since` or the tag condition fails, 304
    /// `ConditionNotMet` when the client already has the resource.
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

    /// Checks the source of a copy.
    ///
    /// # Errors
    /// 412 `SourceConditionNotMet`, or 412 `ConditionNotMet` when the tag condition fails.
    pub fn check_source(&self, current: Current<'_>) -> Result<(), StorageError> {
        let is_unknown = self.none_matches(current);
        self.demand(current, is_unknown, ErrorCode::SourceConditionNotMet)
    }

    /// Checks the destination of a copy.
    ///
    /// # Errors
    /// 409 `BlobAlreadyExists` as in [`Conditions::check_create`], else 412
    /// `TargetConditionNotMet`, or 412 `ConditionNotMet` when the tag condition fails.
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
        // A value that is not visible ASCII is neither an `ETag` nor a date.
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

    /// Drops the date condition where an `ETag` condition of the same kind is given, as writes do,
    /// and rejects the combinations that writes do not support.
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

    /// Checks all conditions except `If-None-Match`, whose result the caller passes as
    /// `is_unknown`.
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

    /// Returns `true` for `If-None-Match: *`, which requires that the resource does not exist.
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

    /// Compares whole seconds, because the header has no fractions.
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
