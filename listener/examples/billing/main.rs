//! Billing by map and reduce over queues: an initiator splits submissions of transactions into
//! chunks, processors compute them, a controller adds up the results. Kill any of the processes
//! with -9, as often as you like: the final sums are exact.
//!
//! `cargo run -p smalt-listener --example billing -- --help` shows how to run it.

mod app;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use smalt_sleeve::{Account, AzureStorage, HyperTransport, HyperTransportSettings, Settings};
use smalt_worker::signals::interrupted;
use smalt_worker::{process, span};

use app::batch::Plan;
use app::ledger::Ledger;
use app::site::Site;
use app::{controller, initiator, processor};

const ABOUT: &str = "\
Map and reduce over queues: bills a telephone company's calls.

  initiator    splits each submission into chunks, and puts them into three queues by key
  processor    computes chunks in parallel, and puts the sums of each into one queue of results
  controller   adds the results up in a ledger, a blob that is replaced under its ETag

Try it. Start smalt (or Azurite), then each of these in a terminal of its own:

  billing controller --until-complete
  billing processor
  billing processor
  billing initiator --pause 1s

Kill any of them with -9 and start it again, as often as you like. When the controller has ended:

  billing check

computes the sums again directly from the transactions and compares. `billing all` runs
everything in one process.

Why the sums are exact: delivery is at least once, so a chunk may be computed twice and its result
may arrive twice. The ledger holds the sums and the numbers of their chunks in one
blob, written only over the version that was read: a result is in both or in neither.

The plan (--seed, --submissions, --transactions, --chunk, --accounts) must be the same for
initiator, controller and check.";

#[derive(Parser)]
#[command(name = "billing", about = ABOUT.lines().next(), long_about = ABOUT)]
struct Cli {
    #[command(subcommand)]
    role: Role,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Common {
    /// Connection string of the account: smalt, Azurite or Azure. Default: the emulator on its
    /// usual ports.
    #[arg(
        long,
        global = true,
        env = "AZURE_STORAGE_CONNECTION_STRING",
        hide_env_values = true,
        default_value = "UseDevelopmentStorage=true"
    )]
    connection_string: String,
    /// Prefix of the names of queues and containers.
    #[arg(long, global = true, default_value = "billing")]
    name: String,
    /// How long the messages of a dead process stay hidden from the others, for example 30s.
    #[arg(long, global = true, default_value = "30s", value_parser = span::parse)]
    visibility: Duration,
    #[command(flatten)]
    plan: Plan,
}

#[derive(Subcommand)]
enum Role {
    /// Split submissions into chunks and put them; a restart continues where the last run died.
    Initiator {
        /// Pause after each submission, for example 500ms.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        pause: Duration,
    },
    /// Compute chunks until stopped. Any number of processors may run.
    Processor {
        /// Simulated work per chunk, for example 100ms.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        work: Duration,
    },
    /// Add results up until stopped.
    Controller {
        /// Exit when all submissions are complete.
        #[arg(long)]
        until_complete: bool,
    },
    /// Run all three roles in one process until all submissions are complete, then check the sums.
    All,
    /// Compare the ledger with sums computed directly from the transactions.
    Check,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let quiet = "warn,typespec_client_core=error,azure_core=error,billing=info";
    smalt_worker::log::start(smalt_worker::log::Format::Text, quiet)?;
    let cli = Cli::parse();
    let site = cli.common.site()?;
    let plan = cli.common.plan;
    match cli.role {
        Role::Initiator { pause } => initiator::run(&site, &plan, pause).await?,
        Role::Processor { work } => processor::run(&site, work, interrupted()).await?,
        Role::Controller { until_complete } => {
            let all = until_complete.then_some(plan.submissions);
            controller::run(&site, all, interrupted()).await?;
        }
        Role::All => return all(&site, &plan).await,
        Role::Check => return Ok(verdict(&plan, &controller::ledger(&site).await?)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs all roles in one process.
async fn all(site: &Site, plan: &Plan) -> anyhow::Result<ExitCode> {
    let (done, finished) = tokio::sync::oneshot::channel::<()>();
    let processing = processor::run(site, Duration::ZERO, async {
        let _ = finished.await;
    });
    let controlling = async {
        let ledger = controller::run(site, Some(plan.submissions), interrupted()).await;
        let _ = done.send(());
        ledger
    };
    let initiating = initiator::run(site, plan, Duration::ZERO);
    let ((), (), ledger) = tokio::try_join!(initiating, processing, controlling)?;
    Ok(verdict(plan, &ledger))
}

/// Prints whether the sums are exact and returns the exit code.
fn verdict(plan: &Plan, ledger: &Ledger) -> ExitCode {
    let cents: u64 = ledger.cents.values().sum();
    println!(
        "{} of {} transactions, {} accounts, {}.{:02} in all, {} duplicate results",
        ledger.transactions,
        plan.total(),
        ledger.cents.len(),
        cents / 100,
        cents % 100,
        ledger.duplicates
    );
    if ledger.transactions == plan.total() && ledger.cents == plan.expected() {
        println!("exact");
        ExitCode::SUCCESS
    } else {
        println!("not the sums of the transactions");
        ExitCode::FAILURE
    }
}

impl Common {
    fn site(&self) -> anyhow::Result<Site> {
        let account = Account::from_connection_string(&self.connection_string)
            .context("the connection string cannot be used")?;
        let transport = HyperTransport::new(HyperTransportSettings::default())?;
        let storage = AzureStorage::open(account, Arc::new(transport), Settings::default())?;
        Ok(Site {
            storage: Arc::new(storage),
            name: self.name.clone(),
            visibility: self.visibility,
            seed: process::seed()?,
        })
    }
}
