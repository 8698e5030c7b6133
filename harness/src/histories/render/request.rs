//! Requests, and the headers that operations share.

use http::Method;
use smalt_model::vocabulary::{
    Condition, Guard, Labels, LeaseAction, Metadata, Position, Sequence, TAG,
};
use smalt_protocol::{Service, Timestamp};

use crate::histories::names::Names;

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
    pub(super) fn new(service: Service, method: Method, path: impl Into<String>) -> Self {
        Request {
            service,
            credential: Credential::Account,
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(super) fn blob(method: Method, path: impl Into<String>) -> Self {
        Self::new(Service::Blob, method, path)
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn maybe(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(super) fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata {
            self = self.with(&format!("x-ms-meta-{name}"), value);
        }
        self
    }

    pub(super) fn labels(self, labels: &Labels) -> Self {
        let tags = labels
            .tags
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let tags = (!labels.tags.is_empty()).then(|| tags.collect::<Vec<_>>().join("&"));
        self.metadata(&labels.metadata).maybe("x-ms-tags", tags)
    }

    pub(super) fn lease(
        self,
        names: &Names,
        lease: Option<smalt_model::vocabulary::LeaseId>,
    ) -> Self {
        self.maybe("x-ms-lease-id", lease.map(|id| names.lease(id)))
    }

    pub(super) fn condition(
        self,
        names: &Names,
        prefix: &str,
        condition: Option<Condition>,
    ) -> Self {
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

    pub(super) fn guard(self, names: &Names, guard: Guard) -> Self {
        self.lease(names, guard.lease)
            .condition(names, "", guard.condition)
    }

    pub(super) fn position(self, position: Option<Position>) -> Self {
        let (name, number) = match position {
            None => return self,
            Some(Position::At(at)) => ("appendpos", at),
            Some(Position::Most(most)) => ("maxsize", most),
        };
        self.with(&format!("x-ms-blob-condition-{name}"), number.to_string())
    }

    pub(super) fn sequence(self, sequence: Option<Sequence>) -> Self {
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

    pub(super) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

/// Adds the headers of a lease operation.
pub(super) fn lease(request: Request, action: LeaseAction, names: &Names) -> Request {
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
