//! A parsed request as the operations see it: target, time, version and identity, without raw
//! bytes.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Uri};
use smalt_protocol::table::address;
use smalt_protocol::{ApiVersion, Metadata, Service, StorageError, Timestamp};
use uuid::Uuid;

use crate::auth::Identity;
use crate::config::AccountSettings;
use crate::header_case::HeaderCase;
use crate::lane::Lane;
use crate::rules::acl::Need;
use crate::rules::events::Raises;
use crate::target::{Resource, Target};

/// The head of a request, with what the earlier stages of the pipeline derived from it.
pub struct Call {
    /// Method; for a tunnelled request the one in `X-HTTP-Method`.
    pub method: Method,
    /// Method of the request line, which is part of the string to sign.
    pub sent_method: Method,
    /// Account, service and resource.
    pub target: Target,
    /// Target as sent; a request that the emulator makes itself has an empty one.
    pub uri: Uri,
    /// Query parameters, decoded, in the order sent.
    pub query: Vec<(String, String)>,
    /// Headers.
    pub headers: HeaderMap,
    /// Case of the metadata names among the headers.
    pub header_case: HeaderCase,
    /// API version under which the request is served.
    pub version: ApiVersion,
    /// Whether the request names a version.
    pub version_given: bool,
    /// Whether the request names a version, or the service has a default one.
    pub version_known: bool,
    /// Time of arrival on the emulator's clock.
    pub arrival: Timestamp,
    /// `x-ms-request-id` of the response.
    pub request_id: Uuid,
    /// A unique id for the lease, copy or message that the request creates.
    pub fresh_id: Uuid,
    /// Length of the body in bytes; `None` when it is unknown.
    pub body_length: Option<u64>,
    /// Address of the peer; `None` in process.
    pub peer: Option<IpAddr>,
    /// Whether the request came over TLS.
    pub secure: bool,
    /// `scheme://host` as the client wrote it, for endpoints and copy sources.
    pub origin: String,
    /// Settings of the account at the time of the request.
    pub settings: Arc<AccountSettings>,
    /// How long the name of a deleted container, queue or table stays taken, in seconds.
    pub being_deleted_s: u64,
    /// Whether messages that become visible at the same time come in random order.
    pub shuffle_messages: bool,
    /// Where the request's long work runs.
    pub lane: Lane,
    /// Operation id of the register; empty before authorisation.
    pub operation: &'static str,
    /// The event that the operation can raise; `None` before authorisation.
    pub raises: Option<Raises>,
    /// What the request needs where access control lists decide; a role before authorisation.
    pub need: Need,
    /// The caller's identity; [`Identity::Anonymous`] before authorisation.
    pub identity: Identity,
}

/// The Microsoft Entra ID user for whom a request is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Object id.
    pub id: String,
    /// Whether access control lists decide what the user may do.
    pub is_checked: bool,
}

impl Call {
    /// Returns the user for whom the request is sent; `None` for the holder of an account key, and
    /// of a signature that names no user. Source for `suoid` and `saoid`: "Create a user delegation
    /// SAS".
    pub fn subject(&self) -> Option<Subject> {
        let named = |field| self.query(field).filter(|id| !id.is_empty());
        match self.identity {
            Identity::Entra(principal) => {
                let id = principal.object_id.to_string();
                let is_checked = principal.is_checked;
                Some(Subject { id, is_checked })
            }
            Identity::Sas(_) => {
                named("skoid")?;
                let checked = named("suoid");
                Some(Subject {
                    id: checked.or_else(|| named("saoid"))?.to_owned(),
                    is_checked: checked.is_some(),
                })
            }
            Identity::Owner | Identity::Anonymous => None,
        }
    }

    /// Returns whether the request's resources have access control lists.
    pub fn has_access_lists(&self) -> bool {
        self.service() == Service::Blob && self.settings.hierarchical_namespace
    }

    /// Returns a header as a string. Rejects bytes beyond ASCII, which no header of the API
    /// contains.
    pub fn header(&self, name: &'static str) -> Result<Option<&str>, StorageError> {
        match first(&self.headers, name) {
            None => Ok(None),
            Some(value) => value
                .to_str()
                .map(Some)
                .map_err(|_| StorageError::invalid_header(name, "(not ASCII)")),
        }
    }

    /// Returns a required header, or an error when it is missing.
    pub fn required_header(&self, name: &'static str) -> Result<&str, StorageError> {
        self.header(name)?
            .ok_or_else(|| StorageError::missing_header(name))
    }

    /// Returns the first query parameter of this name, ignoring ASCII case.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the non-empty values of a list parameter (`include=a,b` or repeated).
    pub fn query_list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .flat_map(|(_, value)| value.split(','))
            .map(str::trim)
            .filter(|value| !value.is_empty())
    }

    /// Parses the `x-ms-meta-*` headers, or the `x-ms-properties` of the Data Lake interface.
    pub fn metadata(&self) -> Result<Metadata, StorageError> {
        if self.target.data_lake {
            return Metadata::from_properties(self.header("x-ms-properties")?.unwrap_or_default());
        }
        Metadata::from_headers(self.headers.iter().map(|(name, value)| {
            // A value that is not UTF-8 is rejected like one that is not printable.
            (
                self.header_case.restore(name.as_str()),
                std::str::from_utf8(value.as_bytes()).unwrap_or("\u{7f}"),
            )
        }))
    }

    /// Returns a call that this one makes to another resource: without headers and body, with this
    /// one's version, connection and ids, and no identity yet.
    pub fn within(
        &self,
        method: Method,
        target: Target,
        query: Vec<(String, String)>,
        settings: Arc<AccountSettings>,
    ) -> Call {
        Call {
            sent_method: method.clone(),
            method,
            settings,
            target,
            query,
            headers: HeaderMap::new(),
            uri: Uri::default(),
            header_case: HeaderCase::default(),
            being_deleted_s: self.being_deleted_s,
            shuffle_messages: self.shuffle_messages,
            version: self.version,
            version_given: true,
            version_known: true,
            arrival: self.arrival,
            request_id: self.request_id,
            fresh_id: self.fresh_id,
            body_length: None,
            peer: self.peer,
            secure: self.secure,
            origin: self.origin.clone(),
            lane: self.lane.clone(),
            operation: "",
            raises: None,
            need: Need::Role,
            identity: Identity::Anonymous,
        }
    }

    /// Returns the service of the request.
    pub fn service(&self) -> Service {
        self.target.service
    }

    /// Returns the account name of the request.
    pub fn account(&self) -> &str {
        &self.target.account
    }

    /// Returns the container name; empty unless the resource is a container or a blob.
    pub fn container(&self) -> &str {
        match &self.target.resource {
            Resource::Container(name) | Resource::Blob(name, _) => name,
            _ => "",
        }
    }

    /// Returns the blob name; empty unless the resource is a blob.
    pub fn blob(&self) -> &str {
        match &self.target.resource {
            Resource::Blob(_, name) => name,
            _ => "",
        }
    }

    /// Returns the queue name; empty unless the resource is a queue, its messages or a message.
    pub fn queue(&self) -> &str {
        match &self.target.resource {
            Resource::Queue(name) | Resource::Messages(name) | Resource::Message(name, _) => name,
            _ => "",
        }
    }

    /// Returns the table name in the path; empty unless the resource is a table or an entity.
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

    /// Returns the message id; empty unless the resource is a message.
    pub fn message(&self) -> &str {
        match &self.target.resource {
            Resource::Message(_, id) => id,
            _ => "",
        }
    }

    /// Returns the endpoint that listings name, such as `http://127.0.0.1:10000/devstoreaccount1/`.
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

/// Returns the first value of a header, by its name in lower case. For the few headers of a request
/// comparing names is cheaper than the map's own look-up, which parses and hashes the name.
pub fn first<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a HeaderValue> {
    let mut headers = headers.iter();
    headers.find_map(|(given, value)| (given.as_str() == name).then_some(value))
}

impl std::fmt::Debug for Call {
    /// Leaves out headers and query, which may contain keys, tokens and signatures.
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
