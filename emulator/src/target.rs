//! Resolves the account, service and resource that a request addresses.
//!
//! There are two styles, which the host distinguishes: *host style*
//! `devstoreaccount1.blob.<anything>/c/b`, as in Azure, and *path style*
//! `127.0.0.1:10000/devstoreaccount1/c/b`, as in Azurite. The socket (or, in process, the port)
//! determines the service of a path-style request.

use smalt_protocol::connection_string::emulator_port;
use smalt_protocol::table::address;
use smalt_protocol::{ErrorCode, Service, StorageError, uri};

use crate::data_lake;

/// Returns the service of a default port, for in-process requests in path style.
fn of_default_port(port: u16) -> Option<Service> {
    if port == data_lake::PORT {
        return Some(Service::Blob);
    }
    Service::ALL
        .into_iter()
        .find(|service| emulator_port(*service) == port)
}

/// Returns the service of a host label; both labels of Blob Storage name the Blob service.
fn of_label(label: &str) -> Option<Service> {
    if label == data_lake::LABEL {
        return Some(Service::Blob);
    }
    Service::ALL
        .into_iter()
        .find(|service| service.as_str() == label)
}

/// The resource that a path names, whether or not it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The service itself.
    Service,
    /// A container, by name.
    Container(String),
    /// A blob: container and blob name.
    Blob(String, String),
    /// A queue, by name.
    Queue(String),
    /// The messages of a queue, by its name.
    Messages(String),
    /// One message: queue name and message id.
    Message(String, String),
    /// A resource of the table service, or the refusal of a path that names none.
    Table(Result<address::Resource, StorageError>),
}

/// The kinds of [`Resource`], which the register uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Resource::Service`].
    Service,
    /// [`Resource::Container`].
    Container,
    /// [`Resource::Blob`].
    Blob,
    /// [`Resource::Queue`].
    Queue,
    /// [`Resource::Messages`].
    Messages,
    /// [`Resource::Message`].
    Message,
    /// [`Resource::Table`].
    Table,
}

impl Resource {
    /// Returns the container, queue or table; empty when the resource is in none.
    pub fn parent(&self) -> &str {
        match self {
            Resource::Container(name)
            | Resource::Blob(name, _)
            | Resource::Queue(name)
            | Resource::Messages(name)
            | Resource::Message(name, _) => name,
            Resource::Table(Ok(
                address::Resource::Table(name)
                | address::Resource::Entities(name)
                | address::Resource::Entity { table: name, .. },
            )) => name,
            Resource::Service | Resource::Table(_) => "",
        }
    }

    /// Returns the kind of the resource.
    pub const fn kind(&self) -> Kind {
        match self {
            Resource::Service => Kind::Service,
            Resource::Container(_) => Kind::Container,
            Resource::Blob(..) => Kind::Blob,
            Resource::Queue(_) => Kind::Queue,
            Resource::Messages(_) => Kind::Messages,
            Resource::Message(..) => Kind::Message,
            Resource::Table(_) => Kind::Table,
        }
    }
}

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Account name, without `-secondary`.
    pub account: String,
    /// Whether the request addresses the secondary endpoint.
    pub secondary: bool,
    /// Storage service.
    pub service: Service,
    /// Whether the request uses the Data Lake interface.
    pub data_lake: bool,
    /// The addressed resource.
    pub resource: Resource,
    /// The path as sent, from the first slash; it is part of the string to sign.
    pub raw_path: String,
}

/// The container of blobs whose path names no container.
pub const ROOT_CONTAINER: &str = "$root";

/// Suffix of the account name at the secondary endpoint.
pub const SECONDARY: &str = "-secondary";

/// The parts of a request that determine its target.
pub struct Address<'a> {
    /// `Host` header or URI authority.
    pub host: &'a str,
    /// Path as sent.
    pub raw_path: &'a str,
    /// Service of the listening socket; `None` in process.
    pub socket: Option<Service>,
    /// Whether that socket serves the Data Lake interface alone.
    pub on_data_lake_socket: bool,
    /// Whether the query shows that a single segment is a container, such as with
    /// `restype=container`.
    pub names_container: bool,
    /// Whether the request has the shape of the Data Lake interface: see [`data_lake::has_shape`].
    pub has_data_lake_shape: bool,
    /// Whether host names may name the account.
    pub host_style: bool,
}

/// Resolves an address. `is_account` returns whether an account of that name is configured.
pub fn resolve(
    address: &Address<'_>,
    is_account: impl Fn(&str) -> bool,
) -> Result<Target, StorageError> {
    let path = address
        .raw_path
        .strip_prefix('/')
        .unwrap_or(address.raw_path);
    // `*` and the target of a CONNECT are not paths.
    if !matches!(address.raw_path.as_bytes(), [] | [b'/', ..]) {
        return Err(ErrorCode::InvalidUri.into());
    }
    let from_host = if address.host_style {
        host_account(address.host, &is_account)
    } else {
        None
    };
    let is_path_style = from_host.is_none();
    let (account, service, rest) = match from_host {
        Some((account, service)) => (account, service, path),
        None => {
            let (account, rest) = path.split_once('/').unwrap_or((path, ""));
            let service = address.socket.or_else(|| port_service(address.host));
            (
                uri::percent_decode(account)?,
                service.ok_or(ErrorCode::InvalidUri)?,
                // SDKs send two slashes when the endpoint ends with one; no resource has an empty
                // name.
                rest.trim_start_matches('/'),
            )
        }
    };
    if account.is_empty() {
        return Err(ErrorCode::InvalidUri.into());
    }
    let (account, secondary) = match account.strip_suffix(SECONDARY) {
        Some(primary) if !is_account(&account) => (primary.to_owned(), true),
        _ => (account, false),
    };
    let twice = (secondary && service == Service::Table)
        .then(|| behind_account(rest, &account))
        .flatten();
    let data_lake = service == Service::Blob && is_data_lake(address, is_path_style);
    let resource = match service {
        Service::Blob if data_lake => as_path(blob_resource(rest, true)?),
        Service::Blob => blob_resource(rest, address.names_container)?,
        Service::Queue => queue_resource(rest)?,
        Service::Table => Resource::Table(address::parse_path(twice.unwrap_or(rest))),
    };
    let raw_path = if twice.is_some() {
        format!("/{rest}")
    } else if address.raw_path.is_empty() {
        "/".to_owned()
    } else {
        address.raw_path.to_owned()
    };
    Ok(Target {
        account,
        secondary,
        service,
        data_lake,
        resource,
        raw_path,
    })
}

/// Whether a request to the Blob service uses the Data Lake interface.
fn is_data_lake(address: &Address<'_>, is_path_style: bool) -> bool {
    let is_named = match address.socket {
        _ if !is_path_style => second_label(address.host) == data_lake::LABEL,
        Some(_) => false,
        None => port(address.host) == Some(data_lake::PORT),
    };
    is_named || address.on_data_lake_socket || is_path_style && address.has_data_lake_shape
}

/// Returns the rest of a path after a second account name, which the table service's secondary
/// endpoint allows: `/devstoreaccount1-secondary/devstoreaccount1/Tables`. Microsoft's SDK for
/// Python sends such paths to an emulator, and signs the part after the first segment. No resource
/// has a path of two segments, and a table with the account's name has no slash after it.
fn behind_account<'a>(rest: &'a str, account: &str) -> Option<&'a str> {
    rest.strip_prefix(account)?.strip_prefix('/')
}

/// Returns account and service of a host such as `account.blob.example` if the account is
/// configured.
fn host_account(host: &str, is_account: impl Fn(&str) -> bool) -> Option<(String, Service)> {
    let account = host.split('.').next()?.to_ascii_lowercase();
    let service = of_label(second_label(host))?;
    let known = is_account(&account) || account.strip_suffix(SECONDARY).is_some_and(is_account);
    known.then_some((account, service))
}

/// Returns the service that a host names by its second label or its port.
pub fn service_of(host: &str) -> Option<Service> {
    of_label(second_label(host)).or_else(|| port_service(host))
}

/// Whether a host names the Data Lake interface by its second label or its port.
pub fn names_data_lake(host: &str) -> bool {
    second_label(host) == data_lake::LABEL || port(host) == Some(data_lake::PORT)
}

/// Returns the second label, `blob` of `account.blob.example`; empty when there is none.
fn second_label(host: &str) -> &str {
    let label = host.split('.').nth(1).unwrap_or_default();
    label.split(':').next().unwrap_or_default()
}

fn port_service(host: &str) -> Option<Service> {
    of_default_port(port(host)?)
}

fn port(host: &str) -> Option<u16> {
    let (_, port) = host.rsplit_once(':')?;
    port.parse().ok()
}

/// Returns the resource of a Data Lake request: slashes around a path do not count, and a path of
/// nothing else is the root of the file system.
fn as_path(resource: Resource) -> Resource {
    match resource {
        Resource::Blob(container, path) => match path.trim_matches('/') {
            "" => Resource::Container(container),
            path => Resource::Blob(container, path.to_owned()),
        },
        other => other,
    }
}

fn blob_resource(rest: &str, names_container: bool) -> Result<Resource, StorageError> {
    if rest.is_empty() {
        return Ok(Resource::Service);
    }
    let Some((container, blob)) = rest.split_once('/') else {
        let name = uri::percent_decode(rest)?;
        return Ok(if names_container || name.starts_with('$') {
            Resource::Container(name)
        } else {
            Resource::Blob(ROOT_CONTAINER.to_owned(), name)
        });
    };
    let container = uri::percent_decode(container)?;
    if blob.is_empty() {
        return Ok(Resource::Container(container));
    }
    // Azure stores a backslash as a slash; Microsoft's own tests of special names rely on it.
    let blob = uri::percent_decode(blob)?.replace('\\', "/");
    Ok(Resource::Blob(container, blob))
}

fn queue_resource(rest: &str) -> Result<Resource, StorageError> {
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() {
        return Ok(Resource::Service);
    }
    let mut parts = rest.splitn(3, '/');
    let queue = uri::percent_decode(parts.next().unwrap_or_default())?;
    match (parts.next(), parts.next()) {
        (None, _) => Ok(Resource::Queue(queue)),
        (Some("messages"), None) => Ok(Resource::Messages(queue)),
        (Some("messages"), Some(id)) if !id.contains('/') => {
            Ok(Resource::Message(queue, uri::percent_decode(id)?))
        }
        (Some(_), _) => Err(ErrorCode::InvalidUri.into()),
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
