//! The options of `harness conform`.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `harness conform`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  harness conform
  harness conform --target smalt --target azurite --html conform.html
  harness conform --target http://127.0.0.1:10000 --only leases
  harness conform --target env:AZURE_STORAGE_CONNECTION_STRING --allow-real-account")]
pub struct Options {
    /// What is asked; may be given often, for answers side by side. `smalt`, `smalt-https` (with a
    /// certificate of its own, taking tokens) and `azurite` are started; `http://host:port` is the
    /// blob endpoint of an emulator (queue and table on the next ports); a connection string is
    /// taken from the variable that `env:NAME` names.
    #[arg(long, default_value = "smalt", value_name = "TARGET")]
    pub target: Vec<String>,
    /// Only scenarios whose area or name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
    /// Only scenarios of this service: blob, queue or table.
    #[arg(long, value_parser = crate::replay::corpus::service)]
    pub service: Option<smalt_protocol::Service>,
    /// Scenarios from the files of this directory in place of those that come with the harness.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    /// Known deviations from this file in place of those that come with the harness.
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Recorded traces to replay as well, on a `smalt` that is started for it.
    #[arg(long, value_name = "DIR", default_value = "fixtures/traces")]
    pub traces: PathBuf,
    /// Leave out the fault map.
    #[arg(long)]
    pub no_faults: bool,
    /// Leave out the traces.
    #[arg(long)]
    pub no_traces: bool,
    /// Write the page to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the report as Markdown to this file.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the whole report for machines to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print every check that does not hold, known ones too.
    #[arg(long)]
    pub verbose: bool,
    /// Print the scenarios and stop.
    #[arg(long)]
    pub list: bool,
    /// The binary to start; without it the `smalt` beside this one.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// Where npm installed Azurite.
    #[arg(long, value_name = "DIR", default_value = "build/azurite")]
    pub azurite: PathBuf,
    /// The control endpoint of a smalt that is named by its URL: moves its clock, plans faults.
    #[arg(long, value_name = "ADDRESS")]
    pub control: Option<SocketAddr>,
    /// Use an account that is not on this machine. Containers and queues are made there, all named
    /// `conform-...`, and removed, also after Ctrl-C. Nothing else is touched.
    #[arg(long)]
    pub allow_real_account: bool,
    /// Change the properties of such an account's services as well. They are put back.
    #[arg(long, requires = "allow_real_account")]
    pub allow_service_properties: bool,
}
