//! Parses the head of an HTTP request into a [`Call`].

use std::mem;
use std::net::IpAddr;

use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Method, Version};
use http_body::Body as _;
use smalt_protocol::{ApiVersion, ErrorCode, Service, StorageError, limits, uri};
use uuid::Uuid;

use crate::auth::Identity;
use crate::body::Body;
use crate::call::{Call, first};
use crate::core::Core;
use crate::data_lake;
use crate::header_case::HeaderCase;
use crate::lane::Lane;
use crate::rules::acl::Need;
use crate::rules::web;
use crate::target::{self, Address, Resource, Target};

/// The transport of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Socket {
    /// Service of the listening socket; `None` in process, where host or port decide.
    pub service: Option<Service>,
    /// Whether the socket serves the Data Lake interface alone; `service` is the Blob service then.
    pub data_lake: bool,
    /// Address of the peer; `None` in process.
    pub peer: Option<IpAddr>,
    /// The address of this server that the peer connected to; `None` when it is unknown.
    pub local: Option<IpAddr>,
    /// Whether the request came over TLS.
    pub secure: bool,
}

/// Header with the method that a POST to the Table service stands for.
pub const TUNNEL: &str = "x-http-method";
/// Header with the method that a request to the Data Lake interface stands for.
const OVERRIDE: &str = "x-http-method-override";
/// Version of requests that name none, which anonymous access has used since the root container was
/// introduced.
const UNNAMED: ApiVersion = ApiVersion::V2009_09_19;

/// Parses the head of a request, before authorisation. The call takes what the head has; on error,
/// the head keeps it.
pub fn arrive(
    core: &Core,
    head: &mut Parts,
    body: &Body,
    socket: &Socket,
    request_id: Uuid,
) -> Result<Call, StorageError> {
    let host = host(head);
    let query = uri::parse_query(head.uri.query().unwrap_or_default())?;
    let restype = uri::lookup(&query, "restype").unwrap_or_default();
    let address = Address {
        host,
        raw_path: head.uri.path(),
        socket: socket.service,
        on_data_lake_socket: socket.data_lake,
        names_container: ["container", "account"]
            .iter()
            .any(|container| restype.eq_ignore_ascii_case(container)),
        has_data_lake_shape: data_lake::has_shape(&head.method, &head.headers, &query),
        host_style: core.config.host_style,
    };
    let target = target::resolve(&address, |name| core.config.account(name).is_some())?;
    let named = named_version(&head.headers, &query);
    let version = named.map(|text| version(core, text)).transpose()?;
    let default = match version {
        Some(_) => None,
        None => default_version(core, &target)?,
    };
    check_client_request_id(&head.headers)?;
    let unnamed = unnamed_version(&head.method, &target);
    let scheme = if socket.secure { "https://" } else { "http://" };
    let declared = head
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse().ok());
    Ok(Call {
        origin: [scheme, host].concat(),
        body_length: declared.or_else(|| body.size_hint().exact()),
        method: tunnelled(&head.method, &head.headers, &target),
        sent_method: head.method.clone(),
        settings: core.settings(&target.account),
        target,
        uri: mem::take(&mut head.uri),
        query,
        header_case: head
            .extensions
            .get::<HeaderCase>()
            .cloned()
            .unwrap_or_default(),
        headers: mem::take(&mut head.headers),
        version: version.or(default).unwrap_or(unnamed),
        version_given: version.is_some(),
        version_known: version.or(default).is_some(),
        arrival: core.store.now(),
        request_id,
        fresh_id: core.ids.next(),
        peer: socket.peer,
        secure: socket.secure,
        being_deleted_s: core.config.being_deleted_s,
        shuffle_messages: core.config.shuffle_messages,
        lane: match socket.peer {
            Some(_) => core.lane.clone(),
            None => Lane::here(),
        },
        operation: "",
        raises: None,
        need: Need::Role,
        identity: Identity::Anonymous,
    })
}

/// Returns the version of a request that names none.
fn unnamed_version(method: &Method, target: &Target) -> ApiVersion {
    match target.resource {
        // The next version ended this form of Put Message, so the client is older than versions.
        Resource::Messages(_) if *method == Method::PUT => ApiVersion::V2009_07_17,
        _ => UNNAMED,
    }
}

/// Returns the method that `X-HTTP-Method` names in a request to the Table service, since some
/// proxies only pass GET and POST, or `X-HTTP-Method-Override` in one to the Data Lake interface;
/// else the sent one. *Authorization for the Azure Storage services* has the sent method signed. An
/// invalid header has no effect here; the register refuses it.
fn tunnelled(sent: &Method, headers: &HeaderMap, target: &Target) -> Method {
    let service = target.service;
    if target.data_lake {
        // Hadoop's ABFS: its HTTP client knows no PATCH.
        let is_patch = headers
            .get(OVERRIDE)
            .is_some_and(|method| method == "PATCH");
        let may_be = is_patch && matches!(*sent, Method::PUT | Method::POST);
        return if may_be { Method::PATCH } else { sent.clone() };
    }
    let named = (service == Service::Table).then(|| headers.get(TUNNEL));
    let named = named.flatten();
    let named = named.and_then(|name| Method::from_bytes(name.as_bytes()).ok());
    named.unwrap_or_else(|| sent.clone())
}

/// Returns the host that a request names; empty when there is none.
pub fn host(head: &Parts) -> &str {
    let named = || head.headers.get(HOST).and_then(|h| h.to_str().ok());
    match head.uri.authority() {
        Some(authority) => authority.as_str(),
        None => named().unwrap_or_default(),
    }
}

/// Returns the service that socket or host name; it decides the form of a refusal before the
/// request is parsed. Returns the Blob service when neither names one.
pub fn service(head: &Parts, socket: &Socket) -> Service {
    let told = socket.service.or_else(|| target::service_of(host(head)));
    told.unwrap_or(Service::Blob)
}

/// Whether the socket or the host names the Data Lake interface, before the request is parsed.
pub fn is_data_lake(head: &Parts, socket: &Socket) -> bool {
    socket.data_lake || target::names_data_lake(host(head))
}

/// Returns the version that a request names: in its header, else in `api-version`, else in its
/// signature. "Previous Azure Storage service versions": with the first two versions of `sv` the
/// header of a signed request is ignored.
fn named_version<'a>(headers: &'a HeaderMap, query: &'a [(String, String)]) -> Option<&'a str> {
    const DECIDES_ALONE: [&str; 2] = ["2012-02-12", "2013-08-15"];
    let signed = uri::lookup(query, "sv");
    let decides_alone = signed.filter(|version| DECIDES_ALONE.contains(version));
    if decides_alone.is_some() && !headers.contains_key(AUTHORIZATION) {
        return decides_alone;
    }
    match first(headers, "x-ms-version") {
        Some(value) => Some(value.to_str().unwrap_or("(not ASCII)")),
        None => uri::lookup(query, "api-version").or(signed),
    }
}

/// Checks what HTTP requires of a request on the wire, before anything else is parsed.
pub fn check_framing(core: &Core, head: &Parts, socket: &Socket) -> Result<(), StorageError> {
    if socket.peer.is_none() {
        return Ok(());
    }
    // RFC 9112, 3.2: exactly one Host; before HTTP/1.1 it may be missing.
    let hosts = head.headers.get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && head.version >= Version::HTTP_11) {
        return Err(StorageError::invalid_header("Host", ""));
    }
    check_host(core, head, socket)?;
    check_codings(&head.headers)?;
    // The service's front end answers 411 to an upload without a length, even an empty one.
    let is_upload = matches!(head.method, Method::PUT | Method::POST);
    let has_length = [CONTENT_LENGTH, TRANSFER_ENCODING]
        .iter()
        .any(|name| head.headers.contains_key(name));
    if is_upload && !has_length {
        return Err(ErrorCode::MissingContentLengthHeader.into());
    }
    Ok(())
}

/// RFC 9112, 6.1: rejects codings besides chunked, whose bytes would be stored undecoded.
fn check_codings(headers: &HeaderMap) -> Result<(), StorageError> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else {
        return Ok(());
    };
    let is_chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if is_chunked && codings.next().is_none() {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(coding.as_bytes());
    Err(StorageError::invalid_header("Transfer-Encoding", &shown))
}

/// Rejects a host name that a web page could have pointed at this machine; browsers always send
/// one. On other than loopback addresses, every name is allowed unless `--allowHost` is given.
fn check_host(core: &Core, head: &Parts, socket: &Socket) -> Result<(), StorageError> {
    let allowed = &core.config.allowed_hosts;
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    let host = host(head);
    let is_checked = !allowed.is_empty() || socket.local.is_none_or(is_loopback);
    if !is_checked || host.is_empty() || web::is_known_host(host, allowed) {
        return Ok(());
    }
    Err(
        StorageError::invalid_header("Host", host).with_message(format!(
            "This server does not serve the host name {host}. To allow it, start smalt with \
         --allowHost {host}."
        )),
    )
}

/// Returns `DefaultServiceVersion` of the service's properties, for requests that name no version.
fn default_version(core: &Core, target: &Target) -> Result<Option<ApiVersion>, StorageError> {
    let stored = core
        .properties
        .load(&core.store, &target.account, target.service)?;
    let named = stored.as_ref().and_then(|p| p.default_version.as_deref());
    Ok(named.and_then(ApiVersion::parse))
}

fn version(core: &Core, text: &str) -> Result<ApiVersion, StorageError> {
    let refused = || StorageError::invalid_header("x-ms-version", text);
    let resolved = ApiVersion::resolve(text).map_err(|_| refused())?;
    if resolved.newer_than_known {
        if core.config.strict_api_version {
            return Err(refused());
        }
        core.note_newer_version(text, resolved.version);
    }
    Ok(resolved.version)
}

fn check_client_request_id(headers: &http::HeaderMap) -> Result<(), StorageError> {
    let name = "x-ms-client-request-id";
    match headers.get(name) {
        Some(id) if id.len() > limits::CLIENT_REQUEST_ID_BYTES_MAX => {
            let shown = String::from_utf8_lossy(&id.as_bytes()[..64]).into_owned();
            Err(StorageError::invalid_header(name, &shown))
        }
        Some(id) if id.as_bytes().is_ascii() => Ok(()),
        Some(_) => Err(ErrorCode::InvalidHeaderValue.into()),
        None => Ok(()),
    }
}
