//! Renders an operation as a request.

mod access;
mod blobs;
mod malformed;
pub mod tables;

use http::Method;
use smalt_model::vocabulary::{
    AccountOperation, Condition, ContainerOperation, Guard, LeaseAction, Metadata, Names as Listed,
    Operation, Position, QueueOperation, Sequence, TAG,
};
use smalt_protocol::uri::encode_query;
use smalt_protocol::{Service, Timestamp};

use super::names::Names;

/// How a request is authorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// By a SAS that permits every operation of clients.
    Account,
    /// By the account's key, which access policies need.
    Key,
    /// By what its path or headers hold.
    Own,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Service that receives the request.
    pub service: Service,
    /// How it is authorized.
    pub credential: Credential,
    /// HTTP method.
    pub method: Method,
    /// Path behind the account, with its query.
    pub path: String,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// Request body.
    pub body: Vec<u8>,
}

impl Request {
    fn new(service: Service, method: Method, path: impl Into<String>) -> Self {
        Request {
            service,
            credential: Credential::Account,
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn blob(method: Method, path: impl Into<String>) -> Self {
        Self::new(Service::Blob, method, path)
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    fn maybe(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata {
            self = self.with(&format!("x-ms-meta-{name}"), value);
        }
        self
    }

    fn lease(self, names: &Names, lease: Option<smalt_model::vocabulary::LeaseId>) -> Self {
        self.maybe("x-ms-lease-id", lease.map(|id| names.lease(id)))
    }

    fn condition(self, names: &Names, prefix: &str, condition: Option<Condition>) -> Self {
        let tag = |tag: Option<_>| tag.map_or_else(|| "*".to_owned(), |tag| names.tag(tag));
        let date = |seconds| Timestamp::from_unix_s(seconds).rfc1123();
        let (name, value) = match condition {
            None => return self,
            Some(Condition::IfMatch(wanted)) => ("if-match", tag(wanted)),
            Some(Condition::IfNoneMatch(known)) => ("if-none-match", tag(known)),
            Some(Condition::IfModifiedSince(since)) => ("if-modified-since", date(since)),
            Some(Condition::IfUnmodifiedSince(since)) => ("if-unmodified-since", date(since)),
            Some(Condition::IfTags(value, is_equal)) => {
                let sign = if is_equal { "=" } else { "<>" };
                return self.with("x-ms-if-tags", format!("\"{TAG}\" {sign} '{value}'"));
            }
        };
        self.with(&format!("{prefix}{name}"), value)
    }

    fn guard(self, names: &Names, guard: Guard) -> Self {
        self.lease(names, guard.lease)
            .condition(names, "", guard.condition)
    }

    fn position(self, position: Option<Position>) -> Self {
        let (name, number) = match position {
            None => return self,
            Some(Position::At(at)) => ("appendpos", at),
            Some(Position::Most(most)) => ("maxsize", most),
        };
        self.with(&format!("x-ms-blob-condition-{name}"), number.to_string())
    }

    fn sequence(self, sequence: Option<Sequence>) -> Self {
        let (name, number) = match sequence {
            None => return self,
            Some(Sequence::Most(most)) => ("le", most),
            Some(Sequence::Below(end)) => ("lt", end),
            Some(Sequence::Is(number)) => ("eq", number),
        };
        self.with(
            &format!("x-ms-if-sequence-number-{name}"),
            number.to_string(),
        )
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

/// Returns the request that an operation sends; `None` when it sends none. For a listing, this is
/// the first page.
pub fn request(operation: &Operation, names: &Names) -> Option<Request> {
    Some(match operation {
        Operation::Container(name, operation) => container(name, operation, names),
        Operation::Blob(id, operation) => blobs::blob(id, operation, names),
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

fn lease(request: Request, action: LeaseAction, names: &Names) -> Request {
    let named = |name: &str| request.clone().with("x-ms-lease-action", name.to_owned());
    let id = |id| names.lease(id);
    match action {
        LeaseAction::Acquire {
            proposed,
            duration_s,
        } => {
            let duration = duration_s.map_or_else(|| "-1".to_owned(), |s| s.to_string());
            named("acquire")
                .with("x-ms-lease-duration", duration)
                .maybe("x-ms-proposed-lease-id", proposed.map(id))
        }
        LeaseAction::Renew(held) => named("renew").with("x-ms-lease-id", id(held)),
        LeaseAction::Change(held, proposed) => named("change")
            .with("x-ms-lease-id", id(held))
            .with("x-ms-proposed-lease-id", id(proposed)),
        LeaseAction::Release(held) => named("release").with("x-ms-lease-id", id(held)),
        LeaseAction::Break { period_s } => {
            named("break").maybe("x-ms-lease-break-period", period_s.map(|s| s.to_string()))
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
            value,
            page,
        } => {
            let within = match container {
                Some(name) => format!("{name}?restype=container&"),
                None => "?".to_owned(),
            };
            let query = encode_query(&format!("\"{TAG}\"='{value}'"));
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
