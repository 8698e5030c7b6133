//! Headers that the lease operations of blobs and containers share.

use smalt_protocol::lease::{
    LeaseAction, LeaseDuration, parse_action, parse_break_period, parse_duration, parse_lease_id,
};
use smalt_protocol::{ApiVersion, ETag, StorageError, Timestamp};
use uuid::Uuid;

use crate::call::Call;
use crate::reply::Reply;
use crate::rules::lease::{Action, Done};

const LEASE_ID: &str = "x-ms-lease-id";
/// Header of the id of a new lease.
pub const PROPOSED_LEASE_ID: &str = "x-ms-proposed-lease-id";

/// Since this version, a lease has a duration; before, it lasts [`FIXED_DURATION_S`].
const HAS_DURATION: ApiVersion = ApiVersion::V2012_02_12;
/// Duration of every lease in earlier versions, in seconds. "Lease Blob", remarks on versions.
const FIXED_DURATION_S: u32 = 60;
/// Since this version, the response of a lease operation has ETag and last-modified time of the
/// resource, and those of a container do not change. "Lease Container".
pub const KEEPS_VERSION: ApiVersion = ApiVersion::V2013_08_15;

/// Parses the lease id of a request, if any.
///
/// # Errors
/// 400 `InvalidHeaderValue` for a value that is not a GUID.
pub fn lease_id(call: &Call) -> Result<Option<Uuid>, StorageError> {
    id(call, LEASE_ID)
}

/// Parses the lease id for the source of an operation, if any.
///
/// # Errors
/// 400 `InvalidHeaderValue` for a value that is not a GUID.
pub fn source_lease_id(call: &Call) -> Result<Option<Uuid>, StorageError> {
    id(call, "x-ms-source-lease-id")
}

fn id(call: &Call, name: &'static str) -> Result<Option<Uuid>, StorageError> {
    let Some(text) = call.header(name)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let canonical = parse_lease_id(name, text)?;
    Uuid::parse_str(&canonical)
        .map(Some)
        .map_err(|_| StorageError::invalid_header(name, text))
}

fn required_id(call: &Call, name: &'static str) -> Result<Uuid, StorageError> {
    id(call, name)?.ok_or_else(|| StorageError::missing_header(name))
}

/// Parses the lease operation of a request.
///
/// # Errors
/// 400 `MissingRequiredHeader` or `InvalidHeaderValue`.
pub fn action(call: &Call) -> Result<Action, StorageError> {
    Ok(match parse_action(call.header("x-ms-lease-action")?)? {
        LeaseAction::Acquire => acquire(call)?,
        LeaseAction::Renew => Action::Renew {
            id: required_id(call, LEASE_ID)?,
        },
        LeaseAction::Change => Action::Change {
            id: required_id(call, LEASE_ID)?,
            proposed: required_id(call, PROPOSED_LEASE_ID)?,
        },
        LeaseAction::Release => Action::Release {
            id: required_id(call, LEASE_ID)?,
        },
        LeaseAction::Break => Action::Break {
            period_s: parse_break_period(call.header("x-ms-lease-break-period")?)?,
        },
    })
}

/// Parses the lease that a request acquires.
///
/// # Errors
/// As [`action`].
pub fn acquire(call: &Call) -> Result<Action, StorageError> {
    Ok(Action::Acquire {
        duration_s: duration_s(call)?,
        id: id(call, PROPOSED_LEASE_ID)?.unwrap_or(call.fresh_id),
    })
}

fn duration_s(call: &Call) -> Result<Option<u32>, StorageError> {
    if call.version < HAS_DURATION {
        return Ok(Some(FIXED_DURATION_S));
    }
    let duration = parse_duration(call.header("x-ms-lease-duration")?)?;
    Ok(match duration {
        LeaseDuration::Infinite => None,
        LeaseDuration::Seconds(seconds) => Some(seconds),
    })
}

/// The result of a lease operation.
pub struct LeaseOutcome {
    /// The operation.
    pub action: Action,
    /// Its effect.
    pub done: Done,
    /// ETag of the resource.
    pub etag: ETag,
    /// Last-modified time of the resource.
    pub last_modified: Timestamp,
}

/// Returns the response of a lease operation.
pub fn render(outcome: &LeaseOutcome, version: ApiVersion) -> Reply {
    let reply = Reply::new(match outcome.action {
        Action::Acquire { .. } => 201,
        Action::Break { .. } => 202,
        Action::Renew { .. } | Action::Change { .. } | Action::Release { .. } => 200,
    });
    let reply = if version >= KEEPS_VERSION {
        reply.version(outcome.etag, outcome.last_modified)
    } else {
        reply
    };
    reply
        .maybe(LEASE_ID, outcome.done.id.map(|id| id.to_string()))
        .maybe(
            "x-ms-lease-time",
            outcome.done.time_s.map(|time_s| time_s.to_string()),
        )
}
