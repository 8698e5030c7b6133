//! The addresses of a running emulator, and its connection strings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;
use smalt_protocol::Service;

use crate::cli::Flags;

/// Preferred port of the control endpoint without `--controlPort`.
pub(crate) const DEFAULT_CONTROL_PORT: u16 = 10_003;

pub(super) fn scheme(flags: &Flags) -> &'static str {
    if flags.is_https() { "https" } else { "http" }
}

/// The bound addresses of all sockets.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    pub(super) scheme: &'static str,
    /// The services that were started.
    pub(super) services: Vec<(Service, SocketAddr)>,
    /// The socket that serves the Data Lake interface alone, if there is one.
    pub(super) data_lake: Option<SocketAddr>,
    pub(super) control: SocketAddr,
}

/// One endpoint in the ready file.
#[derive(Debug, Serialize)]
pub(super) struct Endpoint {
    /// The bound address.
    host: String,
    port: u16,
    /// URL for clients on this machine.
    url: String,
}

impl Endpoints {
    pub(super) fn of(&self, service: Service) -> Option<SocketAddr> {
        let mut services = self.services.iter();
        services.find_map(|(started, address)| (*started == service).then_some(*address))
    }

    pub(super) fn is_beyond_loopback(&self) -> bool {
        let services = self.services.iter().map(|(_, address)| address);
        let mut all = services.chain(&self.data_lake).chain([&self.control]);
        all.any(|address| !address.ip().is_loopback())
    }

    /// Returns the connection string of an account for clients on this machine.
    pub(super) fn connection_string(&self, account: &str, key: &str) -> String {
        let scheme = self.scheme;
        let mut text =
            format!("DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};");
        for (service, address) in &self.services {
            let name = match service {
                Service::Blob => "BlobEndpoint",
                Service::Queue => "QueueEndpoint",
                Service::Table => "TableEndpoint",
            };
            text += &format!("{name}={}/{account};", url(scheme, *address));
        }
        text
    }
}

impl Endpoint {
    pub(super) fn new(scheme: &str, address: SocketAddr) -> Self {
        Endpoint {
            host: address.ip().to_string(),
            port: address.port(),
            url: url(scheme, address),
        }
    }
}

/// Returns the URL for clients on this machine, with loopback in place of an unspecified address.
pub(super) fn url(scheme: &str, address: SocketAddr) -> String {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unspecified_address_has_a_loopback_url() {
        for (bound, expected) in [
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
            ("10.1.2.3:1", "http://10.1.2.3:1"),
        ] {
            assert_eq!(url("http", bound.parse().unwrap()), expected);
        }
    }

    #[test]
    fn connection_string_names_the_started_services() {
        let endpoints = Endpoints {
            scheme: "https",
            services: vec![(Service::Table, "0.0.0.0:2".parse().unwrap())],
            data_lake: None,
            control: "127.0.0.1:3".parse().unwrap(),
        };
        assert_eq!(
            endpoints.connection_string("one", "key"),
            "DefaultEndpointsProtocol=https;AccountName=one;AccountKey=key;\
             TableEndpoint=https://127.0.0.1:2/one;"
        );
        assert!(endpoints.of(Service::Blob).is_none() && endpoints.is_beyond_loopback());
    }
}
