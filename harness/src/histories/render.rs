//! An operation as requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use smalt_model::vocabulary::{
    BlobId, BlobOperation, BlockSource, Condition, ContainerOperation, Guard, LeaseAction,
    Malformed, Metadata, Operation, QueueOperation, Snapshots,
};
use smalt_protocol::uri::encode_query;
use smalt_protocol::{Service, Timestamp};

use super::names::Names;

/// A request without credentials.
#[derive(Clone, Debug)]
pub struct Request {
    /// Service asked.
    pub service: Service,
    /// Method.
    pub method: Method,
    /// Path behind the account, with its query.
    pub path: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    fn new(service: Service, method: Method, path: impl Into<String>) -> Self {
        Request {
            service,
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn blob(method: Method, path: impl Into<String>) -> Self {
        Self::new(Service::Blob, method, path)
    }

    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
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
        };
        self.with(&format!("{prefix}{name}"), value)
    }

    fn guard(self, names: &Names, guard: Guard) -> Self {
        self.lease(names, guard.lease)
            .condition(names, "", guard.condition)
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

/// The request that an operation sends; none where it asks nothing of the service. A listing goes
/// on from this first page by itself.
pub fn request(operation: &Operation, names: &Names) -> Option<Request> {
    Some(match operation {
        Operation::Container(name, operation) => container(name, operation, names),
        Operation::Blob(id, operation) => blob(id, operation, names),
        Operation::Queue(name, operation) => queue(name, operation, names),
        Operation::Malformed(which) => malformed(*which),
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
        } => {
            let mut path = format!("{path}&comp=list&maxresults={page}");
            if !prefix.is_empty() {
                path.push_str(&format!("&prefix={}", encode_query(prefix)));
            }
            if *delimited {
                path.push_str("&delimiter=%2F");
            }
            let include: Vec<&str> = [
                (*snapshots, "snapshots"),
                (*uncommitted, "uncommittedblobs"),
            ]
            .into_iter()
            .filter_map(|(wanted, name)| wanted.then_some(name))
            .collect();
            if !include.is_empty() {
                path.push_str(&format!("&include={}", include.join(",")));
            }
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

fn path(id: &BlobId) -> String {
    format!("{}/{}", id.container, id.blob)
}

fn part(id: &BlobId, snapshot: Option<smalt_model::vocabulary::Moment>, names: &Names) -> String {
    match snapshot {
        Some(moment) => format!("{}?snapshot={}", path(id), names.moment(moment)),
        None => path(id),
    }
}

fn blob(id: &BlobId, operation: &BlobOperation, names: &Names) -> Request {
    let comp = |comp: &str| Request::blob(Method::PUT, format!("{}?comp={comp}", path(id)));
    let get = |comp: &str| Request::blob(Method::GET, format!("{}?comp={comp}", path(id)));
    match operation {
        BlobOperation::Put(content, metadata, guard) => Request::blob(Method::PUT, path(id))
            .with("x-ms-blob-type", "BlockBlob")
            .metadata(metadata)
            .guard(names, *guard)
            .body(content.bytes()),
        BlobOperation::Get {
            snapshot,
            range,
            guard,
        } => Request::blob(Method::GET, part(id, *snapshot, names))
            .maybe("x-ms-range", range.map(bytes))
            .guard(names, *guard),
        BlobOperation::Head { snapshot, guard } => {
            Request::blob(Method::HEAD, part(id, *snapshot, names)).guard(names, *guard)
        }
        BlobOperation::SetMetadata(metadata, guard) => {
            comp("metadata").metadata(metadata).guard(names, *guard)
        }
        BlobOperation::Delete {
            snapshot,
            snapshots,
            guard,
        } => {
            let wish = snapshots.map(|which| match which {
                Snapshots::Include => "include".to_owned(),
                Snapshots::Only => "only".to_owned(),
            });
            Request::blob(Method::DELETE, part(id, *snapshot, names))
                .maybe("x-ms-delete-snapshots", wish)
                .guard(names, *guard)
        }
        BlobOperation::Snapshot(metadata, guard) => {
            comp("snapshot").metadata(metadata).guard(names, *guard)
        }
        BlobOperation::Lease(action, condition) => {
            lease(comp("lease"), *action, names).condition(names, "", *condition)
        }
        BlobOperation::PutBlock(block, content, lease) => comp(&put_block(block))
            .lease(names, *lease)
            .body(content.bytes()),
        BlobOperation::PutBlockList(list, metadata, guard) => comp("blocklist")
            .metadata(metadata)
            .guard(names, *guard)
            .body(block_list(list)),
        BlobOperation::GetBlockList { lease } => {
            get("blocklist&blocklisttype=all").lease(names, *lease)
        }
        BlobOperation::Copy {
            source,
            snapshot,
            source_condition,
            metadata,
            guard,
        } => Request::blob(Method::PUT, path(id))
            .with("x-ms-copy-source", part(source, *snapshot, names))
            .condition(names, "x-ms-source-", *source_condition)
            .metadata(metadata)
            .guard(names, *guard),
        BlobOperation::SetTags(tags, lease) => {
            comp("tags").lease(names, *lease).body(tag_set(tags))
        }
        BlobOperation::GetTags(lease) => get("tags").lease(names, *lease),
    }
}

/// First byte and, unless to the end, last byte, as a range.
fn bytes((first, last): (u64, Option<u64>)) -> String {
    let last = last.map_or_else(String::new, |last| last.to_string());
    format!("bytes={first}-{last}")
}

fn put_block(block: &[u8]) -> String {
    format!("block&blockid={}", encode_query(&BASE64.encode(block)))
}

fn block_list(list: &[(BlockSource, Vec<u8>)]) -> String {
    let entry = |(source, block): &(BlockSource, Vec<u8>)| {
        let name = match source {
            BlockSource::Committed => "Committed",
            BlockSource::Uncommitted => "Uncommitted",
            BlockSource::Latest => "Latest",
        };
        format!("<{name}>{}</{name}>", BASE64.encode(block))
    };
    let entries: String = list.iter().map(entry).collect();
    format!("<BlockList>{entries}</BlockList>")
}

fn tag_set(tags: &Metadata) -> String {
    let entry = |(key, value): (&String, &String)| {
        format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>")
    };
    let entries: String = tags.iter().map(entry).collect();
    format!("<Tags><TagSet>{entries}</TagSet></Tags>")
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

fn malformed(which: Malformed) -> Request {
    let put = |path: &str| Request::blob(Method::PUT, path);
    let queue = |method, path: &str| Request::new(Service::Queue, method, path);
    match which {
        Malformed::ContainerName => put("CAPITALS?restype=container"),
        Malformed::LeaseId => {
            Request::blob(Method::HEAD, "con0/b0").with("x-ms-lease-id", "no-guid")
        }
        Malformed::Date => {
            Request::blob(Method::GET, "con0/b0").with("if-modified-since", "yesterday")
        }
        Malformed::TwoConditions => Request::blob(Method::DELETE, "con0/b0")
            .with("if-match", "\"0x1\"")
            .with("if-none-match", "\"0x2\""),
        Malformed::LeaseDuration => put("con0/b0?comp=lease")
            .with("x-ms-lease-action", "acquire")
            .with("x-ms-lease-duration", "5"),
        Malformed::LeaseAction => put("con0/b0?comp=lease").with("x-ms-lease-action", "borrow"),
        Malformed::BlockId => put("con0/b0?comp=block&blockid=%21%21").body("data"),
        Malformed::BlobType => put("con0/b0").body("data"),
        Malformed::PageOfNone => {
            Request::blob(Method::GET, "con0?restype=container&comp=list&maxresults=0")
        }
        Malformed::TooManyMessages => queue(Method::GET, "que0/messages?numofmessages=33"),
        Malformed::VisibilityTimeout => {
            queue(Method::GET, "que0/messages?visibilitytimeout=604801")
        }
        Malformed::TimeToLive => queue(Method::POST, "que0/messages?messagettl=0")
            .body("<QueueMessage><MessageText>x</MessageText></QueueMessage>"),
    }
}
