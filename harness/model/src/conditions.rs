//! Conditional headers, one at a time. Source: "Specifying Conditional Headers for Blob Service
//! Operations"; recordings for `If-None-Match: *` of a creation, which is refused with 409.

use smalt_protocol::ErrorCode;

use crate::expected::Refusal;
use crate::vocabulary::{Condition, Metadata, TAG, Tag};

/// The values that a condition is evaluated against.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// The current ETag.
    pub tag: Tag,
    /// Last modification, in seconds of the Unix epoch.
    pub modified_s: u64,
    /// Index tags; `None` for resources without tags.
    pub tags: Option<&'a Metadata>,
}

fn holds(condition: Condition, current: Current<'_>) -> bool {
    match condition {
        Condition::IfMatch(wanted) => wanted.is_none_or(|tag| tag == current.tag),
        Condition::IfNoneMatch(known) => known.is_some_and(|tag| tag != current.tag),
        Condition::IfModifiedSince(since_s) => current.modified_s > since_s,
        Condition::IfUnmodifiedSince(since_s) => current.modified_s <= since_s,
        Condition::IfTags(wanted, is_equal) => {
            let found = current.tags.and_then(|tags| tags.get(TAG));
            found.is_some_and(|value| (value == wanted) == is_equal)
        }
    }
}

/// Checks a write to an existing resource. `If-None-Match: *` applies only to creations, so other
/// writes pass, as the authors of Azurite observed of production.
pub fn check_write(
    condition: Option<Condition>,
    current: Current<'_>,
    unmet: ErrorCode,
) -> Result<(), Refusal> {
    match condition {
        Some(Condition::IfNoneMatch(None)) => Ok(()),
        condition => check_source(condition, current, unmet),
    }
}

/// Checks the source of a copy; an unmet condition has the code `unmet`.
pub fn check_source(
    condition: Option<Condition>,
    current: Current<'_>,
    unmet: ErrorCode,
) -> Result<(), Refusal> {
    match condition {
        Some(condition) if !holds(condition, current) => Err(of_tags(condition, unmet).into()),
        _ => Ok(()),
    }
}

/// Returns the code of an unmet condition of a copy: tag conditions have one code for both sides.
fn of_tags(condition: Condition, unmet: ErrorCode) -> ErrorCode {
    match condition {
        Condition::IfTags(..) => ErrorCode::ConditionNotMet,
        _ => unmet,
    }
}

/// Checks a write that creates or replaces a resource.
pub fn check_create(
    condition: Option<Condition>,
    current: Option<Current<'_>>,
    unmet: ErrorCode,
) -> Result<(), Refusal> {
    match (condition, current) {
        (Some(Condition::IfNoneMatch(None)), Some(_)) => Err(ErrorCode::BlobAlreadyExists.into()),
        (condition, Some(current)) => check_write(condition, current, unmet),
        (Some(condition @ (Condition::IfMatch(_) | Condition::IfTags(..))), None) => {
            Err(of_tags(condition, unmet).into())
        }
        (_, None) => Ok(()),
    }
}

/// Checks a read. An unmet `If-None-Match` or `If-Modified-Since` is 304.
pub fn check_read(condition: Option<Condition>, current: Current<'_>) -> Result<(), Refusal> {
    let Some(condition) = condition else {
        return Ok(());
    };
    if holds(condition, current) {
        return Ok(());
    }
    let status = match condition {
        Condition::IfNoneMatch(_) | Condition::IfModifiedSince(_) => Some(304),
        Condition::IfMatch(_) | Condition::IfUnmodifiedSince(_) | Condition::IfTags(..) => None,
    };
    Err(Refusal(ErrorCode::ConditionNotMet, status))
}

/// Checks whether a read can be rejected before any lookup: `If-None-Match: *` can never be met,
/// and since 2016-05-31 the service says so.
pub fn check_readable(condition: Option<Condition>) -> Result<(), Refusal> {
    match condition {
        Some(Condition::IfNoneMatch(None)) => Err(ErrorCode::UnsatisfiableCondition.into()),
        _ => Ok(()),
    }
}
