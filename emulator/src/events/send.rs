//! Sends events to queues, webhooks, channels and the container of dead letters.
//!
//! Sources: "Webhook event delivery"; "HTTP 1.1 Web Hooks for Event Delivery" of CloudEvents for
//! its validation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};
use smalt_protocol::connection_string::emulator_port;
use smalt_protocol::{ApiVersion, Service, Timestamp};

use super::schema;
use crate::arrival::Socket;
use crate::body::{self, Body};
use crate::core::Core;
use crate::fetch::FetchError;
use crate::records::{DeliveryRecord, EventRecord};
use crate::rules::subscription::{Destination, Schema, Subscription};
use crate::{owner, pipeline};

/// Most bytes of a webhook's answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Who asks a webhook of CloudEvents whether it wants events.
const ORIGIN: &str = "eventgrid.azure.net";

/// A subscription and its name.
type To<'a> = (&'a str, &'a Subscription);

/// Returns about how many bytes an event takes when it is delivered.
pub fn length(event: &EventRecord) -> usize {
    schema::render(event, Schema::EventGridSchema)
        .to_string()
        .len()
}

/// Delivers events, which are one unless the destination takes batches, after this many attempts
/// that failed. Returns the status of the answer; 503 when there is none.
pub async fn events(core: &Core, to: To<'_>, events: &[EventRecord], attempts: u32) -> StatusCode {
    let (name, settings) = to;
    let events = events
        .iter()
        .map(|event| schema::render(event, settings.schema));
    match &settings.destination {
        Destination::Queue { account, queue } => {
            for event in events {
                let status = enqueue(core, account, queue, &event).await;
                if !status.is_success() {
                    return status;
                }
            }
            StatusCode::OK
        }
        Destination::Channel => match core.events.tell(name, events) {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        },
        Destination::Webhook { url, .. } => {
            let (kind, body) = match settings.schema {
                Schema::CloudEvents => (
                    "application/cloudevents-batch+json; charset=utf-8",
                    Value::from_iter(events),
                ),
                Schema::EventGridSchema => ("application/json", Value::from_iter(events)),
            };
            let count = attempts.to_string();
            let headers = [
                ("aeg-event-type", "Notification"),
                ("aeg-subscription-name", &name.to_uppercase()),
                ("aeg-delivery-count", &count),
                ("aeg-data-version", ""),
                ("aeg-metadata-version", "1"),
                (CONTENT_TYPE.as_str(), kind),
            ];
            let answer = post(core, "POST", url, &headers, body.to_string()).await;
            answer.map_or_else(|error| unreached(name, &error), |answer| answer.status())
        }
    }
}

fn unreached(name: &str, error: &str) -> StatusCode {
    tracing::debug!(subscription = name, error, "cannot reach the webhook");
    StatusCode::SERVICE_UNAVAILABLE
}

/// What a webhook answered to its validation.
#[derive(Debug, PartialEq, Eq)]
pub enum Validation {
    /// It wants the events.
    Passed,
    /// It accepted the question; whoever opens the `validationUrl` with this code answers it.
    Awaits(String),
}

/// Asks a webhook whether it wants the events, as Event Grid does before it creates a subscription.
/// `confirm` is the `validationUrl` up to the code; without it a webhook must answer at once.
///
/// # Errors
/// What the webhook did wrong.
pub async fn validate(
    core: &Core,
    (name, settings): To<'_>,
    confirm: Option<&str>,
) -> Result<Validation, String> {
    let Destination::Webhook { url, .. } = &settings.destination else {
        return Ok(Validation::Passed);
    };
    if settings.schema == Schema::CloudEvents {
        let asked = [("webhook-request-origin", ORIGIN)];
        let answer = post(core, "OPTIONS", url, &asked, String::new()).await?;
        let allowed = answer.headers().get("webhook-allowed-origin");
        let allowed = allowed.and_then(|origin| origin.to_str().ok());
        return match (answer.status(), allowed) {
            (StatusCode::OK, Some("*" | ORIGIN)) => Ok(Validation::Passed),
            (status, _) => Err(format!(
                "the webhook answered OPTIONS with {status}; it must answer 200 with the header \
                 WebHook-Allowed-Origin: {ORIGIN}"
            )),
        };
    }
    let code = core.ids.next().to_string();
    let account = settings.account.as_deref().unwrap_or_default();
    let mut event = json!([{
        "id": core.ids.next(),
        "topic": schema::topic(account),
        "subject": "",
        "data": { "validationCode": code },
        "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "eventTime": core.store.now().iso_ticks(),
        "metadataVersion": "1",
        "dataVersion": "2",
    }]);
    if let Some(confirm) = confirm {
        event[0]["data"]["validationUrl"] = format!("{confirm}{code}").into();
    }
    let headers = [
        ("aeg-event-type", "SubscriptionValidation"),
        ("aeg-subscription-name", &name.to_uppercase()),
        (CONTENT_TYPE.as_str(), "application/json"),
    ];
    let answer = post(core, "POST", url, &headers, event.to_string()).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    let answered: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answered = &answered["validationResponse"];
    if status == StatusCode::OK && answered == code.as_str() {
        Ok(Validation::Passed)
    } else if status == StatusCode::OK && answered.is_null() && confirm.is_some() {
        Ok(Validation::Awaits(code))
    } else {
        Err(format!(
            "the webhook answered the validation event with {status} and without its code; it must \
             answer 200 with {{\"validationResponse\": the validationCode of the event}}"
        ))
    }
}

async fn post(
    core: &Core,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    text: String,
) -> Result<Response<Body>, String> {
    let hooks = core.hooks.get();
    let hooks = hooks.ok_or("this emulator was built without a client for webhooks")?;
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .header(CONTENT_LENGTH, text.len())
        .body(Bytes::from(text));
    let request = request.map_err(|error| error.to_string())?;
    let answer = hooks.fetch(request).await;
    answer.map_err(|error: FetchError| error.to_string())
}

/// Sends an event to a queue.
async fn enqueue(core: &Core, account: &str, queue: &str, event: &Value) -> StatusCode {
    let text = BASE64.encode(event.to_string());
    let message = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    let target = format!("/{account}/{queue}/messages");
    serve(
        core,
        Service::Queue,
        ("POST", account, &target),
        &[],
        message,
    )
    .await
}

/// Writes an event that was given up to the container of dead letters.
pub async fn dead_letter(
    core: &Core,
    (name, settings): To<'_>,
    delivery: &DeliveryRecord,
    now: Timestamp,
) -> StatusCode {
    let Some(dead) = &settings.dead_letter else {
        return StatusCode::OK;
    };
    let time = now.iso_s();
    // `2026-11-21T10:...` gives `2026/11/21/10`.
    let hour = time.get(..13).unwrap_or_default().replace(['-', 'T'], "/");
    let (account, container) = (&dead.account, &dead.container);
    let (name, id) = (name.to_uppercase(), delivery.event.id);
    let target = format!("/{account}/{container}/{name}/{hour}/{id}.json");
    let text = json!([schema::dead_letter(delivery, settings.schema)]).to_string();
    let headers = [
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-blob-content-type", "application/json"),
    ];
    serve(
        core,
        Service::Blob,
        ("PUT", account, &target),
        &headers,
        text,
    )
    .await
}

/// Serves a request of an account's owner in process. A connection that a fault rule cuts counts as
/// a service that is not reached.
async fn serve(
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
