//! `partitions`: the queues of a partitioned queue, and how many there are.

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

/// Flags of `partitions`.
#[derive(Args)]
pub(crate) struct PartitionFlags {
    /// Queue that has `partitions` in the --config file.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// Change the number of queues. Listeners and senders follow within the time that the map is
    /// trusted; what is left in queues that are written no more is worked off first.
    #[arg(long, value_name = "N")]
    resize: Option<u32>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// How the file says that a queue is partitioned.
pub(crate) fn of(file: &ConfigFile, queue: &str) -> Result<Option<PartitionSettings>, ConfigError> {
    let layer = file.queue(queue);
    layer.map_or(Ok(None), |layer| layer.partitions.settings(queue))
}

/// The queues in a queue's place: those that are read, or itself where it is not partitioned.
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
            "queue `{queue}` has no map of its queues yet: its first sender or listener creates it"
        ))
        .into()),
    }
}

/// Shows the map, changed where that is asked for. There is one afterwards.
pub(crate) async fn show(common: &Common, flags: &PartitionFlags) -> anyhow::Result<ExitCode> {
    let file = common.file()?;
    let queue = &flags.queue;
    let settings = of(&file, queue)?
        .with_context(|| format!("queue `{queue}` has no `partitions` in a --config file"))?;
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
