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
    addresses: Vec<(Service, SocketAddr)>,
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
        let mut addresses = Vec::new();
        let mut servers = JoinSet::new();
        for service in Service::ALL {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = Listener::bind(service, any, None, Patience::default()).await?;
            addresses.push((service, listener.address()?));
            servers.spawn(listener.serve(emulator.clone(), std::future::pending()));
        }
        Ok(Served {
            addresses,
            _servers: servers,
        })
    }

    /// Returns host and port of blob, queue and table service.
    pub fn authorities(&self) -> Vec<String> {
        let all = self.addresses.iter();
        all.map(|(_, address)| address.to_string()).collect()
    }

    /// Returns a connection string for any Azure Storage client.
    pub fn connection_string(&self) -> String {
        let (name, key) = (EMULATOR_ACCOUNT_NAME, EMULATOR_ACCOUNT_KEY);
        let mut text =
            format!("DefaultEndpointsProtocol=http;AccountName={name};AccountKey={key};");
        for (service, address) in &self.addresses {
            let label = match service {
                Service::Blob => "BlobEndpoint",
                Service::Queue => "QueueEndpoint",
                Service::Table => "TableEndpoint",
            };
            text += &format!("{label}=http://{address}/{name};");
        }
        text
    }
}
