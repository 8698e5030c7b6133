//! Binds each service to its requested address, and the control endpoint to a free port.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use smalt_protocol::Service;
use tokio_rustls::TlsAcceptor;

use super::azurite::Voice;
use super::endpoints::DEFAULT_CONTROL_PORT;
use super::print;
use crate::cli::{self, Flags};
use crate::control::Control;
use crate::data_lake;
use crate::emulator::Emulator;
use crate::http::{AccessLog, Listener, Patience};

/// Ports, from [`DEFAULT_CONTROL_PORT`] on, to try for the control endpoint; a machine runs fewer
/// emulators than that at once.
const CONTROL_PORTS_TRIED: u16 = 1_000;

/// Binds the services, and prints Azurite's lines if they are wanted.
pub(super) async fn bind_services(
    flags: &Flags,
    tls: Option<&TlsAcceptor>,
    log: Option<AccessLog>,
) -> anyhow::Result<Vec<Listener>> {
    let voice = Voice::of(flags);
    let mut listeners = Vec::new();
    for service in flags.services() {
        let (host, port) = flags.endpoint(service);
        if let Some(voice) = voice {
            print(&voice.starting(service, (host, port)));
        }
        let at = (service.as_str(), flags.endpoint(service));
        let listener = bind(flags, service, at, tls.cloned()).await?;
        if let Some(voice) = voice {
            print(&voice.listening(service, host, listener.address()?));
        }
        listeners.push(match &log {
            Some(log) => listener.logged(log.clone()),
            None => listener,
        });
    }
    Ok(listeners)
}

/// Binds the socket of the Data Lake interface, if it is to have one of its own.
pub(super) async fn bind_data_lake(
    flags: &Flags,
    tls: Option<&TlsAcceptor>,
) -> anyhow::Result<Option<Listener>> {
    let Some(port) = flags.data_lake_port() else {
        return Ok(None);
    };
    let (host, _) = flags.endpoint(Service::Blob);
    let bound = bind(
        flags,
        Service::Blob,
        (data_lake::LABEL, (host, port)),
        tls.cloned(),
    );
    Ok(Some(bound.await?.data_lake_alone()))
}

async fn bind(
    flags: &Flags,
    service: Service,
    (name, (host, port)): (&str, (&str, u16)),
    tls: Option<TlsAcceptor>,
) -> anyhow::Result<Listener> {
    let address = cli::resolve(&format!("{service}Host"), host, port)?;
    let patience = Patience {
        idle: flags.keep_alive(service),
        ..flags
            .stall_timeout_ms
            .map(Patience::of_ms)
            .unwrap_or_default()
    };
    Listener::bind(service, address, tls, patience)
        .await
        .map_err(|error| cannot_listen(name, address, &error))
}

/// Binds the control endpoint to the requested port, or else to the first free one.
pub(super) async fn bind_control(
    flags: &Flags,
    tls: Option<&TlsAcceptor>,
    emulator: &Emulator,
) -> anyhow::Result<Control> {
    let wanted = flags.control_port.unwrap_or(DEFAULT_CONTROL_PORT);
    let last = match flags.control_port {
        Some(port) => port,
        None => DEFAULT_CONTROL_PORT + CONTROL_PORTS_TRIED,
    };
    let mut address = cli::resolve("controlHost", &flags.control_host, wanted)?;
    loop {
        let token = flags.control_token.clone();
        match Control::bind(address, token, emulator.clone()).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && address.port() < last => {
                address.set_port(address.port() + 1);
            }
            bound => {
                let bound = bound.map_err(|error| cannot_listen("control", address, &error))?;
                return Ok(bound.with_tls(tls.cloned()));
            }
        }
    }
}

/// Creates an error with the reason and advice.
fn cannot_listen(name: &str, address: SocketAddr, error: &io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => format!(
            "the port is taken; stop the program that listens there, or choose another port with \
             --{name}Port (0 takes a free one)"
        ),
        ErrorKind::AddrNotAvailable => {
            format!("this machine has no such address; choose another one with --{name}Host")
        }
        ErrorKind::PermissionDenied => {
            format!("the system does not allow this port; choose another one with --{name}Port")
        }
        _ => error.to_string(),
    };
    anyhow::anyhow!("cannot listen on {address} ({name}): {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_error_names_service_port_and_flag() {
        let address = "127.0.0.1:10001".parse().unwrap();
        for (kind, flag) in [
            (ErrorKind::AddrInUse, "--queuePort"),
            (ErrorKind::AddrNotAvailable, "--queueHost"),
            (ErrorKind::PermissionDenied, "--queuePort"),
        ] {
            let text = cannot_listen("queue", address, &kind.into()).to_string();
            for part in ["127.0.0.1:10001", "(queue)", flag] {
                assert!(text.contains(part), "{text}");
            }
        }
        let other = cannot_listen("control", address, &io::Error::other("needs a token"));
        assert!(other.to_string().contains("needs a token"));
    }
}
