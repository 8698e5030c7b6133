//! `[[listener.on]]`: handlers of events by their name (L33).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::json;
use smalt_listener::config::file::{OnLayer, TRIGGER_EVERY};
use smalt_listener::handler::{Context, Handler, Message, Verdict};
use smalt_listener::notify::{Relay, Topic, Trigger};
use smalt_protocol::Timestamp;
use smalt_worker::process::wall_clock;
use smalt_worker::span;
use tokio::sync::mpsc;

use super::program::handler;

/// Handlers of one name that run at once.
const AT_ONCE: usize = 8;
/// Events of one name that wait for a handler; further ones are dropped with a warning.
const WAITING_MAX: usize = 1_000;
/// Longest run of a handler, unless the settings name one.
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub(crate) struct On {
    event: String,
    /// Topic that brings the events; without one, only `POST /notify` does.
    topic: Option<String>,
    handler: Arc<dyn Handler>,
    timeout: Duration,
}

impl On {
    pub(crate) fn of(layer: &OnLayer) -> anyhow::Result<On> {
        let named = || format!("on `{}`", layer.event);
        let topic = layer.topic.clone();
        if let Some(topic) = &topic {
            Topic::check("topic", topic).with_context(named)?;
        }
        let timeout = layer.handler.timeout.map_or(TIMEOUT, |timeout| timeout.0);
        Ok(On {
            event: layer.event.clone(),
            topic,
            handler: handler(&layer.handler).with_context(named)?,
            timeout,
        })
    }

    /// Returns the topic that brings the events, and how often to look there.
    pub(crate) fn topic(&self) -> Option<(&str, Duration)> {
        self.topic.as_deref().map(|topic| (topic, TRIGGER_EVERY))
    }

    /// Returns its event, and its settings in words.
    pub(crate) fn shown(&self) -> (&str, String) {
        let topic = self.topic.as_deref().unwrap_or("-");
        let timeout = span::format(self.timeout);
        (&self.event, format!("topic {topic}, timeout {timeout}"))
    }

    /// Calls the handler for each event of this name. An event is a hint that may be lost or
    /// doubled, so a failed handler is logged and not repeated.
    pub(crate) fn attach(&self, relay: &Relay, worker: &str) {
        let (waiting, mut heard) = mpsc::channel::<Trigger>(WAITING_MAX);
        relay.on(&self.event, move |event| {
            if waiting.try_send(event.clone()).is_err() {
                warn(event, "too many events wait for their handler");
            }
        });
        let (on, worker) = (self.clone(), worker.to_owned());
        let count = Arc::new(AtomicU64::new(1));
        tokio::spawn(async move {
            let events = stream::poll_fn(move |cx| heard.poll_recv(cx));
            let handled = events.for_each_concurrent(AT_ONCE, |event| {
                let number = count.fetch_add(1, Ordering::Relaxed);
                on.handle(event, format!("{worker}/{number}"), &worker)
            });
            handled.await;
        });
    }

    async fn handle(&self, event: Trigger, id: String, worker: &str) {
        let (ctx, cancel) = Context::new(worker, self.timeout, 1);
        let message = Message {
            id,
            queue: event.queue(),
            body: Bytes::from(json!(event).to_string()),
            dequeue_count: 1,
            inserted: wall_clock(),
            expires: Timestamp::MAX,
        };
        let run = self.handler.handle(&message, &ctx);
        match tokio::time::timeout(self.timeout, run).await {
            Ok(Verdict::Ok) => tracing::info!(
                op = "on",
                event = self.event,
                queue = %message.queue,
                outcome = "done",
                "event handled"
            ),
            Ok(verdict) => warn(&event, &format!("{verdict:?}")),
            Err(_) => warn(&event, "its handler timed out"),
        }
        drop(cancel);
    }
}

fn warn(event: &Trigger, reason: &str) {
    let named = event.event.as_deref().unwrap_or_default();
    tracing::warn!(
        op = "on",
        event = named,
        queue = %event.queue,
        outcome = "event_lost",
        reason,
        "an event was not handled"
    );
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use smalt_listener::handler::function;

    use super::*;

    /// L33: several kinds of events in one process, each with its own handler.
    #[tokio::test(start_paused = true)]
    async fn l33_handlers_of_the_file_get_the_events_of_their_name() {
        let relay = Relay::new("acct");
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        for name in ["price", "stock"] {
            let seen = Arc::clone(&seen);
            let handler = function(move |message: Message, _| {
                let body = String::from_utf8(message.body.to_vec()).unwrap();
                seen.lock().unwrap().push(format!("{name}: {body}"));
                async { Verdict::retry("never repeated") }
            });
            let on = On {
                event: name.to_owned(),
                topic: None,
                handler: Arc::new(handler),
                timeout: TIMEOUT,
            };
            on.attach(&relay, "w");
        }
        for (text, told) in [
            (r#"{"queue":"shop","event":"price"}"#, 1),
            (r#"{"queue":"shop","event":"other"}"#, 0),
            (r#"{"queue":"shop","account":"another","event":"stock"}"#, 0),
        ] {
            assert_eq!(relay.relay(&Trigger::parse(text).unwrap()), told, "{text}");
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let expected = r#"price: {"event":"price","queue":"shop"}"#;
        assert_eq!(*seen.lock().unwrap(), [expected]);
    }

    #[tokio::test]
    async fn wrong_settings_are_rejected() {
        for (toml, problem) in [
            ("event = \"price\"", "on `price`: no handler is named"),
            (
                "event = \"price\"\ntopic = \"A\"\nhandler = { exec = \"cat\" }",
                "on `price`: topic: ",
            ),
        ] {
            let layer: OnLayer = toml::from_str(toml).unwrap();
            let error = On::of(&layer).err().unwrap();
            assert!(format!("{error:#}").starts_with(problem), "{error:#}");
        }
        assert!(toml::from_str::<OnLayer>("topic = \"events\"").is_err());
    }
}
