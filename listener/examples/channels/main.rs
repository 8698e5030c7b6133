//! Consistency between two tables by a queue: deletes channels with all their blogs, while others
//! write blogs. Kill any of the processes with -9, as often as you like: in the end no blog is
//! without its channel.
//!
//! `cargo run -p smalt-listener --example channels -- --help` tells how to run it.

mod app;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use smalt_sleeve::{HyperTransport, HyperTransportSettings, SystemClock};
use smalt_worker::span;
use tracing_subscriber::EnvFilter;

use app::plan::Plan;
use app::site::Site;
use app::worker::Manner;
use app::{audit, setup, worker, writer};

/// How often the check looks whether the queue is empty.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const ABOUT: &str = "\
Cross-table consistency by a queue: deletes channels with all their blogs.

  setup     makes the tables Channels, Blogs and Writers, the queue, channels and blogs
  request   puts the names of some channels into the queue deletechannelandblogs
  worker    takes names: marks the channel, deletes its blogs, looks again, deletes the channel
  writer    writes blogs into all channels meanwhile
  check     says whether the tables fit together

Try it. Start smalt (or Azurite), then:

  channels setup
  channels writer --writer w1 --pause 10ms      each of these in a terminal of its own
  channels worker --pause 100ms
  channels worker --pause 100ms
  channels request

Kill any of them with -9 and start it again, as often as you like. When the writer has ended:

  channels check --wait 60s

Why it works: a worker may die at any step, the message comes back, and every step that was done is
found done. A writer looks at the channel before and after it writes, and takes its own blog back
where the channel went; one that dies begins with the same blog again. The first lines of
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
    /// The account: smalt, Azurite or Azure. Without it, the emulator on its usual ports.
    #[arg(
        long,
        global = true,
        env = "AZURE_STORAGE_CONNECTION_STRING",
        hide_env_values = true,
        default_value = "UseDevelopmentStorage=true"
    )]
    connection_string: String,
    /// How long the message of a worker that dies stays hidden from the others.
    #[arg(long, global = true, default_value = "30s", value_parser = span::parse)]
    visibility: Duration,
    /// Seed of the plan.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// Channels.
    #[arg(long, global = true, default_value_t = 20)]
    channels: u32,
    /// Most blogs of a channel at first.
    #[arg(long, global = true, default_value_t = 1000)]
    blogs: u32,
    /// Channels that are to go.
    #[arg(long, global = true, default_value_t = 12)]
    requested: u32,
    /// Blogs that each writer writes.
    #[arg(long, global = true, default_value_t = 1000)]
    written: u32,
}

#[derive(Subcommand)]
enum Role {
    /// Makes tables, queue, channels and blogs: before all others.
    Setup,
    /// Asks for channels to be deleted.
    Request,
    /// Deletes channels until it is stopped. Any number of them may run.
    Worker {
        /// Pretend that each transaction takes this long.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        pause: Duration,
        /// Leave out the look between the last blog and the channel, to see what comes of it.
        #[arg(long, hide = true)]
        forget_second_look: bool,
    },
    /// Writes blogs; goes on where it was when it died. Several may run, each by its name.
    Writer {
        /// Its name: letters and digits.
        #[arg(long, default_value = "w1")]
        writer: String,
        /// Pause after each blog.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        pause: Duration,
    },
    /// Says whether the tables fit together, when all writers have ended.
    Check {
        /// Give the workers this long to empty the queue.
        #[arg(long, default_value = "0s", value_parser = span::parse)]
        wait: Duration,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let quiet = || EnvFilter::new("warn,typespec_client_core=error,azure_core=error,channels=info");
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| quiet()))
        .with_writer(std::io::stderr)
        .init();
    let cli = Cli::parse();
    let plan = cli.common.plan();
    let site = cli.common.site()?;
    match cli.role {
        Role::Setup => setup::setup(&site, &plan).await?,
        Role::Request => setup::request(&site, &plan).await?,
        Role::Worker {
            pause,
            forget_second_look,
        } => {
            let manner = Manner {
                pause,
                forget_second_look,
            };
            let report = worker::run(&site, manner, stopped()).await?;
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

/// Says whether the tables fit together; the exit code does, too.
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

/// Resolves at Ctrl-C.
async fn stopped() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without signals it is stopped by other means.
        std::future::pending::<()>().await;
    }
}

impl Common {
    fn plan(&self) -> Plan {
        Plan {
            seed: self.seed,
            channels: self.channels,
            blogs: self.blogs,
            requested: self.requested,
            written: self.written,
        }
    }

    fn site(&self) -> anyhow::Result<Site> {
        let transport = HyperTransport::new(HyperTransportSettings::default())?;
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
        Site::open(
            &self.connection_string,
            Arc::new(transport),
            Arc::new(SystemClock),
            self.visibility,
            u64::from_le_bytes(seed),
        )
        .context("the connection string cannot be used")
    }
}
