//! Malformed requests. Source: "Common REST API Error Codes" and recordings.

use smalt_protocol::ErrorCode;

use crate::expected::{Expected, Refusal};
use crate::vocabulary::Malformed;
use crate::vocabulary::tables::TableMalformed;

/// Returns the answer of a malformed request.
pub(crate) fn refused(malformed: Malformed) -> Expected {
    let code = match malformed {
        Malformed::ContainerName => ErrorCode::InvalidResourceName,
        Malformed::TwoConditions => ErrorCode::MultipleConditionHeadersNotSupported,
        Malformed::BlockId | Malformed::TimeToLive => ErrorCode::InvalidQueryParameterValue,
        Malformed::BlobType => ErrorCode::MissingRequiredHeader,
        Malformed::PageOfNone | Malformed::TooManyMessages | Malformed::VisibilityTimeout => {
            ErrorCode::OutOfRangeQueryParameterValue
        }
        _ => ErrorCode::InvalidHeaderValue,
    };
    Refusal::from(code).into()
}

/// Returns the error of a malformed request to the Table service, which checks syntax before state.
pub(crate) fn refused_by_tables(malformed: TableMalformed) -> ErrorCode {
    match malformed {
        TableMalformed::TableName => ErrorCode::InvalidResourceName,
        TableMalformed::RowKey => ErrorCode::PropertiesNeedValue,
        TableMalformed::PropertyName => ErrorCode::PropertyNameInvalid,
        TableMalformed::Filter | TableMalformed::Top | TableMalformed::Document => {
            ErrorCode::InvalidInput
        }
    }
}
