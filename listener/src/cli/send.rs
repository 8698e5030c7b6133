//! `send`: puts messages.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use futures_util::stream::{self, StreamExt};
use smalt_listener::config::file::ConfigFile;
use smalt_listener::config::{ConfigError, Encoding, queue_name};
use smalt_listener::notify::{Destination, When};
use smalt_listener::partition::{PartitionError, PartitionSender, Partitions};
use smalt_listener::payload::{Offload, SendError, SendOptions, Sender, Sent};
use smalt_sleeve::port::{CallContext, MessageTtl, Storage};
use smalt_worker::{process, span};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::storage::{self, Retries};
use super::{Common, ambient, exit, inspect, notify, partitions};

const AT_ONCE: usize = 16;

#[derive(Args)]
pub(crate) struct SendFlags {
    /// Queue to put the messages into.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// Message bodies, one per argument. Without bodies and files, each line of standard input is
    /// one.
    text: Vec<String>,
    /// File whose whole content is one message. May be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
    /// Encoding of the bodies in the messages. Default: as in the --config file, or text.
    #[arg(long, env = "LISTENER_ENCODING")]
    encoding: Option<Encoding>,
    /// Time to live, for example 2h (at least 1s), or never. The default is the service's own.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = ttl)]
    ttl: MessageTtl,
    /// Time during which the messages stay hidden, for example 30s. Must be less than --ttl.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span::parse)]
    delay: Duration,
    /// Key of the messages, for a queue that has `partitions` in the --config file: messages with
    /// one key go to one queue. Default: each body is its own key.
    #[arg(long, value_name = "TEXT")]
    key: Option<String>,
    /// Create the queue if it does not exist.
    #[arg(long)]
    create_queue: bool,
    /// Where to publish events about the messages, so that sleeping listeners wake: the URL of a
    /// listener's --health address, or queue:TOPIC. May be repeated. Default: the topic of the
    /// queue's `trigger` in the --config file.
    #[arg(long, value_name = "URL|queue:TOPIC")]
    #[arg(env = "LISTENER_NOTIFY_TO", value_delimiter = ',')]
    notify_to: Vec<String>,
    /// Messages to publish an event about: each, first (into an empty queue), or a number: the one
    /// that brings the queue to this depth. `first` and a number look at the depth, once a second
    /// at most.
    #[arg(long, value_name = "each|first|N", default_value = "first")]
    notify: When,
    /// Token that the URLs require: env:NAME or file:/path. Default: the value of
    /// LISTENER_NOTIFY_TOKEN, if that variable is set.
    #[arg(long, value_name = "env:NAME|file:PATH")]
    notify_token: Option<String>,
}

/// Parses a time to live: a duration or `never`.
pub(crate) fn ttl(text: &str) -> Result<MessageTtl, String> {
    match text {
        "never" => Ok(MessageTtl::Never),
        text => match span::parse(text).map_err(|error| error.to_string())? {
            life if life < Duration::from_secs(1) => Err("must be at least 1s".to_owned()),
            life => Ok(MessageTtl::After(life)),
        },
    }
}

pub(crate) async fn send(common: &Common, flags: SendFlags) -> anyhow::Result<ExitCode> {
    queue_name("--queue", &flags.queue)?;
    check_times(&flags)?;
    let file = common.file()?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    let cx = CallContext::housekeeping();
    if flags.create_queue {
        storage.create_queue(&cx, &flags.queue).await?;
    }
    let encoding = inspect::encoding(&file, &flags.queue, flags.encoding);
    let offload = offload(&file, &flags.queue)?;
    let seed = process::seed()?;
    let (to, when) = (destinations(&storage, &file, &flags)?, flags.notify);
    let sender = match partitions::of(&file, &flags.queue)? {
        None => {
            let sender = Sender::new(storage, &flags.queue, encoding, offload, seed)?;
            To::One(Box::new(sender.notifying(to, when)))
        }
        Some(set) => {
            let set = Arc::new(Partitions::new(storage, set)?);
            let sender = PartitionSender::new(set, encoding, offload, seed)?;
            To::Many(Box::new(sender.notifying(to, when)))
        }
    };
    let options = SendOptions {
        ttl: flags.ttl,
        delay: flags.delay,
    };
    let (sender, flags) = (&sender, &flags);
    let puts = bodies(flags)
        .map(|body| async move { anyhow::Ok(sender.send(&body?, flags, options).await) });
    let mut puts = std::pin::pin!(puts.buffered(AT_ONCE));
    let mut failed = 0_u64;
    while let Some(put) = puts.next().await {
        let error = match put? {
            Ok(sent) => {
                println!("{}", sent.receipt.id);
                continue;
            }
            Err(PartitionError::Send(
                SendError::Payload(e) | SendError::Message(e) | SendError::Unknown(e),
            )) => e,
            Err(error) => return Err(error.into()),
        };
        // The remaining messages would fail in the same way. A message that may have been put is
        // not put again.
        if !error.is_transient() {
            return Err(error.into());
        }
        failed += 1;
        tracing::error!(op = "put", queue = %flags.queue, reason = %error, "not put");
    }
    Ok(exit::of_items(failed > 0))
}

/// Returns where the events go: as the flags say, or to the topic of the queue's listeners.
fn destinations(
    storage: &Arc<dyn Storage>,
    file: &ConfigFile,
    flags: &SendFlags,
) -> anyhow::Result<Vec<Arc<dyn Destination>>> {
    let token = flags.notify_token.as_deref();
    if !flags.notify_to.is_empty() {
        return notify::destinations(storage, &flags.notify_to, token);
    }
    let layer = file.queue(&flags.queue);
    let topic = layer.and_then(|layer| layer.trigger.queue.as_ref());
    let topic: Vec<_> = topic
        .map(|topic| format!("queue:{topic}"))
        .into_iter()
        .collect();
    notify::destinations(storage, &topic, token)
}

/// Rejects a delay that reaches the time to live: a message must become visible before it expires
/// (Put Message).
fn check_times(flags: &SendFlags) -> anyhow::Result<()> {
    match flags.ttl {
        MessageTtl::After(life) if flags.delay >= life => {
            let (delay, life) = (span::format(flags.delay), span::format(life));
            anyhow::bail!("--delay: {delay} must be shorter than the --ttl of {life}")
        }
        _ => Ok(()),
    }
}

enum To {
    One(Box<Sender>),
    Many(Box<PartitionSender>),
}

impl To {
    async fn send(
        &self,
        body: &[u8],
        flags: &SendFlags,
        options: SendOptions,
    ) -> Result<Sent, PartitionError> {
        match self {
            To::One(sender) => Ok(sender.send(body, options).await?),
            To::Many(sender) => {
                let key = flags.key.as_ref().map_or(body, |key| key.as_bytes());
                sender.send(key, body, options).await
            }
        }
    }
}

/// Returns the queue's settings for large bodies from the file.
fn offload(file: &ConfigFile, queue: &str) -> Result<Option<Offload>, ConfigError> {
    file.queue(queue)
        .map_or(Ok(None), |layer| layer.offload.settings())
}

/// Returns the bodies one by one; reads standard input as it arrives.
fn bodies(flags: &SendFlags) -> stream::BoxStream<'_, anyhow::Result<Vec<u8>>> {
    if flags.text.is_empty() && flags.file.is_empty() {
        let lines = BufReader::new(tokio::io::stdin()).lines();
        return stream::try_unfold(lines, |mut lines| async move {
            let line = lines.next_line().await.context("standard input")?;
            Ok(line.map(|line| (line.into_bytes(), lines)))
        })
        .boxed();
    }
    let texts = stream::iter(&flags.text).map(|text| Ok(text.clone().into_bytes()));
    let files = stream::iter(&flags.file).then(|path| ambient::bytes(path));
    texts.chain(files).boxed()
}
