//! Renders an operation as a request.

mod access;
mod blobs;
mod malformed;
mod paths;
mod request;
pub mod tables;

use http::Method;
use smalt_model::vocabulary::{
    AccountOperation, ContainerOperation, Names as Listed, Operation, QueueOperation, TAG,
};
use smalt_protocol::Service;
use smalt_protocol::uri::encode_query;

use self::request::lease;
pub use self::request::{Credential, Request};
use super::names::Names;

/// Returns the request that an operation sends; `None` when it sends none. For a listing, this is
/// the first page.
pub fn request(operation: &Operation, names: &Names) -> Option<Request> {
    Some(match operation {
        Operation::Container(name, operation) => container(name, operation, names),
        Operation::Blob(id, operation) => blobs::blob(id, operation, names),
        Operation::Path(id, operation) => paths::path(id, operation, names),
        Operation::Queue(name, operation) => queue(name, operation, names),
        Operation::Table(name, operation) => tables::request(name, operation, names),
        Operation::Account(operation) => account(operation),
        Operation::Access(service, name, operation) => access::request(*service, name, *operation),
        Operation::Malformed(which) => malformed::malformed(*which),
        Operation::Advance { .. } | Operation::Restart => return None,
    })
}

fn container(name: &str, operation: &ContainerOperation, names: &Names) -> Request {
    let path = format!("{name}?restype=container");
    match operation {
        ContainerOperation::Create(metadata) => Request::blob(Method::PUT, path).metadata(metadata),
        ContainerOperation::Delete(guard) => {
            Request::blob(Method::DELETE, path).guard(names, *guard)
        }
        ContainerOperation::Get { lease } => Request::blob(Method::GET, path).lease(names, *lease),
        ContainerOperation::SetMetadata(metadata, guard) => {
            Request::blob(Method::PUT, format!("{path}&comp=metadata"))
                .metadata(metadata)
                .guard(names, *guard)
        }
        ContainerOperation::Lease(action, condition) => {
            let request = Request::blob(Method::PUT, format!("{path}&comp=lease"));
            lease(request, *action, names).condition(names, "", *condition)
        }
        ContainerOperation::List {
            prefix,
            delimited,
            page,
            snapshots,
            uncommitted,
            deleted,
        } => {
            let mut path = format!("{path}&comp=list&maxresults={page}");
            if !prefix.is_empty() {
                path.push_str(&format!("&prefix={}", encode_query(prefix)));
            }
            if *delimited {
                path.push_str("&delimiter=%2F");
            }
            let include: Vec<&str> = [
                (true, "metadata"),
                (true, "tags"),
                (*snapshots, "snapshots"),
                (*uncommitted, "uncommittedblobs"),
                (*deleted, "deleted"),
            ]
            .into_iter()
            .filter_map(|(wanted, name)| wanted.then_some(name))
            .collect();
            path.push_str(&format!("&include={}", include.join(",")));
            Request::blob(Method::GET, path)
        }
    }
}

fn account(operation: &AccountOperation) -> Request {
    let list = |service, listed: &Listed| {
        let mut path = format!("?comp=list&maxresults={}", listed.page);
        if !listed.prefix.is_empty() {
            path.push_str(&format!("&prefix={}", encode_query(&listed.prefix)));
        }
        if listed.metadata {
            path.push_str("&include=metadata");
        }
        Request::new(service, Method::GET, path)
    };
    match operation {
        AccountOperation::Containers(listed) => list(Service::Blob, listed),
        AccountOperation::Queues(listed) => list(Service::Queue, listed),
        AccountOperation::Find {
            container,
            sign,
            value,
            page,
        } => {
            let within = match container {
                Some(name) => format!("{name}?restype=container&"),
                None => "?".to_owned(),
            };
            let query = encode_query(&format!("\"{TAG}\"{sign}'{value}'"));
            let path = format!("{within}comp=blobs&maxresults={page}&where={query}");
            Request::blob(Method::GET, path)
        }
        AccountOperation::Retain(days) => {
            let days = days.map_or_else(
                || "<Enabled>false</Enabled>".to_owned(),
                |days| format!("<Enabled>true</Enabled><Days>{days}</Days>"),
            );
            let policy = format!("<DeleteRetentionPolicy>{days}</DeleteRetentionPolicy>");
            let all = "StorageServiceProperties";
            Request::blob(Method::PUT, "?restype=service&comp=properties")
                .body(format!("<{all}>{policy}</{all}>"))
        }
    }
}

fn queue(name: &str, operation: &QueueOperation, names: &Names) -> Request {
    let request = |method, path: String| Request::new(Service::Queue, method, path);
    let document =
        |text: &str| format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    match operation {
        QueueOperation::Create(metadata) => {
            request(Method::PUT, name.to_owned()).metadata(metadata)
        }
        QueueOperation::Delete => request(Method::DELETE, name.to_owned()),
        QueueOperation::Get => request(Method::GET, format!("{name}?comp=metadata")),
        QueueOperation::SetMetadata(metadata) => {
            request(Method::PUT, format!("{name}?comp=metadata")).metadata(metadata)
        }
        QueueOperation::Put {
            text,
            ttl_s,
            visibility_timeout_s,
        } => {
            let mut path = format!("{name}/messages?visibilitytimeout={visibility_timeout_s}");
            if let Some(ttl_s) = ttl_s {
                path.push_str(&format!("&messagettl={ttl_s}"));
            }
            request(Method::POST, path).body(document(text))
        }
        QueueOperation::Receive {
            most,
            visibility_timeout_s,
        } => request(
            Method::GET,
            format!(
                "{name}/messages?numofmessages={most}&visibilitytimeout={visibility_timeout_s}"
            ),
        ),
        QueueOperation::Peek { most } => request(
            Method::GET,
            format!("{name}/messages?peekonly=true&numofmessages={most}"),
        ),
        QueueOperation::Update {
            id,
            receipt,
            visibility_timeout_s,
            text,
        } => request(
            Method::PUT,
            format!(
                "{}&visibilitytimeout={visibility_timeout_s}",
                message(name, *id, *receipt, names)
            ),
        )
        .body(text.as_deref().map(document).unwrap_or_default()),
        QueueOperation::DeleteMessage { id, receipt } => {
            request(Method::DELETE, message(name, *id, *receipt, names))
        }
        QueueOperation::Clear => request(Method::DELETE, format!("{name}/messages")),
    }
}

fn message(
    queue: &str,
    id: smalt_model::vocabulary::MessageId,
    receipt: smalt_model::vocabulary::Receipt,
    names: &Names,
) -> String {
    let receipt = names.receipt(receipt);
    let (id, receipt) = (names.message(id), encode_query(&receipt));
    format!("{queue}/messages/{id}?popreceipt={receipt}")
}
