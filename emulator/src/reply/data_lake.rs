//! Refusals of the Data Lake interface: JSON, with another `Server` header.

use smalt_protocol::xml::ErrorDocument;
use smalt_protocol::{ErrorCode, StorageError};

use super::{Common, Content, Reply};

/// Value of the `Server` header, as recorded.
pub(super) const SERVER: &str = "Windows-Azure-HDFS/1.0 Microsoft-HTTPAPI/2.0";

/// Returns a refusal of the Blob service as the Data Lake interface words it.
pub(super) fn in_its_words(error: &StorageError) -> StorageError {
    let code = match error.code() {
        ErrorCode::BlobAlreadyExists => ErrorCode::PathAlreadyExists,
        ErrorCode::BlobNotFound => ErrorCode::PathNotFound,
        ErrorCode::ContainerAlreadyExists => ErrorCode::FilesystemAlreadyExists,
        ErrorCode::ContainerBeingDeleted => ErrorCode::FilesystemBeingDeleted,
        ErrorCode::ContainerNotFound => ErrorCode::FilesystemNotFound,
        ErrorCode::ResourceTypeMismatch => ErrorCode::PathConflict,
        // It speaks of resources: recorded, and expected by Hadoop's tests of ABFS.
        code @ (ErrorCode::LeaseIdMissing | ErrorCode::LeaseLost) => {
            let message = code.message().replace("the blob", "the resource");
            return error.clone().with_message(message);
        }
        _ => return error.clone(),
    };
    StorageError::new(code)
}

/// Renders `{"error":{"code":..,"message":..}}`.
pub(super) fn refusal(error: &StorageError, common: &Common<'_>) -> Reply {
    let id = common.request_id.to_string();
    let document = ErrorDocument {
        error,
        request_id: &id,
        time: common.now,
    };
    let code = error.code().as_str();
    let body = serde_json::json!({"error": {"code": code, "message": document.message()}});
    Reply::new(error.status())
        .header("content-type", "application/json; charset=utf-8")
        .content(Content::Bytes(body.to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_leases_speak_of_resources() {
        for code in [ErrorCode::LeaseIdMissing, ErrorCode::LeaseLost] {
            let worded = in_its_words(&code.into());
            assert!(worded.message().contains("the resource"), "{code:?}");
        }
    }
}
