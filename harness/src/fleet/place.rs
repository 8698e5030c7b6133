//! The service with the queue: a smalt that the run starts, or any service at an address.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use smalt_protocol::Service;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_sleeve::port::Storage;
use smalt_sleeve::{
    Account, AzureStorage, Credential, HyperTransport, HyperTransportSettings, Settings,
};

use crate::servers::smalt::Launch;
use crate::servers::{Running, ServerError, files};

/// Address and key of the service.
#[derive(Clone)]
pub struct Address {
    /// Queue endpoint; an emulator's has the account in its path.
    pub endpoint: String,
    /// Name of the account.
    pub account: String,
    /// Key of the account, in Base64.
    pub key: String,
    /// PEM file with further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Address to connect to instead of the endpoint's.
    pub connect_to: Option<SocketAddr>,
}

impl Address {
    /// Returns the address of an emulator, with its own account and key.
    pub fn of_emulator(address: SocketAddr) -> Self {
        Address {
            endpoint: format!("http://{address}/{EMULATOR_ACCOUNT_NAME}"),
            account: EMULATOR_ACCOUNT_NAME.to_owned(),
            key: EMULATOR_ACCOUNT_KEY.to_owned(),
            ca_file: None,
            connect_to: None,
        }
    }

    /// Creates a client.
    pub fn open(&self) -> Result<Arc<dyn Storage>, ServerError> {
        let credential = Credential::key(&self.key).map_err(ServerError::call)?;
        let endpoint = Some(self.endpoint.as_str());
        let account = Account::new(&self.account, endpoint, endpoint, credential);
        let mut settings = HyperTransportSettings::default();
        if let Some(path) = &self.ca_file {
            settings.extra_ca_pem = files::text(path).map_err(ServerError::call)?.into_bytes();
        }
        if let Some(address) = self.connect_to {
            let uri: Uri = self.endpoint.parse().map_err(ServerError::call)?;
            let host = uri.host().unwrap_or_default().to_owned();
            settings.resolve.insert(host, address);
        }
        let transport = HyperTransport::new(settings).map_err(ServerError::call)?;
        let account = account.map_err(ServerError::call)?;
        let storage = AzureStorage::open(account, Arc::new(transport), Settings::default());
        Ok(Arc::new(storage.map_err(ServerError::call)?))
    }

    /// Returns a listener's arguments for this service, without the key, which the environment
    /// passes.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            "--endpoint".to_owned(),
            self.endpoint.clone(),
            "--account".to_owned(),
            self.account.clone(),
        ];
        if let Some(path) = &self.ca_file {
            flags.extend(["--ca-file".to_owned(), path.display().to_string()]);
        }
        if let Some(address) = self.connect_to {
            flags.extend(["--connect-to".to_owned(), address.to_string()]);
        }
        flags
    }
}

/// Starts smalt in durable mode with its data in this directory.
pub async fn start_smalt(
    binary: PathBuf,
    location: &Path,
) -> Result<(Running, Address), ServerError> {
    let launch = Launch {
        binary,
        location: location.to_owned(),
        flags: Vec::new(),
    };
    let smalt = launch.start().await?;
    let address = Address::of_emulator(smalt.address(Service::Queue));
    Ok((smalt, address))
}
