//! The options of `harness conform`.

use std::path::PathBuf;

use crate::target::start::Allowed;

/// Options of `harness conform`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  harness conform
  harness conform --target smalt --target azurite --html conform.html
  harness conform --target http://127.0.0.1:10000 --only leases
  harness conform --target env:AZURE_STORAGE_CONNECTION_STRING --allow-real-account")]
pub struct Options {
    /// Target to run against; repeat it to compare several. `smalt`, `smalt-https` (HTTPS with its
    /// own certificate, accepts bearer tokens) and `azurite` are started; `http://host:port` is the
    /// blob endpoint of a running emulator (queue and table on the next two ports); `env:NAME`
    /// reads a connection string from the environment variable NAME.
    #[arg(long, default_value = "smalt", value_name = "TARGET")]
    pub target: Vec<String>,
    /// Run only scenarios whose area or name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// Run only scenarios of this service: blob, queue or table.
    #[arg(long, value_parser = crate::replay::corpus::service)]
    pub service: Option<smalt_protocol::Service>,
    /// Directory of scenarios to run instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    /// Ledger of known deviations to use instead of the built-in one.
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Directory of recorded traces to replay as well, on a `smalt` that is started for it.
    #[arg(long, value_name = "DIR", default_value = "fixtures/traces")]
    pub traces: PathBuf,
    /// Skip the fault map.
    #[arg(long)]
    pub no_faults: bool,
    /// Skip the traces.
    #[arg(long)]
    pub no_traces: bool,
    /// Write the report as an HTML page to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the report as Markdown to this file.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the whole report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print every check that fails, including known deviations.
    #[arg(long)]
    pub verbose: bool,
    /// List the scenarios and exit.
    #[arg(long)]
    pub list: bool,
    /// What may be used, and where it is.
    #[command(flatten)]
    pub allowed: Allowed,
}
