//! The flags of `smalt` and the settings that they make.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use smalt_protocol::Service;
use smalt_protocol::connection_string::emulator_port;

use super::accounts;
use super::program::Program;
use crate::config::{AccountSettings, AllowedHost, Config, OAuth};
use crate::fetch::SourceRule;

/// Heading of the flags for what Azure sets in its management plane. The control endpoint changes
/// it for one account at run time.
const ACCOUNTS: &str = "Settings of the accounts";

/// Longest time that a deleted name can stay taken: a day.
const BEING_DELETED_S_MAX: u64 = 24 * 3_600;

/// Longest time that an idle connection can be kept: a day.
const KEEP_ALIVE_S_MAX: u64 = 24 * 3_600;

/// How to serve: what `smalt` reads when it is given no subcommand.
#[derive(Args)]
#[command(rename_all = "camelCase")]
pub struct Flags {
    /// Directory of the data.
    #[arg(short = 'l', long, default_value = "smalt-data")]
    pub location: PathBuf,
    /// Keep everything in memory; nothing survives the process.
    #[arg(long)]
    pub in_memory_persistence: bool,
    /// Refuse uploads that would take more memory for contents than so many megabytes.
    #[arg(long, value_name = "MB", requires = "in_memory_persistence")]
    #[arg(value_parser = megabytes)]
    pub extent_memory_limit: Option<u64>,
    /// When a write is acknowledged.
    #[arg(long, value_enum, default_value_t = Durability::Durable)]
    pub mode: Durability,
    /// A seed: a file in TOML, or a folder whose sub-folders are containers. What is missing is
    /// made, what is there is left as it is.
    #[arg(long, value_name = "FILE|DIR")]
    pub seed: Option<PathBuf>,
    /// A data directory of Azurite, imported when there is no data yet. One in --location is
    /// imported without this. Azurite's files stay as they are.
    #[arg(long, value_name = "DIR")]
    pub import_azurite: Option<PathBuf>,
    /// Address of the blob service.
    #[arg(long, default_value = "127.0.0.1")]
    pub blob_host: String,
    /// Port of the blob service; 0 takes a free one.
    #[arg(long, default_value_t = emulator_port(Service::Blob))]
    pub blob_port: u16,
    /// Close a connection to the blob service that is idle for so long; 0 for the default of 30.
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=KEEP_ALIVE_S_MAX))]
    pub blob_keep_alive_timeout: Option<u64>,
    /// Address of the queue service.
    #[arg(long, default_value = "127.0.0.1")]
    pub queue_host: String,
    /// Port of the queue service; 0 takes a free one.
    #[arg(long, default_value_t = emulator_port(Service::Queue))]
    pub queue_port: u16,
    /// Close a connection to the queue service that is idle for so long; 0 for the default of 30.
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=KEEP_ALIVE_S_MAX))]
    pub queue_keep_alive_timeout: Option<u64>,
    /// Address of the table service.
    #[arg(long, default_value = "127.0.0.1")]
    pub table_host: String,
    /// Port of the table service; 0 takes a free one.
    #[arg(long, default_value_t = emulator_port(Service::Table))]
    pub table_port: u16,
    /// Close a connection to the table service that is idle for so long; 0 for the default of 30.
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=KEEP_ALIVE_S_MAX))]
    pub table_keep_alive_timeout: Option<u64>,
    /// Address of the control endpoint.
    #[arg(long, default_value = "127.0.0.1")]
    pub control_host: String,
    /// Port of the control endpoint; 0 takes a free one. The default is 10003 or, if that is taken,
    /// the next free one.
    #[arg(long)]
    pub control_port: Option<u16>,
    /// Token that the control endpoint asks for; required when it is bound beyond loopback.
    #[arg(long)]
    pub control_token: Option<String>,
    /// Serve https with this certificate: a chain in PEM with --key, or a PFX file with --pwd.
    #[arg(long, requires = "proof")]
    pub cert: Option<PathBuf>,
    /// Private key in PEM.
    #[arg(long, requires = "cert", group = "proof")]
    pub key: Option<PathBuf>,
    /// Password of the PFX file.
    #[arg(long, requires = "cert", group = "proof", value_name = "PASSWORD")]
    pub pwd: Option<String>,
    /// Serve https with a certificate of smalt's own, for localhost only: made on first use and
    /// kept in DIR. Clients have to be told to trust DIR/ca.pem.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = "smalt-cert",
        conflicts_with = "cert"
    )]
    pub dev_cert: Option<PathBuf>,
    /// Take bearer tokens, over https: audience, issuer and lifetime are checked. The signature of
    /// a token is not, so that anybody who reaches smalt can make one: this is no protection.
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "LEVEL",
        num_args = 0..=1,
        default_missing_value = "basic"
    )]
    pub oauth: Option<OAuthLevel>,
    /// Accounts in place of Azurite's: `name:key[:key];name:key`. AZURITE_ACCOUNTS sets them, too.
    #[arg(long)]
    pub accounts: Option<String>,
    /// Keep the versions of blobs that are written over or deleted, in every account.
    #[arg(long, help_heading = ACCOUNTS)]
    pub versioning: bool,
    /// Keep deleted containers for so many days, in every account: they can be restored.
    #[arg(long, help_heading = ACCOUNTS, value_name = "DAYS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=365))]
    pub container_retention_days: Option<u32>,
    /// Note when blobs were last read or written, in every account.
    #[arg(long, help_heading = ACCOUNTS)]
    pub last_access_tracking: bool,
    /// Let containers have immutability policies of single versions, in every account.
    #[arg(long, help_heading = ACCOUNTS)]
    pub version_immutability: bool,
    /// Let blobs be given an expiry, in every account: Azure does with a hierarchical namespace.
    #[arg(long, help_heading = ACCOUNTS)]
    pub blob_expiry: bool,
    /// For so many seconds the name of a deleted container, queue or table stays taken, as it does
    /// for half a minute and more on Azure: 409 `...BeingDeleted`.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=BEING_DELETED_S_MAX))]
    pub being_deleted_seconds: u64,
    /// Write FILE when every socket listens and the store is open, and remove it at the end: ports,
    /// accounts with their keys and connection strings as JSON, for the owner's eyes only.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Print the lines and the access log that Azurite prints, as under its names.
    #[arg(long)]
    pub azurite_output: bool,
    /// Log nothing but errors.
    #[arg(short = 's', long)]
    pub silent: bool,
    /// Log what happens, to this file or, without one, to stderr.
    #[arg(short = 'd', long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    pub debug: Option<String>,
    /// Log as JSON lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
    /// Accepted for Azurite's sake: what Azurite is loose about is served or refused as Azure does.
    #[arg(short = 'L', long)]
    pub loose: bool,
    /// Accepted for Azurite's sake: a version newer than any known is served anyway.
    #[arg(long)]
    pub skip_api_version_check: bool,
    /// Refuse versions newer than any known, as Azure would.
    #[arg(long, conflicts_with = "skip_api_version_check")]
    pub strict_api_version: bool,
    /// Check the date of signed requests against the emulator's clock instead of the wall's.
    #[arg(long)]
    pub strict_skew: bool,
    /// Do not read the account from host names.
    #[arg(long)]
    pub disable_product_style_url: bool,
    /// A host name that requests may use besides addresses, names without a dot, names below
    /// localhost, local, internal, test and home.arpa, and Azure's endpoints; repeatable, or
    /// separated by commas: `storage.example.com`, `*.example.com`, or `*` for every name. On
    /// loopback a request for any other name is refused, since a web page could have sent it; with
    /// this flag at every address.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub allow_host: Vec<AllowedHost>,
    /// What a copy may be read from besides this server; repeatable, or separated by commas:
    /// `public` (the default), `all`, `none`, a host, `*.example.com`, an address or a network such
    /// as 10.1.0.0/16. Loopback, link-local and private addresses need a rule that names them.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub copy_source_allow: Vec<SourceRule>,
    /// Accepted for Azurite's sake: nothing is ever sent anywhere.
    #[arg(long)]
    pub disable_telemetry: bool,
    /// Stop when standard input ends: it does when the process ends that holds its other end, such
    /// as a test runner, even one that is killed.
    #[arg(long)]
    pub stop_with_stdin: bool,
    /// How long a client may keep silent within a request, in milliseconds: for tests.
    #[arg(long, value_name = "MS", hide = true)]
    pub stall_timeout_ms: Option<u64>,
    /// Print a completion script and exit.
    #[arg(long, value_name = "SHELL")]
    pub completions: Option<clap_complete::Shell>,
    /// The program that smalt is started as.
    #[arg(skip)]
    pub program: Program,
}

/// How bearer tokens are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OAuthLevel {
    /// By what they claim.
    Basic,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// When it survives kill -9 and power loss.
    Durable,
    /// At once; a crash may lose the last moments.
    Fast,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one JSON object a line.
    Json,
}

impl Flags {
    /// The settings of the emulator.
    ///
    /// # Errors
    /// What is wrong with `--accounts`, and `--oauth` without https.
    pub fn config(&self) -> anyhow::Result<Config> {
        if self.oauth.is_some() && !self.is_https() {
            bail!("--oauth needs https: add --devCert, or --cert and --key");
        }
        let mut config = Config {
            host_style: !self.disable_product_style_url,
            strict_api_version: self.strict_api_version,
            strict_skew: self.strict_skew,
            oauth: self
                .oauth
                .map_or(OAuth::Off, |OAuthLevel::Basic| OAuth::Basic),
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
            ..AccountSettings::default()
        });
        for account in config.accounts.values_mut() {
            account.settings = Arc::clone(&settings);
        }
        Ok(config)
    }

    /// Whether the services speak https.
    pub fn is_https(&self) -> bool {
        self.cert.is_some() || self.dev_cert.is_some()
    }

    /// The services to start.
    pub fn services(&self) -> impl Iterator<Item = Service> {
        let program = self.program;
        let all = Service::ALL.into_iter();
        all.filter(move |service| program.serves(*service))
    }

    /// Whether to print what Azurite prints.
    pub fn speaks_as_azurite(&self) -> bool {
        self.azurite_output || self.program != Program::Smalt
    }

    /// Host and port of a service, as they were given.
    pub fn endpoint(&self, service: Service) -> (&str, u16) {
        match service {
            Service::Blob => (&self.blob_host, self.blob_port),
            Service::Queue => (&self.queue_host, self.queue_port),
            Service::Table => (&self.table_host, self.table_port),
        }
    }

    /// How long a connection to a service may be idle, if that was given.
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

/// Bytes of so many megabytes of 1,048,576 bytes, which Testcontainers writes with a fraction.
fn megabytes(text: &str) -> Result<u64, String> {
    const MB: f64 = 1_048_576.0;
    match text.parse::<f64>() {
        Ok(count) if count.is_finite() && count >= 0.0 => Ok((count * MB).round() as u64),
        _ => Err("use a number of megabytes, such as 100 or 0.5".to_owned()),
    }
}

impl std::fmt::Debug for Flags {
    /// Neither the keys of accounts nor the control endpoint's token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flags")
            .field("location", &self.location)
            .field("mode", &self.mode)
            .field("https", &self.is_https())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::Cli;
    use super::*;

    fn read(arguments: &str) -> Result<Flags, clap::Error> {
        let all = ["smalt"].into_iter().chain(arguments.split_whitespace());
        Ok(Cli::read(all.map(OsString::from))?.flags)
    }

    #[test]
    fn azurites_flags_are_accepted() {
        let flags = read(
            "--silent --location /tmp/x --blobHost 0.0.0.0 --blobPort 0 --queueHost localhost \
             --queuePort 1 --tableHost ::1 --tablePort 2 --loose --skipApiVersionCheck \
             --disableProductStyleUrl --inMemoryPersistence --debug debug.log \
             --copySourceAllow public,none --copy-source-allow 10.1.0.0/16",
        )
        .unwrap();
        assert_eq!(flags.copy_source_allow.len(), 3);
        assert_eq!(flags.endpoint(Service::Blob), ("0.0.0.0", 0));
        assert_eq!(flags.endpoint(Service::Queue), ("localhost", 1));
        assert_eq!(flags.endpoint(Service::Table), ("::1", 2));
        assert!(flags.config().unwrap().allowed_hosts.is_empty());
        let flags_of_hosts = read("--allowHost a.example,*.b.example --allow-host *").unwrap();
        assert_eq!(flags_of_hosts.config().unwrap().allowed_hosts.len(), 3);
        assert!(read("--allowHost http://a.example").is_err());
        assert!(!flags.config().unwrap().host_style);
    }

    #[test]
    fn tokens_need_https_and_secrets_are_not_shown() {
        let parse = |more: &str| read(&format!("--oauth Basic {more}"));
        assert!(parse("").unwrap().config().is_err());
        for https in ["--devCert", "--cert c --key k"] {
            assert_eq!(parse(https).unwrap().config().unwrap().oauth, OAuth::Basic);
        }
        assert!(parse("--cert c --key k --devCert d").is_err());
        assert!(read("--cert c.pfx --pwd p").is_ok_and(|flags| flags.is_https()));
        for incomplete in ["--cert c", "--key k", "--pwd p"] {
            assert!(read(incomplete).is_err(), "{incomplete}");
        }
        let alone = read("--oauth --devCert").unwrap();
        assert_eq!(alone.config().unwrap().oauth, OAuth::Basic);
        assert!(read("--oauth full --devCert").is_err());
        let flags =
            read("--accounts one:c2VjcmV0 --controlToken hidden --cert c --pwd hidden").unwrap();
        let shown = format!("{flags:?}");
        assert!(
            !shown.contains("c2VjcmV0") && !shown.contains("hidden"),
            "{shown}"
        );
    }

    #[test]
    fn memory_is_limited_in_megabytes() {
        let limit = |text: &str| {
            read(&format!("--inMemoryPersistence --extentMemoryLimit {text}"))
                .map(|flags| flags.extent_memory_limit)
        };
        for (text, bytes) in [
            ("100", 104_857_600),
            ("100.0", 104_857_600),
            ("0.5", 524_288),
        ] {
            assert_eq!(limit(text).unwrap(), Some(bytes), "{text}");
        }
        for bad in ["-1", "many", "inf", "NaN"] {
            assert!(limit(bad).is_err(), "{bad}");
        }
        assert!(read("--extentMemoryLimit 100").is_err());
    }

    #[test]
    fn idle_connections_are_kept_for_seconds_of_their_service() {
        let flags = read("--blobKeepAliveTimeout 7 --queueKeepAliveTimeout 0").unwrap();
        let kept = Service::ALL.map(|service| flags.keep_alive(service));
        assert_eq!(kept, [Some(Duration::from_secs(7)), None, None]);
    }

    #[test]
    fn settings_are_those_of_every_account() {
        let flags = read("--accounts one:a2V5;two:a2V5 --versioning --containerRetentionDays 7");
        let config = flags.unwrap().config().unwrap();
        for account in config.accounts.values() {
            assert!(account.settings.versioning && !account.settings.last_access_tracking);
            assert_eq!(account.settings.container_retention_days, Some(7));
        }
        for days in ["0", "366", "many"] {
            let bad = read(&format!("--containerRetentionDays {days}"));
            assert!(bad.is_err(), "{days}");
        }
    }

    #[test]
    fn names_stay_taken_as_long_as_asked_for() {
        let seconds = |more: &str| read(more).unwrap().config().unwrap().being_deleted_s;
        assert_eq!(seconds(""), 0);
        assert_eq!(seconds("--beingDeletedSeconds 40"), 40);
        for bad in ["-1", "86401", "long"] {
            let bad = read(&format!("--beingDeletedSeconds {bad}"));
            assert!(bad.is_err());
        }
    }
}
