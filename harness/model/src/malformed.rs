//! Requests that break a rule of syntax. Source: "Common REST API Error Codes" and recordings.

use smalt_protocol::ErrorCode;

use crate::expected::{Expected, Refusal};
use crate::vocabulary::Malformed;

/// The one answer to each.
pub(crate) fn refused(malformed: Malformed) -> Expected {
    let code = match malformed {
        Malformed::ContainerName => ErrorCode::InvalidResourceName,
        Malformed::LeaseId
        | Malformed::Date
        | Malformed::LeaseDuration
        | Malformed::LeaseAction
        | Malformed::PageRange
        | Malformed::PageBlobLength => ErrorCode::InvalidHeaderValue,
        Malformed::TwoConditions => ErrorCode::MultipleConditionHeadersNotSupported,
        Malformed::BlockId | Malformed::TimeToLive => ErrorCode::InvalidQueryParameterValue,
        Malformed::BlobType => ErrorCode::MissingRequiredHeader,
        Malformed::PageOfNone | Malformed::TooManyMessages | Malformed::VisibilityTimeout => {
            ErrorCode::OutOfRangeQueryParameterValue
        }
    };
    Refusal::from(code).into()
}
