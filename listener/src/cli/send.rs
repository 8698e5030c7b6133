//! `send`: puts messages.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use futures_util::stream::{self, StreamExt};
use smalt_listener::config::file::ConfigFile;
use smalt_listener::config::{ConfigError, Encoding, queue_name};
use smalt_listener::partition::{PartitionError, PartitionSender, Partitions};
use smalt_listener::payload::{Offload, SendError, SendOptions, Sender, Sent};
use smalt_sleeve::port::{CallContext, MessageTtl};
use smalt_worker::{process, span};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::storage::{self, Retries};
use super::{Common, ambient, inspect, partitions};

/// Messages that are put at the same time.
const AT_ONCE: usize = 16;

/// Flags of `send`.
#[derive(Args)]
pub(crate) struct SendFlags {
    /// Queue.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// Texts, a message each; without texts and files, each line of standard input is one.
    text: Vec<String>,
    /// A file whose whole content is one message. May be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
    /// How bodies are written into messages; by default as the --config file says, or text.
    #[arg(long, env = "LISTENER_ENCODING")]
    encoding: Option<Encoding>,
    /// Lifetime: a time like 2h, or never. The service's default is 7 days.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = ttl)]
    ttl: MessageTtl,
    /// Hide the messages for this long at first.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span::parse)]
    delay: Duration,
    /// Key of the messages, where the --config file has `partitions` for the queue: messages of one
    /// key go to one queue. Without, each body is its own key.
    #[arg(long, value_name = "TEXT")]
    key: Option<String>,
    /// Create the queue when it is missing.
    #[arg(long)]
    create_queue: bool,
}

/// A lifetime: a time, or `never`.
pub(crate) fn ttl(text: &str) -> Result<MessageTtl, String> {
    match text {
        "never" => Ok(MessageTtl::Never),
        text => match span::parse(text).map_err(|error| error.to_string())? {
            life if life < Duration::from_secs(1) => Err("needs at least 1s".to_owned()),
            life => Ok(MessageTtl::After(life)),
        },
    }
}

/// Puts the messages; prints the id of each.
pub(crate) async fn send(common: &Common, flags: SendFlags) -> anyhow::Result<ExitCode> {
    queue_name("--queue", &flags.queue)?;
    check_times(&flags)?;
    let file = common.file()?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    let cx = CallContext::default();
    if flags.create_queue {
        storage.create_queue(&cx, &flags.queue).await?;
    }
    let encoding = inspect::encoding(&file, &flags.queue, flags.encoding);
    let offload = offload(&file, &flags.queue)?;
    let seed = process::seed()?;
    let sender = match partitions::of(&file, &flags.queue)? {
        None => {
            let sender = Sender::new(storage, &flags.queue, encoding, offload, seed)?;
            To::One(Box::new(sender))
        }
        Some(set) => {
            let set = Arc::new(Partitions::new(storage, set)?);
            To::Many(Box::new(PartitionSender::new(
                set, encoding, offload, seed,
            )?))
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
        // Every later message would fail alike; one that may have been put is not put again.
        if !error.is_transient() {
            return Err(error.into());
        }
        failed += 1;
        tracing::error!(op = "put", queue = %flags.queue, reason = %error, "not put");
    }
    Ok(if failed > 0 {
        ExitCode::from(smalt_worker::exit::FAILED_ITEMS)
    } else {
        ExitCode::SUCCESS
    })
}

/// A message is to be seen before it expires (Put Message).
fn check_times(flags: &SendFlags) -> anyhow::Result<()> {
    match flags.ttl {
        MessageTtl::After(life) if flags.delay >= life => {
            let (delay, life) = (span::format(flags.delay), span::format(life));
            anyhow::bail!("--delay: {delay} is not shorter than the --ttl, {life}")
        }
        _ => Ok(()),
    }
}

/// Where messages go.
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

/// How the file says that large bodies travel to this queue.
fn offload(file: &ConfigFile, queue: &str) -> Result<Option<Offload>, ConfigError> {
    file.queue(queue)
        .map_or(Ok(None), |layer| layer.offload.settings())
}

/// The bodies to put, one after the other: standard input is read as it comes.
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
