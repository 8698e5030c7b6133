//! Starts targets from their names on the command line: `smalt`, `smalt-https`, `azurite`, a URL, a
//! connection string.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use smalt::certificate::CA_FILE;
use smalt_protocol::Service;
use smalt_protocol::connection_string::{ConnectionString, Credential, EMULATOR_ACCOUNT_NAME};

use super::server::Server;
use super::{Ability, About, TargetError};
use crate::servers::smalt::{Launch, binary};
use crate::servers::{Running, ServerError, azurite};
use crate::wire::access::Account;
use crate::wire::url::Url;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the user permits, and paths that the user names.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Allowed {
    /// The `smalt` binary to start; by default the one next to this executable.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// Directory where npm installed Azurite.
    #[arg(long, value_name = "DIR", default_value = "build/azurite")]
    pub azurite: PathBuf,
    /// Control endpoint (`host:port`) of a smalt given by URL; used to move its clock and plan
    /// faults.
    #[arg(long, value_name = "ADDRESS")]
    pub control: Option<std::net::SocketAddr>,
    /// Allow an account that is not on this machine. Containers and queues named `conform-...` are
    /// created there and deleted afterwards, also after Ctrl-C; nothing else is touched.
    #[arg(long)]
    pub allow_real_account: bool,
    /// Allow changes to the service properties of such an account; they are restored afterwards.
    #[arg(long, requires = "allow_real_account")]
    pub allow_service_properties: bool,
}

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The server does not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The address is invalid.
    #[error("{0}")]
    Address(String),
    /// The account is not on this machine, and the user did not permit its use.
    #[error(
        "{0} is not on this machine; pass --allow-real-account to let conform create and delete \
         containers and queues named conform-... there"
    )]
    RealAccount(String),
    /// The connection string lacks a required part.
    #[error("the connection string must have AccountName, AccountKey and endpoints")]
    ConnectionString,
}

impl From<TargetError> for StartError {
    fn from(error: TargetError) -> Self {
        StartError::Address(error.to_string())
    }
}

/// A target, with its name in the ledger.
pub struct Started {
    /// The target.
    pub target: Server,
    /// Name of the target in the ledger.
    pub ledger: String,
}

/// Starts or finds a target; a started server keeps its data in `location`.
pub async fn start(name: &str, allowed: &Allowed, location: &Path) -> Result<Started, StartError> {
    let target = match name {
        "smalt" => smalt(allowed.smalt.as_deref(), location, &[]).await?,
        "smalt-https" => smalt_by_https(allowed, location).await?,
        "azurite" => {
            let program = allowed.azurite.join("node_modules/.bin/azurite");
            azurite(&azurite::binary(Some(&program))?, None, Some(location)).await?
        }
        _ => return elsewhere(name, allowed),
    };
    let ledger = name.trim_end_matches("-https").to_owned();
    Ok(Started { target, ledger })
}

/// Starts `smalt` in memory with additional flags.
pub async fn smalt(
    named: Option<&Path>,
    location: &Path,
    flags: &[&str],
) -> Result<Server, StartError> {
    let server = launched(named, location, flags).await?;
    controlled(emulator("smalt", VERSION, "http", &server), server)
}

/// Starts `smalt` with HTTPS and its own certificate, accepting bearer tokens.
async fn smalt_by_https(allowed: &Allowed, location: &Path) -> Result<Server, StartError> {
    let certificates = location.with_extension("certificates");
    let dir = certificates.display().to_string();
    let flags = ["--devCert", &dir, "--oauth", "basic"];
    let server = launched(allowed.smalt.as_deref(), location, &flags).await?;
    let about = emulator("smalt-https", VERSION, "https", &server);
    let authority = crate::servers::files::text(&certificates.join(CA_FILE))
        .map_err(|error| StartError::Address(error.to_string()))?;
    Ok(controlled(about, server)?.trusting(&authority)?)
}

async fn launched(
    named: Option<&Path>,
    location: &Path,
    flags: &[&str],
) -> Result<Running, ServerError> {
    let in_memory = ["--inMemoryPersistence"];
    let flags = in_memory.iter().chain(flags);
    let launch = Launch {
        binary: binary(named)?,
        location: location.to_owned(),
        flags: flags.map(|flag| (*flag).to_owned()).collect(),
    };
    launch.start().await
}

fn controlled(about: About, server: Running) -> Result<Server, StartError> {
    let target = Server::at(about).controlled(&server.control()?.to_string())?;
    Ok(target.owning(server))
}

/// Starts Azurite with these accounts (`name:key;name:key`) or its default one, in memory or in a
/// directory.
pub async fn azurite(
    program: &Path,
    accounts: Option<&str>,
    location: Option<&Path>,
) -> Result<Server, ServerError> {
    let running = azurite::start(program, accounts, location).await?;
    let version = azurite::version(program);
    let about = emulator("azurite", &version, "http", &running);
    Ok(Server::at(about).owning(running))
}

/// Describes a local emulator, whose whole account may be changed.
fn emulator(name: &str, version: &str, scheme: &str, server: &Running) -> About {
    let abilities = [Ability::ServiceProperties, Ability::WholeAccount];
    let authorities = server.addresses.map(|address| address.to_string());
    About {
        version: version.to_owned(),
        abilities: BTreeSet::from(abilities),
        ..About::by_path(name, scheme, authorities)
    }
}

fn elsewhere(name: &str, allowed: &Allowed) -> Result<Started, StartError> {
    let connection = if name.contains('=') {
        let parsed = ConnectionString::parse(name);
        parsed.map_err(|error| StartError::Address(error.to_string()))?
    } else {
        at_ports(name)?
    };
    let endpoint = |service| connection.endpoint(service).unwrap_or_default().to_owned();
    let Credential::Key(key) = connection.credential.clone() else {
        return Err(StartError::ConnectionString);
    };
    // An endpoint that a connection string omits is Azure's, so every endpoint is checked.
    let hosts = Service::ALL.map(|service| host(&endpoint(service)));
    let elsewhere = hosts.iter().find(|host| !is_this_machine(host));
    let is_local = elsewhere.is_none();
    if let Some(elsewhere) = elsewhere.filter(|_| !allowed.allow_real_account) {
        return Err(StartError::RealAccount(elsewhere.clone()));
    }
    let mut abilities = BTreeSet::new();
    if is_local || allowed.allow_service_properties {
        abilities.insert(Ability::ServiceProperties);
    }
    let [ledger, ..] = hosts;
    let target = Server::at(About {
        name: ledger.clone(),
        version: "unknown".to_owned(),
        account: Account {
            name: connection.account.clone(),
            key,
        },
        blob: endpoint(Service::Blob),
        queue: endpoint(Service::Queue),
        table: endpoint(Service::Table),
        abilities,
    });
    let target = match allowed.control {
        Some(control) => target.controlled(&control.to_string())?,
        None => target,
    };
    Ok(Started { target, ledger })
}

/// Parses `http://127.0.0.1:10000`: an emulator's account, with queue and table on the next ports.
fn at_ports(url: &str) -> Result<ConnectionString, StartError> {
    let wrong = |why| {
        StartError::Address(format!(
            "{why}; or name smalt, smalt-https, azurite, http://host:port of an emulator, a \
             connection string, or env:NAME of a variable that holds one"
        ))
    };
    let [blob, queue, table, _] = neighbours(url).map_err(wrong)?;
    let at = |authority| Some(format!("http://{authority}/{EMULATOR_ACCOUNT_NAME}"));
    Ok(ConnectionString {
        blob_endpoint: at(blob),
        queue_endpoint: at(queue),
        table_endpoint: at(table),
        ..ConnectionString::emulator()
    })
}

/// Returns host and port of the blob, queue, table and control endpoint of an emulator with
/// consecutive ports and its blob service at `http://host:port`.
pub fn neighbours(url: &str) -> Result<[String; 4], String> {
    let parsed = Url::parse(url).filter(|url| url.scheme == "http");
    let parsed = parsed.ok_or_else(|| format!("invalid URL {url}: use http://127.0.0.1:10000"))?;
    let port = parsed.authority.rsplit_once(':');
    let (host, port) = port.ok_or_else(|| format!("{url} has no port"))?;
    let port: u16 = port.parse().map_err(|_| format!("{url} has no port"))?;
    let last = port.checked_add(3);
    let last = last.ok_or_else(|| format!("{url} leaves no ports for the other services"))?;
    Ok([port, port + 1, port + 2, last].map(|port| format!("{host}:{port}")))
}

/// Like [`neighbours`], for loopback addresses only.
pub fn local_neighbours(url: &str) -> Result<[String; 4], String> {
    let all = neighbours(url)?;
    if is_this_machine(&host(url)) {
        return Ok(all);
    }
    Err(format!(
        "{url} is not on this machine: this command deletes all containers, queues and tables of \
         the accounts, so it only uses servers on loopback. For an account of Azure, run `harness \
         conform --allow-real-account`, which only touches what it created"
    ))
}

fn is_this_machine(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse();
    host == "localhost" || ip.is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Returns the host in a URL, without its port.
fn host(base: &str) -> String {
    let authority = Url::parse(base)
        .map(|url| url.authority)
        .unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host.to_owned(),
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target as _;

    #[test]
    fn ports_follow_the_first_one() {
        let all = local_neighbours("http://127.0.0.1:10000").unwrap();
        let ports = all.map(|authority| authority.replace("127.0.0.1:1000", ""));
        assert_eq!(ports, ["0", "1", "2", "3"]);
        assert!(local_neighbours("http://localhost:1").is_ok());
        assert!(local_neighbours("http://[::1]:1").is_ok());
        for (url, why) in [
            (
                "http://account.blob.core.windows.net:80",
                "not on this machine",
            ),
            ("http://10.0.0.1:10000", "not on this machine"),
            ("https://127.0.0.1:10000", "use http://127.0.0.1:10000"),
            ("http://127.0.0.1", "no port"),
            ("http://127.0.0.1:65535", "no ports for"),
            ("elsewhere", "use http://127.0.0.1:10000"),
        ] {
            let refused = local_neighbours(url).unwrap_err();
            assert!(refused.contains(why), "{url}: {refused}");
        }
    }

    const AZURE: &str = "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=c2VjcmV0;\
                         EndpointSuffix=core.windows.net";

    /// No real account is touched by accident, and the error shows no key.
    #[test]
    fn real_account_needs_permission() {
        let Err(refused) = elsewhere(AZURE, &Allowed::default()) else {
            panic!("it is used");
        };
        assert!(matches!(refused, StartError::RealAccount(_)));
        assert!(!refused.to_string().contains("c2VjcmV0"));
        let half = "AccountName=shop;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:10000/shop";
        let Err(refused) = elsewhere(half, &Allowed::default()) else {
            panic!("queues of Azure are used");
        };
        assert!(refused.to_string().contains("shop.queue.core.windows.net"));
        let allowed = Allowed {
            allow_real_account: true,
            ..Allowed::default()
        };
        let started = elsewhere(AZURE, &allowed).unwrap();
        let about = started.target.about();
        assert_eq!(about.blob, "https://shop.blob.core.windows.net");
        assert_eq!(about.prefix(Service::Blob), "");
        // Without permission for its service properties or the data of others.
        assert_eq!(about.abilities, BTreeSet::new());
    }

    #[test]
    fn an_emulator_is_found_by_its_first_port() {
        let started = elsewhere("http://127.0.0.1:10000", &Allowed::default()).unwrap();
        let about = started.target.about();
        assert_eq!(about.queue, "http://127.0.0.1:10001/devstoreaccount1");
        assert_eq!(about.prefix(Service::Queue), "/devstoreaccount1");
        let azure = "https://foo.blob.core.windows.net";
        for wrong in [
            "somewhere",
            "http://127.0.0.1",
            "https://127.0.0.1:1",
            azure,
        ] {
            let Err(refused) = elsewhere(wrong, &Allowed::default()) else {
                panic!("{wrong} is used");
            };
            let refused = refused.to_string();
            for may in [
                "smalt,",
                "smalt-https",
                "azurite",
                "http://host:port",
                "env:NAME",
            ] {
                assert!(refused.contains(may), "{may} in {refused}");
            }
        }
    }
}
