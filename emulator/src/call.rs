//! One request as the operations see it: resolved, dated, versioned, authorised; never raw bytes.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, Method};
use smalt_protocol::table::address;
use smalt_protocol::{ApiVersion, Metadata, Service, StorageError, Timestamp};
use uuid::Uuid;

use crate::auth::Identity;
use crate::config::AccountSettings;
use crate::header_case::HeaderCase;
use crate::lane::Lane;
use crate::target::{Resource, Target};

/// The head of a request, with everything that the way in has found out about it.
pub struct Call {
    /// Method: what a tunnelled request asks for.
    pub method: Method,
    /// Method of the request line, which signatures cover.
    pub sent_method: Method,
    /// Account, service, resource.
    pub target: Target,
    /// Query parameters, decoded, in the order sent.
    pub query: Vec<(String, String)>,
    /// Headers.
    pub headers: HeaderMap,
    /// Case of the metadata names among them.
    pub header_case: HeaderCase,
    /// The version that is served.
    pub version: ApiVersion,
    /// Whether the request named a version at all.
    pub version_given: bool,
    /// Whether there is a version to go by: the request's own, or the service's default one.
    pub version_known: bool,
    /// When the request arrived, on the emulator's clock.
    pub arrival: Timestamp,
    /// `x-ms-request-id` of the response.
    pub request_id: Uuid,
    /// An id that nothing else uses: of the lease, copy or message that the request makes.
    pub fresh_id: Uuid,
    /// Length of the body, where it is known.
    pub body_length: Option<u64>,
    /// Peer, where there is one.
    pub peer: Option<IpAddr>,
    /// Whether it came over TLS.
    pub secure: bool,
    /// `scheme://host` as the client wrote it, for endpoints and copy sources.
    pub origin: String,
    /// Settings of the account.
    pub settings: Arc<AccountSettings>,
    /// How long the name of a deleted container or queue stays taken, in seconds.
    pub being_deleted_s: u64,
    /// Whether messages of the same moment come in any order.
    pub shuffle_messages: bool,
    /// Where its long work runs.
    pub lane: Lane,
    /// Id of its operation in the register. Empty until it is authorised.
    pub operation: &'static str,
    /// Who asks. [`Identity::Anonymous`] until authorisation.
    pub identity: Identity,
}

impl Call {
    /// A header as text. Bytes beyond ASCII are refused: no header of ours has them.
    pub fn header(&self, name: &'static str) -> Result<Option<&str>, StorageError> {
        match self.headers.get(name) {
            None => Ok(None),
            Some(value) => value
                .to_str()
                .map(Some)
                .map_err(|_| StorageError::invalid_header(name, "(not ASCII)")),
        }
    }

    /// A header that the operation cannot do without.
    pub fn required_header(&self, name: &'static str) -> Result<&str, StorageError> {
        self.header(name)?
            .ok_or_else(|| StorageError::missing_header(name))
    }

    /// The first query parameter of this name, compared without case.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Every value of a list parameter (`include=a,b` or repeated), without empty ones.
    pub fn query_list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .flat_map(|(_, value)| value.split(','))
            .map(str::trim)
            .filter(|value| !value.is_empty())
    }

    /// User metadata of the request.
    pub fn metadata(&self) -> Result<Metadata, StorageError> {
        Metadata::from_headers(self.headers.iter().map(|(name, value)| {
            // A value that is not UTF-8 is refused like one that is not printable.
            (
                self.header_case.restore(name.as_str()),
                std::str::from_utf8(value.as_bytes()).unwrap_or("\u{7f}"),
            )
        }))
    }

    /// Service addressed.
    pub fn service(&self) -> Service {
        self.target.service
    }

    /// Account addressed.
    pub fn account(&self) -> &str {
        &self.target.account
    }

    /// Container addressed; empty when the resource is no container or blob.
    pub fn container(&self) -> &str {
        match &self.target.resource {
            Resource::Container(name) | Resource::Blob(name, _) => name,
            _ => "",
        }
    }

    /// Blob addressed; empty when the resource is no blob.
    pub fn blob(&self) -> &str {
        match &self.target.resource {
            Resource::Blob(_, name) => name,
            _ => "",
        }
    }

    /// Queue addressed; empty when the resource is no queue, message or messages.
    pub fn queue(&self) -> &str {
        match &self.target.resource {
            Resource::Queue(name) | Resource::Messages(name) | Resource::Message(name, _) => name,
            _ => "",
        }
    }

    /// Table addressed, as its path says; empty when the resource is no table or entity.
    pub fn table(&self) -> &str {
        match &self.target.resource {
            Resource::Table(Ok(
                address::Resource::Table(table)
                | address::Resource::Entities(table)
                | address::Resource::Entity { table, .. },
            )) => table,
            _ => "",
        }
    }

    /// Message addressed; empty when the resource is no message.
    pub fn message(&self) -> &str {
        match &self.target.resource {
            Resource::Message(_, id) => id,
            _ => "",
        }
    }

    /// `http://127.0.0.1:10000/devstoreaccount1/`: the endpoint that listings name.
    pub fn service_endpoint(&self) -> String {
        let path_style = self
            .target
            .raw_path
            .trim_start_matches('/')
            .strip_prefix(self.target.account.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '-']));
        if path_style && !self.origin.contains(&format!("//{}.", self.target.account)) {
            format!("{}/{}/", self.origin, self.target.account)
        } else {
            format!("{}/", self.origin)
        }
    }
}

impl std::fmt::Debug for Call {
    /// What is asked for. Headers and query may hold keys, tokens and signatures: none is shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("version", &self.version)
            .field("request_id", &self.request_id)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
