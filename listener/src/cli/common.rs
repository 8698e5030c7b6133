//! The flags of every command: the configuration file, the account and the log.

use clap::Args;
use smalt_listener::config::ConfigError;
use smalt_listener::config::connection::ConnectionLayer;
use smalt_listener::config::file::{ConfigFile, load};
use smalt_worker::access::Auth;
use smalt_worker::log;
use smalt_worker::process::Process;
use smalt_worker::secret::Secret;

#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Configuration file (TOML), for example `listener.toml`. Without it, flags and defaults
    /// apply.
    #[arg(long, global = true, value_name = "FILE", env = "LISTENER_CONFIG")]
    pub(crate) config: Option<String>,
    #[command(flatten)]
    connection: ConnectionFlags,
    /// Format of the log lines on standard error.
    #[arg(long, global = true, default_value = "text", env = "LISTENER_LOG")]
    pub(crate) log: log::Format,
    /// Least severe level to log (error, warn, info, debug or trace), or a filter such as
    /// smalt_listener=debug.
    /// Default: info for `run`, `once` and `agent`, warn for the other commands.
    #[arg(long, global = true, value_name = "LEVEL", env = "LISTENER_LOG_LEVEL")]
    pub(crate) log_level: Option<String>,
}

/// The account to open. A secret can be given as `env:NAME` or `file:/path`.
#[derive(Args, Clone)]
#[command(next_help_heading = "Account")]
struct ConnectionFlags {
    /// Connection string, for example "UseDevelopmentStorage=true" for a local emulator. Default:
    /// the variable AZURE_STORAGE_CONNECTION_STRING.
    #[arg(long, global = true, value_name = "STRING")]
    connection_string: Option<String>,
    /// Account name. Needs --account-key, --sas or --auth as well.
    #[arg(long, global = true, value_name = "NAME", env = "LISTENER_ACCOUNT")]
    account: Option<String>,
    /// Account key in Base64, or `env:NAME` or `file:/path` to read it from there.
    #[arg(long, global = true, value_name = "KEY", env = "LISTENER_ACCOUNT_KEY")]
    #[arg(hide_env_values = true)]
    account_key: Option<String>,
    /// Shared access signature, or `env:NAME` or `file:/path` to read it from there.
    #[arg(long, global = true, value_name = "SAS", env = "LISTENER_SAS")]
    #[arg(hide_env_values = true, conflicts_with = "account_key")]
    sas: Option<String>,
    /// Authenticate with a Microsoft Entra ID token; requires https.
    #[arg(long, global = true, value_enum, env = "LISTENER_AUTH")]
    #[arg(conflicts_with_all = ["account_key", "sas", "connection_string"])]
    auth: Option<Auth>,
    /// URL of the queue service. Default: the Azure endpoint of the account.
    #[arg(long, global = true, value_name = "URL", env = "LISTENER_ENDPOINT")]
    endpoint: Option<String>,
    /// PEM file with certificates to trust in addition to the public certificate authorities.
    #[arg(long, global = true, value_name = "FILE", env = "LISTENER_CA_FILE")]
    ca_file: Option<String>,
    /// Open connections to this address in place of the endpoint's host. The host name in requests
    /// and the certificate check do not change.
    #[arg(long, global = true, value_name = "HOST:PORT")]
    #[arg(env = "LISTENER_CONNECT_TO")]
    connect_to: Option<String>,
}

impl Common {
    /// Loads the configuration file, or returns an empty one if no file is named.
    pub(crate) fn file(&self) -> Result<ConfigFile, ConfigError> {
        match &self.config {
            Some(path) => load(path, &Process),
            None => Ok(ConfigFile::default()),
        }
    }

    pub(crate) fn account_flag(&self) -> Option<String> {
        self.connection.account.clone()
    }

    /// Returns the connection flags as a layer over the file.
    pub(crate) fn connection_layer(&self) -> ConnectionLayer {
        let c = self.connection.clone();
        ConnectionLayer {
            connection_string: c.connection_string.as_deref().map(Secret::parse),
            account: c.account,
            account_key: c.account_key.as_deref().map(Secret::parse),
            sas: c.sas.as_deref().map(Secret::parse),
            auth: c.auth.map(Into::into),
            endpoint: c.endpoint,
            ca_file: c.ca_file,
            connect_to: c.connect_to,
            allow_inline_secrets: true,
        }
    }
}
