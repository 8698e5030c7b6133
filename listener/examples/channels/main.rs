//! Consistency between two tables by a queue: deletes channels with all their blogs, while other
//! processes write blogs. Kill any of the processes with -9, as often as you like: in the end every
//! blog has its channel.
//!
//! `cargo run -p smalt-listener --example channels -- --help` shows how to run it.

mod app;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use smalt_sleeve::{HyperTransport, HyperTransportSettings, SystemClock};
use smalt_worker::signals::interrupted;
use smalt_worker::{process, span};

use app::context::MergeOption;
use app::plan::Plan;
use app::site::Site;
use app::worker::Manner;
use app::{audit, setup, worker, writer};

/// How often the check looks whether the queue is empty.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const ABOUT: &str = "\
Cross-table consistency by a queue: deletes channels with all their blogs.

  setup     creates the tables Channels, Blogs and Writers, the queue, channels and blogs
  request   puts the names of some channels into the queue deletechannelandblogs
  worker    takes names: marks the channel, deletes its blogs, looks again, deletes the channel
  writer    writes blogs into all channels meanwhile
  check     checks that the tables are consistent

Try it. Start smalt (or Azurite), then:

  channels setup
  channels writer --writer w1 --pause 10ms      each of these in a terminal of its own
  channels worker --pause 100ms
  channels worker --pause 100ms
  channels request

Kill any of them with -9 and start it again, as often as you like. When the writer has ended:

  channels check --wait 60s

Why it works: a worker may die at any step, the message returns, and every completed step is found
done. A writer reads the channel before and after it writes, and removes its own blog if the
channel is gone; a writer that dies starts again with the same blog. The first lines of
listener/examples/channels/app/mod.rs have the whole argument.

The plan (--seed, --channels, --blogs, --requested, --written) must be the same for all but the
workers.";

#[derive(Parser)]
#[command(name = "channels", about = ABOUT.lines().next(), long_about = ABOUT)]
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
    /// How long the message of a dead worker stays hidden from the others, for example 30s.
    #[arg(long, global = true, default_value = "30s", value_parser = span::parse)]
    visibility: Duration,
    #[command(flatten)]
    plan: Plan,
}

#[derive(Subcommand)]
enum Role {
    /// Create tables, queue, channels and blogs; run this first.
    Setup,
    /// Request the deletion of channels.
    Request,
    /// Delete channels until stopped. Any number of workers may run.
    Worker {
        /// Simulated duration of each transaction, for example 100ms.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        pause: Duration,
        /// Skip the second look for blogs before the channel is deleted, to see the effect.
        #[arg(long, hide = true)]
        forget_second_look: bool,
        /// What a further query does to a row that the worker has read, to see the effect.
        #[arg(long, hide = true, value_enum, default_value = "preserve-changes")]
        merge_option: MergeOption,
    },
    /// Write blogs; a restart continues where the last run died. Several writers may run under
    /// different names.
    Writer {
        /// Name of the writer: letters and digits.
        #[arg(long, default_value = "w1")]
        writer: String,
        /// Pause after each blog, for example 50ms.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        pause: Duration,
    },
    /// Check that the tables are consistent, after all writers have ended.
    Check {
        /// Longest time for the workers to empty the queue, for example 30s.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        wait: Duration,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let quiet = "warn,typespec_client_core=error,azure_core=error,channels=info";
    smalt_worker::log::start(smalt_worker::log::Format::Text, quiet)?;
    let cli = Cli::parse();
    let site = cli.common.site()?;
    let plan = cli.common.plan;
    match cli.role {
        Role::Setup => setup::setup(&site, &plan).await?,
        Role::Request => setup::request(&site, &plan).await?,
        Role::Worker {
            pause,
            forget_second_look,
            merge_option,
        } => {
            let manner = Manner {
                pause,
                forget_second_look,
                merge_option,
            };
            let report = worker::run(&site, manner, interrupted()).await?;
            tracing::info!(received = report.received, "stopped");
        }
        Role::Writer { writer, pause } => {
            let taken_back = writer::run(&site, &plan, &writer, pause).await?;
            tracing::info!(writer, taken_back, "written");
        }
        Role::Check { wait } => return check(&site, &plan, wait).await,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints whether the tables are consistent and returns the exit code.
async fn check(site: &Site, plan: &Plan, wait: Duration) -> anyhow::Result<ExitCode> {
    let emptied = async {
        while site.waiting().await? > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        anyhow::Ok(())
    };
    if let Ok(failed) = tokio::time::timeout(wait, emptied).await {
        failed.context("the queue")?;
    }
    let found = audit::read(site).await?;
    let faults = found.faults(plan);
    if faults == audit::Faults::default() {
        println!("consistent: {found}");
        Ok(ExitCode::SUCCESS)
    } else {
        println!("NOT CONSISTENT: {faults}");
        Ok(ExitCode::FAILURE)
    }
}

impl Common {
    fn site(&self) -> anyhow::Result<Site> {
        let transport = HyperTransport::new(HyperTransportSettings::default())?;
        Site::open(
            &self.connection_string,
            Arc::new(transport),
            Arc::new(SystemClock),
            self.visibility,
            process::seed()?,
        )
        .context("the connection string cannot be used")
    }
}
