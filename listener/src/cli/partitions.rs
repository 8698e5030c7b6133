//! `partitions`: shows or changes the queues of a partitioned queue.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use smalt_listener::config::ConfigError;
use smalt_listener::config::file::ConfigFile;
use smalt_listener::partition::{PartitionSettings, Partitions};
use smalt_sleeve::port::Storage;

use super::Common;
use super::exit::Unreached;
use super::storage::{self, Retries};

#[derive(Args)]
pub(crate) struct PartitionFlags {
    /// Partitioned queue: one with `partitions` in the --config file.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// New number of queues, from 1 to 100. Listeners and senders follow within `max_age` of the
    /// `partitions` setting (default 1m); listeners first empty the queues that are no longer
    /// written.
    #[arg(long, value_name = "N")]
    resize: Option<u32>,
    /// Print one JSON object in place of text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn of(file: &ConfigFile, queue: &str) -> Result<Option<PartitionSettings>, ConfigError> {
    let layer = file.queue(queue);
    layer.map_or(Ok(None), |layer| layer.partitions.settings(queue))
}

/// Returns the queues to read for a queue: those of its map, or the queue itself if it is not
/// partitioned.
pub(crate) async fn queues(
    storage: &Arc<dyn Storage>,
    settings: Option<&PartitionSettings>,
    queue: &str,
) -> anyhow::Result<Vec<String>> {
    let Some(settings) = settings else {
        return Ok(vec![queue.to_owned()]);
    };
    let set = Partitions::new(Arc::clone(storage), settings.clone())?;
    match set.known_map().await? {
        Some(map) => Ok(map.read()),
        None => Err(Unreached(format!(
            "queue `{queue}` has no partition map yet; its first sender or listener creates one"
        ))
        .into()),
    }
}

/// Prints the map, after the resize if one was asked for. Creates the map if there is none.
pub(crate) async fn show(common: &Common, flags: &PartitionFlags) -> anyhow::Result<ExitCode> {
    let file = common.file()?;
    let queue = &flags.queue;
    let settings = of(&file, queue)?
        .with_context(|| format!("queue `{queue}` has no `partitions` in the --config file"))?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    let set = Partitions::new(Arc::clone(&storage), settings)?;
    let map = match flags.resize {
        Some(count) => set.resize(count).await?,
        None => set.map().await?,
    };
    if flags.json {
        println!("{}", map.document());
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{queue}: {} queues, map version {}",
        map.partitions, map.version
    );
    for current in map.current() {
        println!("{current}  written and read");
    }
    for draining in &map.draining {
        println!("{draining}  read until it is empty");
    }
    Ok(ExitCode::SUCCESS)
}
