//! Delivers events: the first of each blob at a time, so that the events of one blob keep their
//! order, and forgets an event after its destination has it. A crash between the two delivers it
//! again.
//!
//! Sources: "Event Grid message delivery and retry", "Dead letter and retry policies".

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures_util::future::join_all;
use http::header::CONTENT_LENGTH;
use http::{Request, StatusCode};
use serde_json::Value;
use smalt_protocol::connection_string::emulator_port;
use smalt_protocol::{ApiVersion, Service, StorageError, Timestamp};

use super::{outbox, schema};
use crate::arrival::Socket;
use crate::body;
use crate::core::Core;
use crate::records::{DeliveryRecord, Record};
use crate::rules::events::pause_s;
use crate::rules::subscription::{Destination, Schema, Subscription};
use crate::store::{StoreResult, View};
use crate::{owner, pipeline};

const MINUTE_S: u64 = 60;
/// Deliveries that are made at the same time.
const TOGETHER_MAX: usize = 64;
/// Wait of an event that was given up before it is written to the dead letters. Same page.
const DEAD_LETTER_WAIT_S: u64 = 5 * MINUTE_S;
/// Wait between attempts to write a dead letter; smalt's own choice.
const DEAD_LETTER_RETRY_S: u64 = 5 * MINUTE_S;
/// An event that cannot be written to the dead letters for this long is dropped. Same page.
const DEAD_LETTER_TRIES_S: u64 = 4 * 60 * MINUTE_S;

/// An event that is due, with its key and subscription.
struct Due<'a> {
    key: Vec<u8>,
    name: &'a str,
    settings: &'a Subscription,
    delivery: DeliveryRecord,
}

/// What stays of an event after an attempt; `None` when it was delivered, or is dropped.
type Left = Option<DeliveryRecord>;

/// Delivers every event that is due. Returns when the next one is; `None` if there is no other.
///
/// # Errors
/// When the store fails.
pub async fn deliver(core: &Core) -> Result<Option<Timestamp>, StorageError> {
    let _alone = core.events.alone.lock().await;
    loop {
        let now = core.store.now();
        let subscriptions = core.store.read(outbox::subscriptions)?;
        let mut next = None;
        let mut due = Vec::new();
        for (name, subscription) in &subscriptions {
            let of = (name.as_str(), &subscription.settings);
            let generation = subscription.generation;
            core.store
                .read(|view| find(view, generation, of, now, &mut due, &mut next))?;
        }
        if due.is_empty() {
            return Ok(next);
        }
        let attempts = due.into_iter().map(async |due| {
            let after = attempt(core, &due, now).await;
            (due.key, after)
        });
        let done = join_all(attempts).await;
        let settled = core.store.commit(move |tx, _| {
            for (key, after) in done {
                // The subscription may have been deleted meanwhile.
                if tx.get(&key)?.is_none() {
                    continue;
                }
                match after {
                    None => tx.delete(key),
                    Some(delivery) => delivery.save(tx, key)?,
                }
            }
            Ok(())
        });
        settled.await?;
    }
}

/// Adds the events of a subscription that are due to `due`, and lowers `next` to the time of the
/// others.
fn find<'a>(
    view: &dyn View,
    generation: u64,
    (name, settings): (&'a str, &'a Subscription),
    now: Timestamp,
    due: &mut Vec<Due<'a>>,
    next: &mut Option<Timestamp>,
) -> StoreResult<()> {
    let mut waiting = BTreeSet::new();
    outbox::events(view, generation, |key, delivery| {
        let is_first =
            delivery.given_up.is_some() || waiting.insert(delivery.event.subject.clone());
        if is_first && delivery.due <= now {
            due.push(Due {
                key: key.to_vec(),
                name,
                settings,
                delivery,
            });
        } else if is_first {
            *next = Some(next.map_or(delivery.due, |next| next.min(delivery.due)));
        }
        match due.len() < TOGETHER_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
}

async fn attempt(core: &Core, due: &Due<'_>, now: Timestamp) -> Left {
    let (settings, delivery) = (due.settings, due.delivery.clone());
    if delivery.given_up.is_some() {
        return bury(core, due, now).await;
    }
    let ttl_s = u64::from(settings.event_ttl_minutes) * MINUTE_S;
    if now >= delivery.event.at.plus_s(ttl_s) {
        return give_up(settings, delivery, "TimeToLiveExceeded", now);
    }
    let status = match &settings.destination {
        Destination::Queue { account, queue } => {
            enqueue(core, account, queue, &delivery, settings.schema).await
        }
    };
    if status.is_success() {
        return None;
    }
    let attempts = delivery.attempts + 1;
    let outcome = status.canonical_reason().unwrap_or("Unknown");
    let outcome = outcome.replace(' ', "");
    tracing::debug!(subscription = due.name, attempts, %status, "cannot deliver an event");
    let failed = DeliveryRecord {
        attempts,
        last: Some((now, outcome)),
        ..delivery
    };
    match pause_s(attempts, status.as_u16(), false) {
        None => give_up(settings, failed, "UndeliverableDueToClientError", now),
        Some(_) if attempts >= settings.max_delivery_attempts => {
            give_up(settings, failed, "MaxDeliveryAttemptsExceeded", now)
        }
        Some(pause_s) => Some(DeliveryRecord {
            due: now.plus_s(pause_s),
            ..failed
        }),
    }
}

fn give_up(
    settings: &Subscription,
    delivery: DeliveryRecord,
    reason: &str,
    now: Timestamp,
) -> Left {
    if settings.dead_letter.is_none() {
        tracing::warn!(id = %delivery.event.id, reason, "dropped an event");
        return None;
    }
    Some(DeliveryRecord {
        given_up: Some(reason.to_owned()),
        due: now.plus_s(DEAD_LETTER_WAIT_S),
        ..delivery
    })
}

/// Sends an event to a queue.
async fn enqueue(
    core: &Core,
    account: &str,
    queue: &str,
    delivery: &DeliveryRecord,
    schema: Schema,
) -> StatusCode {
    let event = schema::render(&delivery.event, schema).to_string();
    let text = BASE64.encode(event);
    let message = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    let target = format!("/{account}/{queue}/messages");
    send(
        core,
        Service::Queue,
        ("POST", account, &target),
        &[],
        message,
    )
    .await
}

/// Writes an event that was given up to its container.
async fn bury(core: &Core, due: &Due<'_>, now: Timestamp) -> Left {
    let (settings, delivery) = (due.settings, &due.delivery);
    let Some(dead) = &settings.dead_letter else {
        return None;
    };
    let time = now.iso_s();
    // `2026-11-21T10:...` gives `2026/11/21/10`.
    let hour = time.get(..13).unwrap_or_default().replace(['-', 'T'], "/");
    let name = due.name.to_uppercase();
    let (account, container) = (&dead.account, &dead.container);
    let target = format!(
        "/{account}/{container}/{name}/{hour}/{}.json",
        delivery.event.id
    );
    let text = Value::Array(vec![dead_letter(delivery, settings.schema)]).to_string();
    let headers = [
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-blob-content-type", "application/json"),
    ];
    let to = ("PUT", account.as_str(), target.as_str());
    let status = send(core, Service::Blob, to, &headers, text).await;
    let last = delivery
        .last
        .as_ref()
        .map_or(delivery.event.at, |(at, _)| *at);
    if status.is_success() {
        return None;
    }
    if now >= last.plus_s(DEAD_LETTER_TRIES_S) {
        tracing::warn!(id = %delivery.event.id, %status, "dropped a dead letter");
        return None;
    }
    Some(DeliveryRecord {
        due: now.plus_s(DEAD_LETTER_RETRY_S),
        ..delivery.clone()
    })
}

/// Returns an event with what became of it. CloudEvents allows only lower-case names.
fn dead_letter(delivery: &DeliveryRecord, schema: Schema) -> Value {
    let mut event = schema::render(&delivery.event, schema);
    let (at, outcome) = match &delivery.last {
        Some((at, outcome)) => (Some(at.iso_ticks()), Some(outcome)),
        None => (None, None),
    };
    let more = [
        (
            "deadLetterReason",
            Value::from(delivery.given_up.as_deref()),
        ),
        ("deliveryAttempts", delivery.attempts.into()),
        ("lastDeliveryOutcome", outcome.cloned().into()),
        ("publishTime", delivery.event.at.iso_ticks().into()),
        ("lastDeliveryAttemptTime", at.into()),
    ];
    for (name, value) in more {
        let name = match schema {
            Schema::EventGridSchema => name.to_owned(),
            Schema::CloudEvents => name.to_lowercase(),
        };
        if !value.is_null() {
            event[name] = value;
        }
    }
    event
}

/// Sends a request of an account's owner in process. A connection that a fault rule cuts counts as
/// a service that is not reached.
async fn send(
    core: &Core,
    service: Service,
    (method, account, target): (&str, &str, &str),
    headers: &[(&str, &str)],
    text: String,
) -> StatusCode {
    let port = emulator_port(service);
    let mut request = Request::builder()
        .method(method)
        .uri(format!("http://127.0.0.1:{port}{target}"))
        .header("x-ms-version", ApiVersion::LATEST.to_string())
        .header(CONTENT_LENGTH, text.len());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let Ok(mut request) = request.body(body::full(Bytes::from(text))) else {
        return StatusCode::BAD_REQUEST;
    };
    if owner::sign(core, service, account, &mut request).is_err() {
        return StatusCode::BAD_REQUEST;
    }
    let served = pipeline::serve(core, request, Socket::default()).await;
    served.map_or(StatusCode::SERVICE_UNAVAILABLE, |answer| answer.status())
}
