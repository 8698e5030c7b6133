//! `notify`: wakes listeners of other processes.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use clap::Args;
use http::Uri;
use serde_json::json;
use smalt_listener::config::queue_name;
use smalt_listener::notify::{Destination, Topic, Trigger, Undelivered};
use smalt_sleeve::port::Storage;
use smalt_worker::process::{Process, Sources};

use super::storage::{self, Retries};
use super::{Common, exit, token, web};

const EXAMPLES: &str = "\
Send it after the last message was put, not before the first: a listener that is woken too early
finds nothing and is asleep again when the messages come. An event that is lost strands nothing,
the listener's watchdog looks anyway.

Examples:
  To a listener that was started with --health 127.0.0.1:9100:
    smalt-listener notify orders --to http://127.0.0.1:9100
  To every process with `trigger = { queue = \"events\" }`:
    smalt-listener notify orders --to queue:events";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NotifyFlags {
    /// Queue that messages were put into.
    #[arg(value_name = "QUEUE")]
    queue: String,
    /// Where to send the event: the URL of a listener's --health address, or queue:TOPIC for every
    /// process that subscribed to the topic. May be repeated.
    #[arg(long, required = true, value_name = "URL|queue:TOPIC")]
    #[arg(env = "LISTENER_NOTIFY_TO", value_delimiter = ',')]
    to: Vec<String>,
    /// Name of the event, for handlers of events.
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Token that the address requires: env:NAME or file:/path. Default: the value of
    /// LISTENER_NOTIFY_TOKEN, if that variable is set.
    #[arg(long, value_name = "env:NAME|file:PATH")]
    token: Option<String>,
}

/// Before the name of a topic.
const TOPIC: &str = "queue:";
const TOKEN_VARIABLE: &str = "LISTENER_NOTIFY_TOKEN";

pub(crate) async fn notify(common: &Common, flags: &NotifyFlags) -> anyhow::Result<ExitCode> {
    let queue = flags.queue.trim().to_ascii_lowercase();
    queue_name("QUEUE", &queue)?;
    let mut event = Trigger {
        account: common.account_flag(),
        event: flags.event.clone(),
        ..Trigger::about(&queue)
    };
    let is_topic = |to: &String| to.starts_with(TOPIC);
    let storage = match flags.to.iter().any(is_topic) {
        true => Some(storage::open(common, &common.file()?, Retries::OfTheClient).await?),
        false => None,
    };
    if let Some(storage) = &storage {
        event.account = Some(storage.account().to_owned());
    }
    let mut missed = 0;
    for to in &flags.to {
        let reached = match (to.strip_prefix(TOPIC), &storage) {
            (Some(topic), Some(storage)) => {
                let topic = Topic::new(Arc::clone(storage), topic)?;
                let processes = topic.put(&event, Duration::ZERO).await?;
                println!("event for {queue} put into {processes} subscriptions of {to}");
                processes
            }
            _ => {
                let woken = Webhook::new(to, flags.token.as_deref())?
                    .post(&event)
                    .await?;
                println!("woken: {woken}");
                woken
            }
        };
        missed += u64::from(reached == 0);
    }
    Ok(exit::of_items(missed > 0))
}

/// Returns the destinations of a sender's events: URLs and `queue:TOPIC`.
pub(crate) fn destinations(
    storage: &Arc<dyn Storage>,
    to: &[String],
    token: Option<&str>,
) -> anyhow::Result<Vec<Arc<dyn Destination>>> {
    let destination = |to: &String| -> anyhow::Result<Arc<dyn Destination>> {
        Ok(match to.strip_prefix(TOPIC) {
            Some(topic) => Arc::new(Topic::new(Arc::clone(storage), topic)?),
            None => Arc::new(Webhook::new(to, token)?),
        })
    };
    to.iter().map(destination).collect()
}

/// The `/notify` address of a listener's process.
struct Webhook {
    to: String,
    authorization: Option<String>,
}

impl Webhook {
    /// `token` names the token that the address requires; by default that of the environment.
    fn new(to: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let set = Process
            .variable(TOKEN_VARIABLE)
            .filter(|value| !value.is_empty());
        let usual = set.map(|_| format!("env:{TOKEN_VARIABLE}"));
        let token = token.map(str::to_owned).or(usual);
        let shown = token.map(|token| token::authorization(&token, &Process));
        Ok(Webhook {
            to: address(to),
            authorization: shown.transpose()?,
        })
    }

    async fn post(&self, event: &Trigger) -> anyhow::Result<u64> {
        let shown = self.authorization.as_deref();
        let answer = web::post(&self.to, &json!(event), shown).await?;
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
        let woken = answer["woken"].as_u64();
        woken.with_context(|| format!("{} is not the health address of a listener", self.to))
    }
}

#[async_trait]
impl Destination for Webhook {
    async fn deliver(&self, event: &Trigger, delay: Duration) -> Result<u64, Undelivered> {
        // Only a queue keeps an event until its time; the watchdog finds the delayed message.
        match delay.is_zero() {
            true => Ok(self.post(event).await?),
            false => Ok(0),
        }
    }
}

/// Returns the URL to post to; the path defaults to `/notify`.
fn address(to: &str) -> String {
    let web = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    let uri = to.parse::<Uri>().ok().filter(web);
    match uri.as_ref().map(Uri::path) {
        Some("" | "/") => format!("{}/notify", to.trim_end_matches('/')),
        _ => to.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_path_gets_notify() {
        for (to, url) in [
            ("http://h:1", "http://h:1/notify"),
            ("http://h:1/", "http://h:1/notify"),
            ("http://h:1/x/notify", "http://h:1/x/notify"),
            ("nowhere", "nowhere"),
            ("ftp://x", "ftp://x"),
        ] {
            assert_eq!(address(to), url);
        }
    }
}
