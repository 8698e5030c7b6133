//! The service whose queue is worked off: a smalt of this run's own, or any at an address.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_sleeve::port::Storage;
use smalt_sleeve::{
    Account, AzureStorage, Credential, HyperTransport, HyperTransportSettings, Settings,
};

use crate::servers::ServerError;
use crate::servers::files;
use crate::servers::smalt::{Launch, Smalt};

/// Where the queue is, and with which key it is asked.
#[derive(Clone)]
pub struct Address {
    /// Queue endpoint, with the account in its path where it is an emulator's.
    pub endpoint: String,
    /// Account.
    pub account: String,
    /// Its key.
    pub key: String,
    /// Further certificate authorities, a PEM file.
    pub ca_file: Option<PathBuf>,
    /// Connected to, whatever the endpoint says.
    pub connect_to: Option<SocketAddr>,
}

impl Address {
    /// An emulator's service: its own account and key.
    pub fn of_emulator(address: SocketAddr) -> Self {
        Address {
            endpoint: format!("http://{address}/{EMULATOR_ACCOUNT_NAME}"),
            account: EMULATOR_ACCOUNT_NAME.to_owned(),
            key: EMULATOR_ACCOUNT_KEY.to_owned(),
            ca_file: None,
            connect_to: None,
        }
    }

    /// A client of it.
    ///
    /// # Errors
    /// When address, key or certificate are none.
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

    /// What a listener is told of it, but for the key: that goes by its environment.
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

/// Starts a smalt in its durable mode with its data in this directory: it, and its address.
///
/// # Errors
/// When it does not start.
pub async fn start_smalt(
    binary: PathBuf,
    location: &Path,
) -> Result<(Smalt, Address), ServerError> {
    let launch = Launch {
        binary,
        location: location.to_owned(),
        flags: Vec::new(),
    };
    let smalt = launch.start().await?;
    let address = Address::of_emulator(smalt.queue);
    Ok((smalt, address))
}
