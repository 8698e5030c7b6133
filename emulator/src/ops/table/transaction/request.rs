//! An inner request of a transaction.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use smalt_protocol::table::batch::Request;
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::arrival::{self, Socket};
use crate::auth;
use crate::body;
use crate::call::Call;
use crate::core::Core;
use crate::ops::table::change::WrittenEntity;
use crate::ops::table::write;
use crate::register::{self, Entry, Run};
use crate::reply::{self, Common, Reply};
use crate::target::SECONDARY;

pub(super) const CHANGES: [&str; 4] = [
    "Table_DeleteEntity",
    "Table_InsertEntity",
    "Table_MergeEntity",
    "Table_UpdateEntity",
];
/// Operations that a batch may contain as its only request.
const QUERIES: [&str; 2] = [
    "Table_QueryEntities",
    "Table_QueryEntityWithPartitionAndRowKey",
];

/// SAS parameters that limit the range of entities: those of the transaction apply.
const BOUNDS: [&str; 5] = ["tn", "spk", "srk", "epk", "erk"];

/// A parsed and routed request that has not run yet.
pub(super) struct Part {
    call: Call,
    entry: Result<&'static Entry, StorageError>,
    body: Bytes,
    content_id: Option<String>,
}

/// A response with the `Content-ID` of its request.
pub(super) struct Served {
    pub(super) content_id: Option<String>,
    pub(super) reply: Reply,
}

impl Part {
    /// Parses a request on behalf of the sender of the transaction.
    ///
    /// # Errors
    /// 400 for a malformed request.
    pub(super) fn of(core: &Core, outer: &Call, request: Request) -> Result<Self, StorageError> {
        let content_id = request.content_id().map(str::to_owned);
        let body = Bytes::from(request.body.clone());
        let mut head = head(outer, &request)?;
        let socket = Socket {
            service: Some(outer.service()),
            peer: outer.peer,
            secure: outer.secure,
            ..Socket::default()
        };
        let mut call = arrival::arrive(core, &mut head, &body::empty(), &socket, outer.request_id)?;
        call.target.secondary = outer.target.secondary;
        call.version = outer.version;
        call.version_given = outer.version_given;
        call.version_known = outer.version_known;
        call.identity = outer.identity;
        call.query.retain(|(name, _)| !is_bound(name));
        let bounds = outer.query.iter().filter(|(name, _)| is_bound(name));
        call.query.extend(bounds.cloned());
        let is_here = is_addressed(outer, request.path_and_query());
        Ok(Part {
            entry: if is_here {
                register::find(&call)
            } else {
                Err(ErrorCode::InvalidInput.into())
            },
            call,
            body,
            content_id,
        })
    }

    pub(super) fn routed(&self) -> Result<(&Call, &'static Entry), StorageError> {
        let entry = self.entry.clone()?;
        Ok((&self.call, entry))
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    pub(super) async fn run(self, core: &Core) -> Served {
        let outcome = match self.routed() {
            Ok((call, entry)) if QUERIES.contains(&entry.id) => {
                match auth::permit(call, &entry.access) {
                    Ok(()) => match entry.run {
                        Run::Built(_, run) => run(core, call, &mut body::empty()).await,
                        _ => Err(ErrorCode::NotImplemented.into()),
                    },
                    Err(error) => Err(error),
                }
            }
            Ok(_) => Err(ErrorCode::InvalidInput.into()),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(reply) => Served {
                content_id: self.content_id,
                reply,
            },
            Err(error) => self.refusal(&error, core.store.now()),
        }
    }

    pub(super) fn answer(&self, written: &WrittenEntity, now: Timestamp) -> Served {
        match write::render(written, &self.call) {
            Ok(reply) => Served {
                content_id: self.content_id.clone(),
                reply,
            },
            Err(error) => self.refusal(&error, now),
        }
    }

    pub(super) fn refusal(&self, error: &StorageError, now: Timestamp) -> Served {
        let common = Common::of_refusal(&self.call, error, now);
        Served {
            content_id: self.content_id.clone(),
            reply: reply::refusal(error, &common),
        }
    }
}

fn is_bound(name: &str) -> bool {
    BOUNDS.iter().any(|bound| name.eq_ignore_ascii_case(bound))
}

/// Whether the path of an inner request is in the account of the transaction: without an account,
/// as recorded, or with it, as the SDKs write it for an emulator.
///
/// Ignores the host: the SDKs write the one in their configuration, and a proxy or the name of a
/// Docker container may have given the transaction another.
fn is_addressed(outer: &Call, target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let _resource = segments.next_back();
    let account = segments.next_back().is_none_or(|account| {
        let primary = account.strip_suffix(SECONDARY).unwrap_or(account);
        [account, primary].contains(&outer.account())
    });
    account && segments.next().is_none()
}

/// Returns the head of an inner request as if it had been sent alone to the transaction's account,
/// whatever host its address has.
fn head(outer: &Call, request: &Request) -> Result<http::request::Parts, StorageError> {
    let target = request.path_and_query();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let resource = path.rsplit('/').next().unwrap_or_default();
    let mut uri = format!("{}{resource}", outer.service_endpoint());
    if let Some(query) = query {
        uri.push('?');
        uri.push_str(query);
    }
    let method = Method::from_bytes(request.method.as_bytes());
    let mut built = http::Request::new(());
    *built.method_mut() = method.map_err(|_| ErrorCode::InvalidInput)?;
    *built.uri_mut() = Uri::try_from(uri).map_err(|_| ErrorCode::InvalidUri)?;
    *built.headers_mut() = headers(request)?;
    let (mut head, ()) = built.into_parts();
    if outer.version_given && !head.headers.contains_key("x-ms-version") {
        let version = HeaderValue::from_str(&outer.version.to_string());
        head.headers.insert(
            HeaderName::from_static("x-ms-version"),
            version.map_err(|_| ErrorCode::InvalidInput)?,
        );
    }
    Ok(head)
}

/// Whether it is a version header without a value: Microsoft's SDK for Go sends both versions of an
/// inner request empty; those of the transaction apply.
fn is_unstated_version((name, value): &(String, String)) -> bool {
    let is_version = ["x-ms-version", "dataserviceversion"]
        .iter()
        .any(|version| name.eq_ignore_ascii_case(version));
    is_version && value.trim().is_empty()
}

fn headers(request: &Request) -> Result<HeaderMap, StorageError> {
    let mut headers = HeaderMap::new();
    let stated = request.headers.iter();
    for (name, value) in stated.filter(|header| !is_unstated_version(header)) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.as_bytes());
        match (name, value) {
            (Ok(name), Ok(value)) => headers.append(name, value),
            _ => return Err(ErrorCode::InvalidInput.into()),
        };
    }
    Ok(headers)
}
