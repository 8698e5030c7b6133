//! The account behind sockets, for clients in any language and other processes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use smalt::Emulator;
use smalt::http::{Listener, Patience};
use smalt_protocol::Service;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use tokio::task::JoinSet;

use super::TestAccount;

/// Open sockets, closed on drop.
#[derive(Debug)]
pub struct Served {
    addresses: [SocketAddr; 3],
    _servers: JoinSet<()>,
}

impl TestAccount {
    /// Opens a free loopback port for each service. The account must be on
    /// [`smalt::Clock::system`], because clients sign with the machine's time, and tokio's time
    /// must not be paused: it would jump during a request. [`TestAccount::advance`] moves the
    /// service's time.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn serve(&self) -> io::Result<Served> {
        Served::of(self.emulator()).await
    }
}

impl Served {
    /// Opens a free loopback port for each service of an emulator.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn of(emulator: &Emulator) -> io::Result<Served> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut addresses = [any; 3];
        let mut servers = JoinSet::new();
        for (service, address) in Service::ALL.into_iter().zip(&mut addresses) {
            let listener = Listener::bind(service, any, None, Patience::default()).await?;
            *address = listener.address()?;
            servers.spawn(listener.serve(emulator.clone(), std::future::pending()));
        }
        Ok(Served {
            addresses,
            _servers: servers,
        })
    }

    /// Returns the addresses of blob, queue and table service.
    pub fn addresses(&self) -> [SocketAddr; 3] {
        self.addresses
    }

    /// Returns a connection string for any Azure Storage client.
    pub fn connection_string(&self) -> String {
        let (name, key) = (EMULATOR_ACCOUNT_NAME, EMULATOR_ACCOUNT_KEY);
        let mut text =
            format!("DefaultEndpointsProtocol=http;AccountName={name};AccountKey={key};");
        let labels = ["BlobEndpoint", "QueueEndpoint", "TableEndpoint"];
        for (label, address) in labels.into_iter().zip(self.addresses) {
            text += &format!("{label}=http://{address}/{name};");
        }
        text
    }
}
