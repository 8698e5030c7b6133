//! `notify`: wakes a listener of another process.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use http::Uri;
use serde_json::json;
use smalt_listener::config::queue_name;
use smalt_listener::rules::trigger::Trigger;
use smalt_sleeve::port::{CallContext, ErrorKind, MessageTtl, Storage};
use smalt_worker::process::{Process, Sources};

use super::storage::{self, Retries};
use super::{Common, token, web};

/// Time to live of an event in a trigger queue. By then the watchdog has looked at the queue.
const EVENT_TTL: Duration = Duration::from_secs(600);

const EXAMPLES: &str = "\
Send it after the last message was put, not before the first: a listener that is woken too early
finds nothing and is asleep again when the messages come. An event that is lost strands nothing,
the listener's watchdog looks anyway.

Examples:
  To a listener that was started with --health 127.0.0.1:9100:
    smalt-listener notify orders --to http://127.0.0.1:9100
  To all listeners that read the trigger queue `events`:
    smalt-listener notify orders --to queue:events";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NotifyFlags {
    /// Queue that messages were put into.
    #[arg(value_name = "QUEUE")]
    queue: String,
    /// Where to send the event: the URL of the listener's --health address, or queue:NAME for its
    /// trigger queue.
    #[arg(long, value_name = "URL|queue:NAME", env = "LISTENER_NOTIFY_TO")]
    to: String,
    /// Token that the address requires: env:NAME or file:/path. Default: the value of
    /// LISTENER_NOTIFY_TOKEN, if that variable is set.
    #[arg(long, value_name = "env:NAME|file:PATH")]
    token: Option<String>,
}

const TOKEN_VARIABLE: &str = "LISTENER_NOTIFY_TOKEN";

pub(crate) async fn notify(common: &Common, flags: &NotifyFlags) -> anyhow::Result<ExitCode> {
    let mut event = Trigger {
        queue: flags.queue.trim().to_ascii_lowercase(),
        account: common.account_flag(),
    };
    queue_name("QUEUE", &event.queue)?;
    let Some(to) = flags.to.strip_prefix("queue:") else {
        let set = Process
            .variable(TOKEN_VARIABLE)
            .filter(|value| !value.is_empty());
        let usual = set.map(|_| format!("env:{TOKEN_VARIABLE}"));
        let token = flags.token.clone().or(usual);
        let shown = token.map(|token| token::authorization(&token, &Process));
        return post(&flags.to, &event, shown.transpose()?.as_deref()).await;
    };
    queue_name("--to", to)?;
    let file = common.file()?;
    let storage = storage::open(common, &file, Retries::OfTheClient).await?;
    event.account = Some(storage.account().to_owned());
    put(storage.as_ref(), to, &event).await?;
    println!("event for {} put into {to}", event.queue);
    Ok(ExitCode::SUCCESS)
}

/// Puts the event into a trigger queue. Listeners create that queue, so if it does not exist, no
/// listener reads it.
async fn put(storage: &dyn Storage, to: &str, event: &Trigger) -> anyhow::Result<()> {
    let (cx, text) = (CallContext::default(), json!(event).to_string());
    let life = MessageTtl::After(EVENT_TTL);
    let put = storage.put_message(&cx, to, &text, life, Duration::ZERO);
    match put.await {
        Ok(_) => Ok(()),
        Err(error) if error.kind == ErrorKind::NotFound => Err(anyhow::Error::new(error).context(
            format!("no trigger queue `{to}` exists; a listener creates it when it starts"),
        )),
        Err(error) => Err(error.into()),
    }
}

async fn post(to: &str, event: &Trigger, shown: Option<&str>) -> anyhow::Result<ExitCode> {
    let answer = web::post(&address(to), &json!(event), shown).await?;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
    match answer["woken"].as_u64() {
        Some(0) => {
            println!("no listener at that address processes {}", event.queue);
            Ok(ExitCode::from(smalt_worker::exit::FAILED_ITEMS))
        }
        Some(woken) => {
            println!("woken: {woken}");
            Ok(ExitCode::SUCCESS)
        }
        None => anyhow::bail!("{to} is not the health address of a listener"),
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
    use crate::cli::exit;
    use crate::cli::support::{FakeStorage, QUEUE};

    #[tokio::test]
    async fn a_missing_trigger_queue_is_an_error() {
        let storage = FakeStorage::new(&[QUEUE]);
        let event = Trigger {
            queue: "jobs".to_owned(),
            account: None,
        };
        put(&storage, QUEUE, &event).await.unwrap();
        let error = put(&storage, "nosuchqueue", &event).await.unwrap_err();
        assert!(format!("{error:#}").contains("no trigger queue `nosuchqueue`"));
        assert_eq!(exit::code(&error), smalt_worker::exit::UNREACHABLE);
        let cx = CallContext::default();
        assert!(storage.queue_properties(&cx, "nosuchqueue").await.is_err());
    }

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
