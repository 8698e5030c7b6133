//! Conditional headers, one at a time. Source: "Specifying Conditional Headers for Blob Service
//! Operations"; recordings for `If-None-Match: *` of a creation, which is refused with 409.

use smalt_protocol::ErrorCode;

use crate::expected::Refusal;
use crate::vocabulary::{Condition, Metadata, TAG, Tag};

/// What a condition is judged against.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// Tag.
    pub tag: Tag,
    /// Last change, in seconds of the Unix epoch.
    pub modified_s: u64,
    /// Index tags, of what can have some.
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

/// A write to what is there. `If-None-Match: *` is about creations: others pass, as the authors of
/// Azurite saw production do.
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

/// What a copy reads: an unmet condition is this code.
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

/// A copy tells its two sides apart, but not where tags are concerned.
fn of_tags(condition: Condition, unmet: ErrorCode) -> ErrorCode {
    match condition {
        Condition::IfTags(..) => ErrorCode::ConditionNotMet,
        _ => unmet,
    }
}

/// A write that makes what is not there, or replaces it.
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

/// A read: who knows the resource already is told so with 304.
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

/// Whether a read can be refused before anything is looked up: `If-None-Match: *` could never be
/// met, and since 2016-05-31 it is said so.
pub fn check_readable(condition: Option<Condition>) -> Result<(), Refusal> {
    match condition {
        Some(Condition::IfNoneMatch(None)) => Err(ErrorCode::UnsatisfiableCondition.into()),
        _ => Ok(()),
    }
}
