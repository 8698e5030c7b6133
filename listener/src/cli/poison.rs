//! `poison`: lists failed messages and their errors, puts them back, or deletes them.

mod payloads;
mod requeue;
mod walk;

#[cfg(test)]
#[path = "poison/tests.rs"]
mod tests;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;
use smalt_listener::ListenerConfig;
use smalt_listener::config::file::ConfigFile;
use smalt_listener::config::{ConfigError, queue_name};
use smalt_listener::rules::requeue::{Life, Wish, open};
use smalt_protocol::Timestamp;
use smalt_protocol::terminal::{self, one_line};
use smalt_sleeve::port::{CallContext, MessageTtl, PortResult, QueueMessage, Storage};

use self::payloads::Payloads;
use self::requeue::{Action, Chosen, Order, source_id};
use self::walk::BATCH;
use super::storage::{self, Retries};
use super::{Common, exit, progress, send};

const ERROR_CHARS: usize = 60;

const EXAMPLES: &str = "\
Examples:
  What failed, and why:
    smalt-listener poison list --queue orders
  One of them, whole:
    smalt-listener poison show --queue orders 5f0c7d8e-...
  Put that one back into its queue:
    smalt-listener poison requeue --queue orders 5f0c7d8e-...
  Preview putting all of them back, then put a hundred back with a week to live:
    smalt-listener poison requeue --queue orders --all --dry-run
    smalt-listener poison requeue --queue orders --all --max 100 --ttl 7d
  Delete the rest:
    smalt-listener poison purge --queue orders --all --yes";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PoisonFlags {
    #[command(subcommand)]
    command: PoisonCommand,
}

#[derive(Subcommand)]
enum PoisonCommand {
    /// List failed messages with id, attempts, age and error. Changes nothing.
    List(ListFlags),
    /// Show whole messages with their bodies, as JSON.
    Show(ShowFlags),
    /// Put messages back into their queue with their original text, then delete the copies.
    Requeue(RequeueFlags),
    /// Delete messages permanently.
    Purge(PurgeFlags),
}

#[derive(Args)]
struct QueueFlags {
    /// Queue in which the messages failed.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// Poison queue. Default: as in the --config file, or the queue's name followed by -poison.
    #[arg(long, value_name = "NAME", env = "LISTENER_POISON_QUEUE")]
    poison_queue: Option<String>,
    /// Print one JSON object per message.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ListFlags {
    #[command(flatten)]
    place: QueueFlags,
    /// Largest number of messages to list. For more than 32, messages are received briefly and
    /// given back, which counts as an attempt at the copies.
    #[arg(long, value_name = "N", default_value_t = u64::from(BATCH))]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
}

#[derive(Args)]
struct ShowFlags {
    #[command(flatten)]
    place: QueueFlags,
    /// Ids of the copies or of the original messages.
    #[arg(required = true, value_name = "ID")]
    id: Vec<String>,
}

#[derive(Args)]
#[group(id = "which", required = true, multiple = false)]
struct Which {
    /// Ids of the copies or of the original messages.
    #[arg(value_name = "ID")]
    id: Vec<String>,
    /// All visible messages of the poison queue.
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
struct RequeueFlags {
    #[command(flatten)]
    place: QueueFlags,
    #[command(flatten)]
    which: Which,
    /// Put the messages into this queue, whichever queue they came from.
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// New time to live, for example 7d, or never. Default: each message expires when the original
    /// would have.
    #[arg(long, value_name = "TIME", value_parser = send::ttl)]
    ttl: Option<MessageTtl>,
    /// Largest number of messages to put back.
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Print what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
struct PurgeFlags {
    #[command(flatten)]
    place: QueueFlags,
    #[command(flatten)]
    which: Which,
    /// Confirm that --all deletes permanently; required with --all unless --dry-run is given.
    #[arg(long)]
    yes: bool,
    /// Largest number of messages to delete.
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Print what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Opens the account and returns it with the poison queue's name.
async fn place(common: &Common, place: &QueueFlags) -> anyhow::Result<(Arc<dyn Storage>, String)> {
    let file = common.file()?;
    let poison_queue = poison_queue(&file, &place.queue, place.poison_queue.as_deref())?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    Ok((storage, poison_queue))
}

/// Returns a queue's poison queue: the flag's, else the file's, else the name with `-poison`.
pub(super) fn poison_queue(
    file: &ConfigFile,
    queue: &str,
    flag: Option<&str>,
) -> Result<String, ConfigError> {
    let in_file = file
        .queue(queue)
        .and_then(|layer| layer.poison.queue.as_deref());
    let config = ListenerConfig {
        poison_queue: flag.or(in_file).map(str::to_owned),
        ..ListenerConfig::new(queue)
    };
    config.validate()?;
    Ok(config.poison_queue())
}

/// Returns where the file says that these messages' payloads are.
fn payloads(
    common: &Common,
    queue: &str,
    to: Option<&str>,
    storage: &Arc<dyn Storage>,
) -> anyhow::Result<Payloads> {
    let file = common.file()?;
    let Some(ours) = file.queue(queue) else {
        return Ok(Payloads::unknown());
    };
    let offload = ours.offload.settings()?;
    let container = offload.as_ref().map(|offload| offload.container.clone());
    let there = to.map(|to| {
        file.queue(to)
            .and_then(|layer| layer.offload.container.clone())
    });
    Ok(Payloads {
        place: offload.map(|offload| (Arc::clone(storage), offload)),
        queue: queue.to_owned(),
        encoding: ours.encoding.unwrap_or_default(),
        is_elsewhere: there.is_some_and(|there| there != container),
    })
}

pub(crate) async fn poison(common: &Common, flags: &PoisonFlags) -> anyhow::Result<ExitCode> {
    match &flags.command {
        PoisonCommand::List(flags) => list(common, flags).await,
        PoisonCommand::Show(flags) => show(common, flags).await,
        PoisonCommand::Requeue(flags) => {
            if let Some(to) = &flags.to {
                queue_name("--to", to)?;
            }
            let wish = Wish {
                queue: &flags.place.queue,
                to: flags.to.as_deref(),
                life: flags.ttl.map_or(Life::Kept, Life::Given),
            };
            let action = Action::Requeue(wish);
            work(
                common,
                &flags.place,
                &flags.which,
                action,
                (flags.max, flags.dry_run),
            )
            .await
        }
        PoisonCommand::Purge(flags) => {
            anyhow::ensure!(
                !flags.which.all || flags.yes || flags.dry_run,
                "purge --all deletes permanently: confirm with --yes, or look first with --dry-run"
            );
            let bounds = (flags.max, flags.dry_run);
            work(common, &flags.place, &flags.which, Action::Purge, bounds).await
        }
    }
}

async fn list(common: &Common, flags: &ListFlags) -> anyhow::Result<ExitCode> {
    let (storage, queue) = place(common, &flags.place).await?;
    let there = count(storage.as_ref(), &queue).await?;
    let (messages, now) = walk::look(storage.as_ref(), &queue, flags.count).await?;
    for message in &messages {
        match flags.place.json {
            true => println!("{}", entry(message)),
            false => println!("{}", row(message, now)),
        }
    }
    let more = there.saturating_sub(messages.len() as u64);
    if more > 0 && !flags.place.json {
        println!("about {more} more, hidden ones included (--count N shows more)");
    }
    Ok(ExitCode::SUCCESS)
}

async fn count(storage: &dyn Storage, queue: &str) -> PortResult<u64> {
    let cx = CallContext::housekeeping();
    let facts = storage.queue_properties(&cx, queue).await?;
    Ok(facts.approximate_count)
}

pub(super) fn row(message: &QueueMessage, now: Timestamp) -> String {
    let age = now.since(message.inserted).as_secs();
    let row = match open(&message.text) {
        Some(e) => {
            let error: String = e.error.chars().take(ERROR_CHARS).collect();
            let (id, taken) = (e.id, e.dequeue_count);
            format!("{id}  taken {taken}  {} ago  {error}", spoken(age))
        }
        None => format!("{}  no envelope  {} ago", message.id, spoken(age)),
    };
    one_line(&row).into_owned()
}

pub(crate) fn spoken(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats all properties of a message as indented JSON for a terminal.
pub(super) fn shown(message: &QueueMessage) -> String {
    terminal::json(&format!("{:#}", entry(message))).into_owned()
}

fn entry(message: &QueueMessage) -> serde_json::Value {
    let envelope = open(&message.text);
    let mut entry = json!({
        "id": source_id(message),
        "copy_id": message.id,
        "poisoned": message.inserted.iso_s(),
        "envelope": envelope.is_some(),
    });
    match envelope {
        Some(e) => {
            entry["queue"] = json!(e.queue);
            entry["inserted"] = json!(e.inserted);
            entry["expires"] = json!(e.expires);
            entry["dequeue_count"] = json!(e.dequeue_count);
            entry["error"] = json!(e.error);
            entry["trace"] = json!(e.trace);
            entry["body"] = json!(e.body);
        }
        None => entry["body"] = json!(message.text),
    }
    entry
}

async fn show(common: &Common, flags: &ShowFlags) -> anyhow::Result<ExitCode> {
    let (storage, queue) = place(common, &flags.place).await?;
    let (messages, _) = walk::look(storage.as_ref(), &queue, u64::MAX).await?;
    let mut missing = false;
    for id in &flags.id {
        let is_it = |m: &&QueueMessage| m.id == *id || source_id(m) == *id;
        let found: Vec<_> = messages.iter().filter(is_it).collect();
        missing |= found.is_empty();
        if found.is_empty() {
            eprintln!("{id}: not in {queue}, or hidden at the moment");
        }
        for message in found {
            match flags.place.json {
                true => println!("{}", entry(message)),
                false => println!("{}", shown(message)),
            }
        }
    }
    Ok(exit::of_items(missing))
}

async fn work(
    common: &Common,
    at: &QueueFlags,
    which: &Which,
    action: Action<'_>,
    (max, dry_run): (Option<u64>, bool),
) -> anyhow::Result<ExitCode> {
    let (storage, poison_queue) = place(common, at).await?;
    let to = match action {
        Action::Requeue(wish) => wish.to,
        Action::Purge => None,
    };
    let payloads = payloads(common, &at.queue, to, &storage)?;
    let total = match which.all {
        true => count(storage.as_ref(), &poison_queue).await?,
        false => which.id.len() as u64,
    };
    let order = Order {
        storage: storage.as_ref(),
        poison_queue: &poison_queue,
        chosen: match which.all {
            true => Chosen::All,
            false => Chosen::Ids(which.id.clone()),
        },
        payloads,
        action,
        // A message that fails again meanwhile returns to the poison queue. The bound keeps this
        // command from taking it in an endless loop.
        max: match which.all {
            true => max.unwrap_or(total).min(total),
            false => max.unwrap_or(u64::MAX),
        },
        dry_run,
    };
    let bar = progress::bar(Some(total.min(order.max)), "poison");
    let (mut told, mut failed, mut found) = (0_u64, 0_u64, Vec::new());
    let done = order.carry_out(|note| {
        told += 1;
        failed += u64::from(note.became.is_failure());
        found.extend([note.message.id.clone(), source_id(&note.message)]);
        bar.inc(1);
        bar.suspend(|| match at.json {
            true => println!("{}", note.json()),
            false => println!("{}", note.line()),
        });
    });
    done.await?;
    bar.finish_and_clear();
    for id in which.id.iter().filter(|id| !found.contains(id)) {
        failed += 1;
        eprintln!("{id}: not in {poison_queue}, or hidden at the moment");
    }
    if !at.json {
        println!("messages: {told}, not done: {failed}");
    }
    Ok(exit::of_items(failed > 0))
}
