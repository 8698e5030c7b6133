//! `peek`: a look at a queue that changes nothing.

use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::json;
use smalt_listener::config::queue_name;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{CallContext, QueueMessage};

use super::flags::Encoding;
use super::storage::{self, Retries};
use super::{Common, listen};

/// Flags of `peek`.
#[derive(Args)]
pub(crate) struct PeekFlags {
    /// Queue.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// How many, 1 to 32.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=32))]
    count: u32,
    /// How bodies are written into messages.
    #[arg(long, default_value = "text", env = "LISTENER_ENCODING")]
    encoding: Encoding,
    /// One JSON object per message.
    #[arg(long)]
    json: bool,
}

/// Shows waiting messages.
pub(crate) async fn peek(common: &Common, flags: &PeekFlags) -> anyhow::Result<ExitCode> {
    queue_name("--queue", &flags.queue)?;
    let file = listen::read(common)?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    let cx = CallContext::default();
    let seen = storage
        .peek_messages(&cx, &flags.queue, flags.count)
        .await?;
    for message in &seen.messages {
        let body = body(&message.text, flags.encoding);
        if flags.json {
            println!("{}", as_json(message, &body));
        } else {
            println!(
                "{}  put {}  expires {}  taken {}",
                message.id,
                message.inserted.iso_s(),
                expires(message).unwrap_or_else(|| "never".to_owned()),
                message.dequeue_count,
            );
            println!("  {}", body.replace('\n', "\n  "));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(message: &QueueMessage, body: &str) -> serde_json::Value {
    json!({
        "id": message.id,
        "inserted": message.inserted.iso_s(),
        "expires": expires(message),
        "dequeue_count": message.dequeue_count,
        "body": body,
    })
}

fn expires(message: &QueueMessage) -> Option<String> {
    // On the wire `never` has no fraction of a second.
    let never = message.expires.floor_s() == Timestamp::MAX.floor_s();
    (!never).then(|| message.expires.iso_s())
}

/// The body for people: what cannot be decoded or is no text is shown as stored.
fn body(text: &str, encoding: Encoding) -> String {
    match encoding {
        Encoding::Text => text.to_owned(),
        Encoding::Base64 => STANDARD
            .decode(text.trim())
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_else(|| text.to_owned()),
    }
}
