//! Targets as the command line names them: `smalt`, `smalt-https`, `azurite`, a URL, a connection
//! string.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use smalt::certificate::CA_FILE;
use smalt_protocol::Service;
use smalt_protocol::connection_string::{
    ConnectionString, Credential, EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME,
};
use smalt_protocol::signing::AccountKey;
use tokio::process::Command;

use super::server::Server;
use super::{About, Target};
use crate::cases::auth::Account;
use crate::cases::case::Ability;
use crate::replay::uri::Url;
use crate::servers::ServerError;
use crate::servers::process::{Process, free_address};
use crate::servers::smalt::{Launch, Smalt, binary};

/// Hosts that are this machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
/// The version of a smalt built with this harness.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is kept alive while a target is asked. Dropped, it ends.
pub enum Alive {
    /// Somebody else's server.
    Nothing,
    /// The binary `smalt`.
    Smalt(Smalt),
    /// Azurite.
    Azurite(Process),
}

/// A target that runs.
pub struct Started {
    /// It.
    pub target: Server,
    /// What it is that was started for it.
    pub alive: Alive,
    /// What it is called in the ledger.
    pub ledger: String,
}

/// What a user allows and names.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Accounts that are no emulator's.
    pub real_account: bool,
    /// Changes to the properties of such an account's services.
    pub service_properties: bool,
    /// The binary `smalt`.
    pub smalt: Option<PathBuf>,
    /// Where npm installed Azurite.
    pub azurite: PathBuf,
    /// The control endpoint of a smalt that is named by its URL.
    pub control: Option<SocketAddr>,
}

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It does not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Its address is of no use.
    #[error("{0}")]
    Address(String),
    /// Azurite is not installed.
    #[error(
        "{0} is not there; `npm install --prefix DIR --force azurite@3.37.0 node@24.11.1`, then \
         --azurite DIR"
    )]
    NoAzurite(String),
    /// Not an emulator's, and nobody said that it may be used.
    #[error(
        "{0} is not on this machine: conform makes and removes containers and queues there, all \
         named conform-...; say --allow-real-account to do so"
    )]
    RealAccount(String),
    /// A connection string without what is needed.
    #[error("the connection string must have AccountName, AccountKey, and endpoints")]
    ConnectionString,
}

/// Starts or finds a target; data of a server that is started go to `location`.
///
/// # Errors
/// With what to do about it.
pub async fn start(name: &str, allowed: &Allowed, location: &Path) -> Result<Started, StartError> {
    match name {
        "smalt" => smalt(allowed, location).await,
        "smalt-https" => smalt_by_https(allowed, location).await,
        "azurite" => azurite(allowed, location).await,
        _ => elsewhere(name, allowed),
    }
}

async fn smalt(allowed: &Allowed, location: &Path) -> Result<Started, StartError> {
    let launch = Launch {
        binary: binary(allowed.smalt.as_deref())?,
        location: location.to_owned(),
        flags: vec!["--inMemoryPersistence".to_owned()],
    };
    let server = launch.start().await?;
    let addresses = [server.blob, server.queue, server.table];
    let about = emulator(("smalt", VERSION), "http", addresses)?;
    let control = Some(server.control);
    Ok(Started {
        target: at(about, control)?,
        alive: Alive::Smalt(server),
        ledger: "smalt".to_owned(),
    })
}

/// The same by https, with a certificate of smalt's own, and taking tokens.
async fn smalt_by_https(allowed: &Allowed, location: &Path) -> Result<Started, StartError> {
    let certificates = location.with_extension("certificates");
    let mut flags = vec!["--inMemoryPersistence".to_owned(), "--devCert".to_owned()];
    flags.push(certificates.display().to_string());
    flags.extend(["--oauth", "basic"].map(str::to_owned));
    let launch = Launch {
        binary: binary(allowed.smalt.as_deref())?,
        location: location.to_owned(),
        flags,
    };
    let server = launch.start().await?;
    let addresses = [server.blob, server.queue, server.table];
    let about = emulator(("smalt-https", VERSION), "https", addresses)?;
    let authority = crate::servers::files::text(&certificates.join(CA_FILE))
        .map_err(|error| StartError::Address(error.to_string()))?;
    let target = at(about, Some(server.control))?.trusting(&authority);
    Ok(Started {
        target: target.map_err(|error| StartError::Address(error.to_string()))?,
        alive: Alive::Smalt(server),
        ledger: "smalt".to_owned(),
    })
}

/// Azurite in memory, started as `ci/azurite.sh` does. The node that was installed beside it goes
/// first: Azurite wants a newer one than many systems have.
async fn azurite(allowed: &Allowed, location: &Path) -> Result<Started, StartError> {
    let modules = allowed.azurite.join("node_modules");
    let program = modules.join("azurite/dist/src/azurite.js");
    if !program.is_file() {
        return Err(StartError::NoAzurite(program.display().to_string()));
    }
    let own = modules.join("node/bin/node");
    let node = if own.is_file() { own } else { "node".into() };
    let addresses = [free_address()?, free_address()?, free_address()?];
    let mut arguments = vec![program.display().to_string()];
    let flags = ["--skipApiVersionCheck", "--disableTelemetry", "--location"];
    arguments.extend(flags.map(str::to_owned));
    arguments.push(location.display().to_string());
    for (service, address) in ["blob", "queue", "table"].iter().zip(addresses) {
        arguments.push(format!("--{service}Port"));
        arguments.push(address.port().to_string());
    }
    let mut process = Process::start_in(Command::new(&node), &node, &arguments)?;
    while !process
        .line()
        .await?
        .contains("Table service is successfully")
    {}
    process.ignore_output();
    let package = crate::servers::files::text(&modules.join("azurite/package.json"));
    let package: serde_json::Value = package
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let version = package.get("version").and_then(|version| version.as_str());
    let about = emulator(("azurite", version.unwrap_or("unknown")), "http", addresses)?;
    Ok(Started {
        target: at(about, None)?,
        alive: Alive::Azurite(process),
        ledger: "azurite".to_owned(),
    })
}

/// An emulator of our own: all of its account may be changed.
pub(crate) fn emulator(
    (name, version): (&str, &str),
    scheme: &str,
    addresses: [SocketAddr; 3],
) -> Result<About, StartError> {
    let [blob, queue, table] =
        addresses.map(|address| format!("{scheme}://{address}/{EMULATOR_ACCOUNT_NAME}"));
    let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).ok_or(StartError::ConnectionString)?;
    let abilities = [Ability::ServiceProperties, Ability::WholeAccount];
    Ok(About {
        name: name.to_owned(),
        version: version.to_owned(),
        account: Account {
            name: EMULATOR_ACCOUNT_NAME.to_owned(),
            key,
        },
        blob,
        queue,
        table,
        abilities: BTreeSet::from(abilities),
    })
}

fn elsewhere(name: &str, allowed: &Allowed) -> Result<Started, StartError> {
    let connection = if name.contains('=') {
        let parsed = ConnectionString::parse(name);
        parsed.map_err(|error| StartError::Address(error.to_string()))?
    } else {
        neighbours(name)?
    };
    let endpoint = |service| connection.endpoint(service).unwrap_or_default().to_owned();
    let Credential::Key(key) = connection.credential.clone() else {
        return Err(StartError::ConnectionString);
    };
    let blob = endpoint(Service::Blob);
    let host = host(&blob);
    // An endpoint that a connection string leaves out is Azure's: each is looked at.
    let hosts = Service::ALL.map(|service| self::host(&endpoint(service)));
    let is_ours = |host: &&String| LOOPBACK.contains(&host.as_str());
    let elsewhere = hosts.iter().find(|host| !is_ours(host));
    let is_local = elsewhere.is_none();
    if let Some(elsewhere) = elsewhere.filter(|_| !allowed.real_account) {
        return Err(StartError::RealAccount(elsewhere.clone()));
    }
    let mut abilities = BTreeSet::new();
    if is_local || allowed.service_properties {
        abilities.insert(Ability::ServiceProperties);
    }
    let about = About {
        name: host.clone(),
        version: "unknown".to_owned(),
        account: Account {
            name: connection.account.clone(),
            key,
        },
        blob,
        queue: endpoint(Service::Queue),
        table: endpoint(Service::Table),
        abilities,
    };
    Ok(Started {
        target: at(about, allowed.control)?,
        alive: Alive::Nothing,
        ledger: host,
    })
}

/// `http://127.0.0.1:10000`: an emulator's account, queues and tables on the ports that follow.
fn neighbours(url: &str) -> Result<ConnectionString, StartError> {
    let wrong = || {
        StartError::Address(format!(
            "{url}: name smalt, smalt-https, azurite, http://host:port of an emulator, a connection \
             string, or env:NAME of a variable that holds one"
        ))
    };
    let parsed = Url::parse(url)
        .filter(|url| url.scheme == "http")
        .ok_or_else(wrong)?;
    let (host, port) = parsed.authority.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let at = |n: u16| {
        let port = port.checked_add(n)?;
        Some(format!("http://{host}:{port}/{EMULATOR_ACCOUNT_NAME}"))
    };
    Ok(ConnectionString {
        blob_endpoint: at(0),
        queue_endpoint: at(1),
        table_endpoint: at(2),
        ..ConnectionString::emulator()
    })
}

fn host(base: &str) -> String {
    let authority = Url::parse(base)
        .map(|url| url.authority)
        .unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host.to_owned(),
        _ => authority,
    }
}

fn at(about: About, control: Option<SocketAddr>) -> Result<Server, StartError> {
    Server::at(about, control).map_err(|error| StartError::Address(error.to_string()))
}

impl Started {
    /// What is asked.
    pub fn target(&self) -> &dyn Target {
        &self.target
    }

    /// Ends what was started for it.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub async fn end(self) -> Result<(), ServerError> {
        match self.alive {
            Alive::Nothing => Ok(()),
            Alive::Smalt(smalt) => smalt.kill().await,
            Alive::Azurite(process) => process.kill().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AZURE: &str = "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=c2VjcmV0;\
                         EndpointSuffix=core.windows.net";

    /// Nobody's account is touched by accident, and the refusal shows no key.
    #[test]
    fn a_real_account_needs_a_word() {
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
            real_account: true,
            ..Allowed::default()
        };
        let started = elsewhere(AZURE, &allowed).unwrap();
        let about = started.target().about();
        assert_eq!(about.blob, "https://shop.blob.core.windows.net");
        assert_eq!(about.prefix(Service::Blob), "");
        // Neither its service properties nor what others keep there.
        assert_eq!(about.abilities, BTreeSet::new());
    }

    #[test]
    fn an_emulator_is_found_by_its_first_port() {
        let started = elsewhere("http://127.0.0.1:10000", &Allowed::default()).unwrap();
        let about = started.target().about();
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
