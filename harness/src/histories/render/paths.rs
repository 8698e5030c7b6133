//! Operations of the Data Lake interface as requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use smalt_model::vocabulary::{BlobId, Metadata, PathOperation, Rename};
use smalt_protocol::uri::encode_query;

use super::request::{Request, lease};
use crate::histories::names::Names;

/// Adds the headers of a rename.
fn rename(request: Request, wanted: &Rename, names: &Names) -> Request {
    let BlobId { container, blob } = &wanted.source;
    let lease = wanted.source_lease.map(|id| names.lease(id));
    request
        .with("x-ms-rename-source", format!("/{container}/{blob}"))
        .maybe("x-ms-source-lease-id", lease)
        .condition(names, "x-ms-source-", wanted.source_condition)
        .guard(names, wanted.guard)
}

/// Returns metadata as the Data Lake interface writes it; `None` if there is none.
fn properties(metadata: &Metadata) -> Option<String> {
    let pairs = metadata.iter();
    let pairs = pairs.map(|(name, value)| format!("{name}={}", BASE64.encode(value)));
    let all = pairs.collect::<Vec<_>>().join(",");
    (!all.is_empty()).then_some(all)
}

pub(super) fn path(id: &BlobId, operation: &PathOperation, names: &Names) -> Request {
    let at = |method, query: String| {
        let query = if query.is_empty() {
            query
        } else {
            format!("?{query}")
        };
        Request::blob(method, format!("{}/{}{query}", id.container, id.blob))
    };
    match operation {
        PathOperation::Create {
            directory,
            metadata,
            guard,
        } => {
            let kind = if *directory { "directory" } else { "file" };
            at(Method::PUT, format!("resource={kind}"))
                .maybe("x-ms-properties", properties(metadata))
                .guard(names, *guard)
        }
        PathOperation::Append {
            content,
            position,
            flush,
            lease,
        } => {
            let query = format!("action=append&position={position}&flush={flush}");
            at(Method::PATCH, query)
                .lease(names, *lease)
                .body(content.bytes())
        }
        PathOperation::Flush {
            position,
            retain,
            guard,
        } => {
            let query = format!("action=flush&position={position}&retainUncommittedData={retain}");
            at(Method::PATCH, query).guard(names, *guard)
        }
        PathOperation::Rename(wanted) => {
            rename(at(Method::PUT, "mode=legacy".to_owned()), wanted, names)
        }
        PathOperation::Delete { recursive, guard } => {
            at(Method::DELETE, format!("recursive={recursive}")).guard(names, *guard)
        }
        PathOperation::Expire(after_s, guard) => {
            let option = after_s.map_or("NeverExpire", |_| "RelativeToNow");
            at(Method::PUT, "comp=expiry".to_owned())
                .with("x-ms-expiry-option", option)
                .maybe("x-ms-expiry-time", after_s.map(|s| (s * 1_000).to_string()))
                .guard(names, *guard)
        }
        PathOperation::Status(guard) => {
            at(Method::HEAD, "action=getStatus".to_owned()).guard(names, *guard)
        }
        PathOperation::Lease(action, condition) => {
            lease(at(Method::POST, String::new()), *action, names).condition(names, "", *condition)
        }
        PathOperation::List { recursive, page } => {
            let directory = encode_query(&id.blob);
            let query = format!(
                "resource=filesystem&recursive={recursive}&maxResults={page}&directory={directory}"
            );
            Request::blob(Method::GET, format!("{}?{query}", id.container))
        }
    }
}
