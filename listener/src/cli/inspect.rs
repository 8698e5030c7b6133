//! `peek`: shows messages of a queue without changing it.

use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::json;
use smalt_listener::config::file::ConfigFile;
use smalt_listener::config::{Encoding, queue_name};
use smalt_protocol::Timestamp;
use smalt_protocol::terminal::{lines, one_line};
use smalt_sleeve::port::{CallContext, PortResult, QueueMessage, Storage};

use super::storage::{self, Retries};
use super::{Common, partitions};

#[derive(Args)]
pub(crate) struct PeekFlags {
    /// Queue to look at. If the --config file has `partitions` for it, all its queues.
    #[arg(long, value_name = "NAME", env = "LISTENER_QUEUE")]
    queue: String,
    /// Number of messages, from 1 to 32. Of several queues, the messages that were put first.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=32))]
    count: u32,
    /// Encoding of the bodies in the messages. Default: as in the --config file, or text.
    #[arg(long, env = "LISTENER_ENCODING")]
    encoding: Option<Encoding>,
    /// Print one JSON object per message.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn peek(common: &Common, flags: &PeekFlags) -> anyhow::Result<ExitCode> {
    queue_name("--queue", &flags.queue)?;
    let file = common.file()?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    let set = partitions::of(&file, &flags.queue)?;
    let queues = partitions::queues(&storage, set.as_ref(), &flags.queue).await?;
    let seen = waiting(storage.as_ref(), &queues, flags.count).await?;
    let encoding = encoding(&file, &flags.queue, flags.encoding);
    for (queue, message) in &seen {
        let body = body(&message.text, encoding);
        if flags.json {
            println!("{}", as_json(queue, message, &body));
        } else {
            let place = set.as_ref().map(|_| format!("  in {queue}"));
            print!("{}", as_text(&place.unwrap_or_default(), message, &body));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns visible messages with their queues; of several queues, those that were put first.
async fn waiting<'a>(
    storage: &dyn Storage,
    queues: &'a [String],
    count: u32,
) -> PortResult<Vec<(&'a str, QueueMessage)>> {
    let cx = CallContext::housekeeping();
    let mut waiting = Vec::new();
    for queue in queues {
        let seen = storage.peek_messages(&cx, queue, count).await?;
        let messages = seen.messages.into_iter();
        waiting.extend(messages.map(|message| (queue.as_str(), message)));
    }
    if queues.len() > 1 {
        waiting.sort_by_key(|(_, message)| message.inserted);
    }
    waiting.truncate(count as usize);
    Ok(waiting)
}

/// Formats a message as a line of properties and its body, indented so that a body cannot imitate
/// other output.
pub(super) fn as_text(place: &str, message: &QueueMessage, body: &str) -> String {
    let line = format!(
        "{}  put {}  expires {}  taken {}{place}",
        message.id,
        message.inserted.iso_s(),
        expires(message).unwrap_or_else(|| "never".to_owned()),
        message.dequeue_count,
    );
    let body = lines(body).replace('\n', "\n  ");
    format!("{}\n  {body}\n", one_line(&line))
}

fn as_json(queue: &str, message: &QueueMessage, body: &str) -> serde_json::Value {
    json!({
        "queue": queue,
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

/// Returns the encoding of the bodies: the flag's, else the file's, else the default.
pub(super) fn encoding(file: &ConfigFile, queue: &str, flag: Option<Encoding>) -> Encoding {
    let in_file = file.queue(queue).and_then(|layer| layer.encoding);
    flag.or(in_file).unwrap_or_default()
}

/// Formats the body for display. A body that cannot be decoded, or that is not text, is shown as
/// stored.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Command;
    use crate::cli::support::{FakeStorage, s};
    use crate::cli::tests::parsed;

    /// A flag wins over the file, the file over the default.
    #[test]
    fn the_file_sets_the_encoding() {
        let file: ConfigFile =
            toml::from_str("[[listener.queue]]\nname = \"orders\"\nencoding = \"base64\"").unwrap();
        for (line, wanted) in [
            ("--queue orders", Encoding::Base64),
            ("--queue orders --encoding text", Encoding::Text),
            ("--queue mails", Encoding::Text),
            ("--queue mails --encoding base64", Encoding::Base64),
        ] {
            let Ok(Command::Peek(flags)) = parsed(&format!("peek {line}")) else {
                panic!("{line}");
            };
            let found = encoding(&file, &flags.queue, flags.encoding);
            assert_eq!(found, wanted, "{line}");
        }
        assert_eq!(body("b25l", Encoding::Base64), "one");
        assert_eq!(body("b25l", Encoding::Text), "b25l");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_messages_of_all_queues_are_shown() {
        let queues = ["orders-00", "orders-01"];
        let storage = FakeStorage::new(&queues);
        for (at, text) in ["a", "b", "c", "d"].into_iter().enumerate() {
            storage.put(queues[at % 2], text);
            tokio::time::advance(s(1)).await;
        }
        let queues = queues.map(str::to_owned);
        let seen = waiting(&storage, &queues, 3).await.unwrap();
        let seen: Vec<_> = seen
            .iter()
            .map(|(queue, m)| (*queue, m.text.as_str()))
            .collect();
        assert_eq!(
            seen,
            [("orders-00", "a"), ("orders-01", "b"), ("orders-00", "c")]
        );
    }
}
