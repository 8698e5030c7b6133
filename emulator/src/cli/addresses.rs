//! Resolves a host flag and a port flag to a socket address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, bail};

/// Resolves a host, which may be a name, and a port to an address. Prefers the first IPv4 address
/// of a name, because Azurite's defaults are IPv4. `localhost` needs no resolver.
///
/// # Errors
/// When the name cannot be resolved; the message names `flag`.
pub fn resolve(flag: &str, host: &str, port: u16) -> anyhow::Result<SocketAddr> {
    const TRY: &str = "use an address of this machine, such as 127.0.0.1, 0.0.0.0 or ::1";
    if host == "localhost" {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    let literal = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Ok(ip) = literal.unwrap_or(host).parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let found = (host, port).to_socket_addrs();
    let found = found.with_context(|| format!("--{flag}: cannot resolve {host:?}; {TRY}"))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4());
    match first.or(found.first()) {
        Some(address) => Ok(*address),
        None => bail!("--{flag}: {host:?} resolves to no address; {TRY}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_or_names() {
        for (host, expected) in [
            ("127.0.0.1", "127.0.0.1:80"),
            ("0.0.0.0", "0.0.0.0:80"),
            ("localhost", "127.0.0.1:80"),
            ("::1", "[::1]:80"),
            ("[::]", "[::]:80"),
        ] {
            let address = resolve("blobHost", host, 80).unwrap();
            assert_eq!(address.to_string(), expected, "{host}");
        }
    }

    #[test]
    fn an_error_names_the_flag_and_the_host() {
        for host in ["", "no such host", "[::1", "nowhere.invalid"] {
            let error = format!("{:#}", resolve("queueHost", host, 80).unwrap_err());
            assert!(error.contains("--queueHost"), "{error}");
            assert!(error.contains(&format!("{host:?}")), "{error}");
        }
    }
}
