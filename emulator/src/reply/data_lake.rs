//! Refusals of the Data Lake interface: JSON, with another `Server` header.

use smalt_protocol::StorageError;
use smalt_protocol::xml::ErrorDocument;

use super::{Common, Content, Reply};

/// Value of the `Server` header, as recorded.
pub(super) const SERVER: &str = "Windows-Azure-HDFS/1.0 Microsoft-HTTPAPI/2.0";

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
