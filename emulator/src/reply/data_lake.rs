//! How the Data Lake interface words its refusals: as JSON, from a server of another name.

use smalt_protocol::StorageError;
use smalt_protocol::xml::ErrorDocument;

use super::{Common, Content, Reply};

/// `Server` of its answers, as recorded.
pub(super) const SERVER: &str = "Windows-Azure-HDFS/1.0 Microsoft-HTTPAPI/2.0";

/// `{"error":{"code":..,"message":..}}`.
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
