//! `agent`: starts and stops instances of a listener as the load of its queue asks for.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use smalt_listener::agent::{Agent, Processes};
use smalt_listener::config::queue_name;
use smalt_worker::process::Process;
use smalt_worker::signals::{Orders, stopped};
use tokio::sync::watch;

use super::Common;
use super::storage::{self, Retries};

const EXAMPLES: &str = "\
The bounds are in the table [listener.agent] of the --config file: min, max, depth_per_instance,
age_max, processor_max, cooldown and every. An instance that ends by itself is replaced. SIGTERM or
Ctrl-C stops all instances, and the agent ends after them; a second one kills them.

Example:
  One listener per 1,000 waiting messages:
    smalt-listener agent --config listener.toml --queue orders -- \\
        smalt-listener run --config listener.toml --queue orders";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AgentFlags {
    /// Queue to look at: two requests each time.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// Program and arguments of an instance, after `--`.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Scales until stopped, then waits for the instances.
pub(crate) async fn agent(common: &Common, flags: AgentFlags) -> anyhow::Result<ExitCode> {
    queue_name("--queue", &flags.queue)?;
    let file = common.file()?;
    let (bounds, every) = file.listener.agent.bounds()?;
    let orders = Orders::with_hangup().context("cannot wait for signals")?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    let mut agent = Agent::new(storage, &flags.queue, every, bounds);
    let mut instances = Processes::new(flags.command, Arc::new(Process));
    let (stop, told) = watch::channel(false);
    let work = async {
        agent.run_until(&mut instances, stopped(told)).await;
        instances.drain().await;
    };
    let ended = orders.obey(&stop, work).await;
    Ok(match ended.context("cannot wait for signals")? {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::from(smalt_worker::exit::INTERRUPTED),
    })
}
