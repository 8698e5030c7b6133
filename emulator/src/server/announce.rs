//! The text that smalt prints when it is ready.

use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;

use super::Server;
use super::endpoints::DEFAULT_CONTROL_PORT;
use crate::certificate::Development;
use crate::cli::Flags;
use crate::data_lake;

/// Returns the addresses, the place of the data, and a connection string.
pub(super) fn text(server: &Server, flags: &Flags) -> String {
    let endpoints = &server.endpoints;
    let mut text = format!("smalt {} is ready\n", env!("CARGO_PKG_VERSION"));
    let mut line = |name: &str, value: String| text += &format!("  {name:<8} {value}\n");
    for (service, address) in &endpoints.services {
        line(
            service.as_str(),
            format!("{}://{address}", endpoints.scheme),
        );
    }
    if let Some(address) = endpoints.data_lake {
        line(
            data_lake::LABEL,
            format!("{}://{address}", endpoints.scheme),
        );
    }
    line("control", format!("http://{}", endpoints.control));
    if flags.control_port.is_none() && endpoints.control.port() != DEFAULT_CONTROL_PORT {
        line("", format!("(port {DEFAULT_CONTROL_PORT} is taken)"));
    }
    line("data", data(flags));
    if let Some(made) = &server.made {
        text += &about_certificate(made);
    }
    text + &format!("\nConnection string:\n  {}\n", connection_string(server))
}

fn data(flags: &Flags) -> String {
    match flags.extent_memory_limit {
        Some(bytes) => {
            format!("in memory, at most {bytes} bytes of contents, lost when smalt stops")
        }
        None if flags.in_memory_persistence => "in memory, lost when smalt stops".to_owned(),
        None => {
            let shown = std::path::absolute(&flags.location).unwrap_or(flags.location.clone());
            shown.display().to_string()
        }
    }
}

/// Returns the first account's connection string; only the well-known key is shown.
fn connection_string(server: &Server) -> String {
    let accounts = &server.emulator.core().config.accounts;
    let found = accounts
        .get_key_value(EMULATOR_ACCOUNT_NAME)
        .or_else(|| accounts.first_key_value());
    let Some((name, account)) = found else {
        return String::new();
    };
    let key = match account.keys.first() {
        Some(key) if name == EMULATOR_ACCOUNT_NAME => key.to_base64(),
        _ => "<key>".to_owned(),
    };
    server.endpoints.connection_string(name, &key)
}

/// Describes how clients trust the generated certificate.
fn about_certificate(made: &Development) -> String {
    let ca = std::path::absolute(made.ca()).unwrap_or(made.ca());
    let ca = ca.display();
    let state = if made.is_new { ", new" } else { "" };
    format!(
        "  {:<8} {ca}{state}\n\n\
         Clients must trust that file:\n  \
         curl --cacert, SSL_CERT_FILE (Rust, Go, .NET), REQUESTS_CA_BUNDLE (Python),\n  \
         NODE_EXTRA_CA_CERTS (Node.js), keytool -importcert (Java)\n",
        "trust"
    )
}
