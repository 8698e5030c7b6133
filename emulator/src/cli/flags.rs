//! The flags of `smalt`, and the configuration that they produce.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use smalt_protocol::Service;
use smalt_protocol::connection_string::emulator_port;

use super::accounts;
use super::program::Program;
use crate::config::{AccountSettings, AllowedHost, Config, KeySet, OAuth};
use crate::data_lake;
use crate::disk::{self, SystemDisk};
use crate::fetch::SourceRule;

/// Heading of the flags for settings that Azure keeps in its management plane. The control endpoint
/// changes them for one account at run time.
const ACCOUNTS: &str = "Account settings";

/// Longest time that a deleted name stays taken: one day.
const BEING_DELETED_S_MAX: u64 = 24 * 3_600;

/// Longest time that an idle connection is kept: one day.
const KEEP_ALIVE_S_MAX: u64 = 24 * 3_600;

/// The flags for serving, which `smalt` does without a subcommand.
#[derive(Args)]
#[command(rename_all = "camelCase")]
pub struct Flags {
    /// Directory of the data; created if it does not exist.
    #[arg(short = 'l', long, default_value = "smalt-data")]
    pub location: PathBuf,
    /// Keep everything in memory; nothing is stored on disk, and the data is lost when smalt stops.
    #[arg(long)]
    pub in_memory_persistence: bool,
    /// Refuse uploads when contents in memory would exceed MB megabytes of 1,048,576 bytes.
    #[arg(long, value_name = "MB", requires = "in_memory_persistence")]
    #[arg(value_parser = megabytes)]
    pub extent_memory_limit: Option<u64>,
    /// When a write is acknowledged.
    #[arg(long, value_enum, default_value_t = Durability::Durable)]
    pub mode: Durability,
    /// Create containers, blobs, queues and tables from a TOML file, or from a folder whose
    /// subfolders are containers. Resources that exist already are left as they are.
    #[arg(long, value_name = "FILE|DIR")]
    pub seed: Option<PathBuf>,
    /// Create or change the event subscriptions of a TOML file, which has a table for each name
    /// with the fields of docs/events.md.
    #[arg(long, value_name = "FILE")]
    pub subscriptions: Option<PathBuf>,
    /// Import an Azurite data directory when the store is still empty. Azurite data in --location
    /// is imported without this flag. Azurite's files are not changed.
    #[arg(long, value_name = "DIR")]
    pub import_azurite: Option<PathBuf>,
    /// Address or host name on which the blob service listens.
    #[arg(long, default_value = "127.0.0.1")]
    pub blob_host: String,
    /// Port of the blob service; 0 picks a free one.
    #[arg(long, default_value_t = emulator_port(Service::Blob))]
    pub blob_port: u16,
    /// Close a connection to the blob service after SECONDS without a request, at most 86400; 0
    /// means the default of 30.
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=KEEP_ALIVE_S_MAX))]
    pub blob_keep_alive_timeout: Option<u64>,
    /// Port, on --blobHost, of a socket that serves the Data Lake interface alone; 0 picks a free
    /// one. It is 10004 with --hierarchicalNamespace; otherwise no such socket is opened.
    #[arg(long)]
    pub dfs_port: Option<u16>,
    /// Address or host name on which the queue service listens.
    #[arg(long, default_value = "127.0.0.1")]
    pub queue_host: String,
    /// Port of the queue service; 0 picks a free one.
    #[arg(long, default_value_t = emulator_port(Service::Queue))]
    pub queue_port: u16,
    /// Close a connection to the queue service after SECONDS without a request, at most 86400; 0
    /// means the default of 30.
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=KEEP_ALIVE_S_MAX))]
    pub queue_keep_alive_timeout: Option<u64>,
    /// Address or host name on which the table service listens.
    #[arg(long, default_value = "127.0.0.1")]
    pub table_host: String,
    /// Port of the table service; 0 picks a free one.
    #[arg(long, default_value_t = emulator_port(Service::Table))]
    pub table_port: u16,
    /// Close a connection to the table service after SECONDS without a request, at most 86400; 0
    /// means the default of 30.
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=KEEP_ALIVE_S_MAX))]
    pub table_keep_alive_timeout: Option<u64>,
    /// Address or host name on which the control endpoint listens.
    #[arg(long, default_value = "127.0.0.1")]
    pub control_host: String,
    /// Port of the control endpoint; 0 picks a free one. Without this flag it is 10003 or, if that
    /// port is taken, the next free one.
    #[arg(long)]
    pub control_port: Option<u16>,
    /// Token that clients of the control endpoint must send; required unless it listens on loopback
    /// only.
    #[arg(long)]
    pub control_token: Option<String>,
    /// Serve HTTPS with this certificate: a PEM chain with --key, or a PFX file with --pwd.
    #[arg(long, requires = "proof")]
    pub cert: Option<PathBuf>,
    /// PEM file with the private key of --cert.
    #[arg(long, requires = "cert", group = "proof")]
    pub key: Option<PathBuf>,
    /// Password of the PFX file in --cert.
    #[arg(long, requires = "cert", group = "proof", value_name = "PASSWORD")]
    pub pwd: Option<String>,
    /// Serve HTTPS with a certificate for localhost that smalt creates on first use and keeps in
    /// DIR (default: smalt-cert). Clients must trust DIR/ca.pem.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = "smalt-cert",
        conflicts_with = "cert"
    )]
    pub dev_cert: Option<PathBuf>,
    /// Accept bearer tokens over HTTPS. LEVEL `basic` checks the audience, issuer and lifetime of a
    /// token, but not its signature: anyone who can reach smalt can forge a token. `verified` also
    /// checks that the control endpoint issued the token, or that a key of --oauthKeys signed it.
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "LEVEL",
        num_args = 0..=1,
        default_missing_value = "basic"
    )]
    pub oauth: Option<OAuthLevel>,
    /// JSON Web Key Set with the public keys (RS256, ES256) that verify tokens of other issuers,
    /// for --oauth verified. Microsoft Entra ID publishes its own at
    /// <https://login.microsoftonline.com/common/discovery/keys>.
    #[arg(long, value_name = "FILE", requires = "oauth")]
    pub oauth_keys: Option<PathBuf>,
    /// Accounts that replace Azurite's, as `name:key[:key];name:key` with keys in Base64.
    /// AZURITE_ACCOUNTS sets them as well.
    #[arg(long)]
    pub accounts: Option<String>,
    /// Keep a version of each blob that is overwritten or deleted, in every account.
    #[arg(long, help_heading = ACCOUNTS)]
    pub versioning: bool,
    /// Keep deleted containers for 1 to 365 days, during which they can be restored, in every
    /// account.
    #[arg(long, help_heading = ACCOUNTS, value_name = "DAYS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=365))]
    pub container_retention_days: Option<u32>,
    /// Record when blobs were last read or written, in every account.
    #[arg(long, help_heading = ACCOUNTS)]
    pub last_access_tracking: bool,
    /// Let containers have version-level immutability policies, in every account.
    #[arg(long, help_heading = ACCOUNTS)]
    pub version_immutability: bool,
    /// Allow Set Blob Expiry in every account; Azure allows it only with a hierarchical namespace.
    #[arg(long, help_heading = ACCOUNTS)]
    pub blob_expiry: bool,
    /// Give every account a hierarchical namespace, which Data Lake Storage needs. There are no
    /// versions then.
    #[arg(
        long,
        help_heading = ACCOUNTS,
        conflicts_with_all = ["versioning", "version_immutability"]
    )]
    pub hierarchical_namespace: bool,
    /// Keep the name of a deleted container, queue or table taken for SECONDS, at most 86400:
    /// creating it again gets 409 `...BeingDeleted`. On Azure this takes 30 seconds or more.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=BEING_DELETED_S_MAX))]
    pub being_deleted_seconds: u64,
    /// Write FILE when every socket listens and the store is open, and remove it at the end. It
    /// holds the ports, the accounts with their keys, and connection strings as JSON; only its
    /// owner can read it.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Print the start and stop lines and the access log of Azurite, as when started under its
    /// name.
    #[arg(long)]
    pub azurite_output: bool,
    /// Log only errors.
    #[arg(short = 's', long)]
    pub silent: bool,
    /// Log at debug level to FILE or, without FILE, to stderr.
    #[arg(short = 'd', long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    pub debug: Option<String>,
    /// Format of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
    /// Accepted for compatibility with Azurite; smalt always serves or refuses requests as Azure
    /// does.
    #[arg(short = 'L', long)]
    pub loose: bool,
    /// Accepted for compatibility with Azurite; smalt serves unknown newer API versions by default.
    #[arg(long)]
    pub skip_api_version_check: bool,
    /// Refuse API versions newer than those that smalt knows, as Azure does.
    #[arg(long, conflicts_with = "skip_api_version_check")]
    pub strict_api_version: bool,
    /// Check the date of signed requests against the emulator's clock instead of the system clock.
    #[arg(long)]
    pub strict_skew: bool,
    /// Do not read the account from host names such as `account.blob.example`.
    #[arg(long)]
    pub disable_product_style_url: bool,
    /// Allow requests for this host name, such as `storage.example.com`, `*.example.com`, or `*`
    /// for every name; repeatable, or separated by commas. Always allowed are addresses, names
    /// without a dot, names below localhost, local, internal, test and home.arpa, and Azure's
    /// endpoints. On loopback other names are refused, because a web page could have sent the
    /// request; with this flag they are refused on every address.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub allow_host: Vec<AllowedHost>,
    /// Allow copies from this source besides the server itself: `public` (the default), `all`,
    /// `none`, a host, `*.example.com`, an address, or a network such as 10.1.0.0/16; repeatable,
    /// or separated by commas. Loopback, link-local and private addresses need a rule that names
    /// them.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub copy_source_allow: Vec<SourceRule>,
    /// Accepted for compatibility with Azurite; smalt never sends telemetry.
    #[arg(long)]
    pub disable_telemetry: bool,
    /// Stop when standard input ends. It ends when the process at its other end, such as a test
    /// runner, exits or is killed.
    #[arg(long)]
    pub stop_with_stdin: bool,
    /// How long a client may pause within a request, in milliseconds; for tests.
    #[arg(long, value_name = "MS", hide = true)]
    pub stall_timeout_ms: Option<u64>,
    /// Print a shell completion script and exit.
    #[arg(long, value_name = "SHELL")]
    pub completions: Option<clap_complete::Shell>,
    /// The program name under which smalt was started; not a flag.
    #[arg(skip)]
    pub program: Program,
}

/// How bearer tokens are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OAuthLevel {
    /// Check audience, issuer and lifetime.
    Basic,
    /// Check the signature as well.
    Verified,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// After it survives kill -9 and power loss.
    Durable,
    /// After it survives kill -9; a power loss may take the most recent writes.
    Fast,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
}

impl Flags {
    /// Returns the configuration of the emulator.
    ///
    /// # Errors
    /// When `--accounts` is invalid, `--oauth` is given without HTTPS, or the file of `--oauthKeys`
    /// cannot be used.
    pub fn config(&self) -> anyhow::Result<Config> {
        if self.oauth.is_some() && !self.is_https() {
            bail!("--oauth needs HTTPS: add --devCert, or --cert and --key");
        }
        let mut config = Config {
            host_style: !self.disable_product_style_url,
            strict_api_version: self.strict_api_version,
            strict_skew: self.strict_skew,
            oauth: match self.oauth {
                None => OAuth::Off,
                Some(OAuthLevel::Basic) => OAuth::Basic,
                Some(OAuthLevel::Verified) => OAuth::Verified,
            },
            token_keys: Arc::new(self.token_keys()?),
            being_deleted_s: self.being_deleted_seconds,
            allowed_hosts: self.allow_host.clone(),
            ..Config::default()
        };
        if let Some(accounts) = self
            .accounts
            .as_deref()
            .filter(|text| !text.trim().is_empty())
        {
            config.accounts = accounts::parse(accounts)?;
        }
        let settings = Arc::new(AccountSettings {
            versioning: self.versioning,
            container_retention_days: self.container_retention_days,
            last_access_tracking: self.last_access_tracking,
            version_immutability: self.version_immutability,
            blob_expiry: self.blob_expiry,
            hierarchical_namespace: self.hierarchical_namespace,
            ..AccountSettings::default()
        });
        for account in config.accounts.values_mut() {
            account.settings = Arc::clone(&settings);
        }
        Ok(config)
    }

    /// Reads the file of `--oauthKeys`.
    fn token_keys(&self) -> anyhow::Result<KeySet> {
        let Some(path) = &self.oauth_keys else {
            return Ok(KeySet::default());
        };
        if self.oauth != Some(OAuthLevel::Verified) {
            bail!("--oauthKeys needs --oauth verified, which checks signatures");
        }
        let named = || format!("--oauthKeys {}", path.display());
        let text = disk::read_small(&SystemDisk, path).with_context(named)?;
        let text = text.with_context(|| format!("{}: the file does not exist", named()))?;
        KeySet::parse(&text).with_context(named)
    }

    /// Returns whether the services use HTTPS.
    pub fn is_https(&self) -> bool {
        self.cert.is_some() || self.dev_cert.is_some()
    }

    /// Returns the services to start.
    pub fn services(&self) -> impl Iterator<Item = Service> {
        let program = self.program;
        let all = Service::ALL.into_iter();
        all.filter(move |service| program.serves(*service))
    }

    /// Returns whether to print Azurite's lines.
    pub fn speaks_as_azurite(&self) -> bool {
        self.azurite_output || self.program != Program::Smalt
    }

    /// Returns the host and the port of a service as given on the command line.
    pub fn endpoint(&self, service: Service) -> (&str, u16) {
        match service {
            Service::Blob => (&self.blob_host, self.blob_port),
            Service::Queue => (&self.queue_host, self.queue_port),
            Service::Table => (&self.table_host, self.table_port),
        }
    }

    /// Returns the port of the socket for the Data Lake interface alone; `None` when there is none.
    pub fn data_lake_port(&self) -> Option<u16> {
        let usual = self.hierarchical_namespace.then_some(data_lake::PORT);
        let serves = self.program.serves(Service::Blob);
        self.dfs_port.or(usual).filter(|_| serves)
    }

    /// Returns how long a connection to a service may be idle; `None` for the default.
    pub fn keep_alive(&self, service: Service) -> Option<Duration> {
        let seconds = match service {
            Service::Blob => self.blob_keep_alive_timeout,
            Service::Queue => self.queue_keep_alive_timeout,
            Service::Table => self.table_keep_alive_timeout,
        };
        let given = seconds.filter(|seconds| *seconds > 0);
        given.map(Duration::from_secs)
    }
}

/// Parses megabytes of 1,048,576 bytes into bytes. Testcontainers passes fractions.
fn megabytes(text: &str) -> Result<u64, String> {
    const MB: f64 = 1_048_576.0;
    match text.parse::<f64>() {
        Ok(count) if count.is_finite() && count >= 0.0 => Ok((count * MB).round() as u64),
        _ => Err("use a number of megabytes, such as 100 or 0.5".to_owned()),
    }
}

impl std::fmt::Debug for Flags {
    /// Leaves out the account keys and the control endpoint's token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flags")
            .field("location", &self.location)
            .field("mode", &self.mode)
            .field("https", &self.is_https())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
