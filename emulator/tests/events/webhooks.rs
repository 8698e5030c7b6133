//! Webhooks: their validation, what they receive, batches and retries. A function stands for the
//! network.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use smalt::body::{self, Body};
use smalt::fetch::FetchError;
use smalt::{Filter, Schema, Subscription};

use super::world::{short, with_boxes};
use crate::support::Client;

/// What the webhook received, and the statuses of its next answers; 200 when there is none.
#[derive(Clone, Default)]
struct Hook {
    received: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    statuses: Arc<Mutex<Vec<u16>>>,
    /// The `validationUrl` of a webhook that does not answer its validation by itself.
    confirm: Arc<Mutex<Option<String>>>,
}

impl Hook {
    fn answer(&self, request: &Request<Bytes>) -> Result<Response<Body>, FetchError> {
        let answer = Response::builder();
        if request.uri().path() == "/silent" {
            return Err(FetchError::Unreachable("nobody".to_owned()));
        }
        let is_wrong = request.uri().path() == "/wrong";
        if request.method() == Method::OPTIONS {
            assert_eq!(
                request.headers()["webhook-request-origin"],
                "eventgrid.azure.net"
            );
            let allowed = if is_wrong { "example.com" } else { "*" };
            let answer = answer.header("webhook-allowed-origin", allowed);
            return Ok(answer.body(body::empty()).unwrap());
        }
        let events: Value = serde_json::from_slice(request.body()).unwrap();
        if request.headers()["aeg-event-type"] == "SubscriptionValidation" {
            let data = &events[0]["data"];
            let text = match request.uri().path() {
                "/wrong" => json!({ "validationResponse": "wrong" }),
                "/by-hand" => {
                    let url = data["validationUrl"].as_str().map(str::to_owned);
                    *self.confirm.lock().unwrap() = url;
                    json!({})
                }
                _ => json!({ "validationResponse": data["validationCode"] }),
            };
            return Ok(answer.body(body::full(text.to_string())).unwrap());
        }
        let status = self.statuses.lock().unwrap().pop().unwrap_or(200);
        let received = (request.headers().clone(), events);
        self.received.lock().unwrap().push(received);
        let answer = answer.status(StatusCode::from_u16(status).unwrap());
        Ok(answer.body(body::empty()).unwrap())
    }

    fn take(&self) -> Vec<(HeaderMap, Value)> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

async fn world() -> (Client, Hook) {
    let hook = Hook::default();
    let network = hook.clone();
    let client = Client::of(|builder| {
        builder.send_webhooks_by(move |request: Request<Bytes>| {
            let answer = network.answer(&request);
            async move { answer }
        })
    });
    (with_boxes(client).await, hook)
}

fn settings(path: &str, more: &Value) -> Subscription {
    let url = format!("http://hook.example{path}");
    let mut destination = json!({ "kind": "webhook", "url": url });
    let mut all = json!({});
    for (field, value) in more.as_object().unwrap() {
        let to = match field.contains("batch") {
            true => &mut destination,
            false => &mut all,
        };
        to[field] = value.clone();
    }
    all["destination"] = destination;
    serde_json::from_value(all).unwrap()
}

async fn subscribe(world: &Client, path: &str, more: &Value) -> Result<(), String> {
    let subscribed = world.emulator().subscribe("hook", settings(path, more));
    subscribed.await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn webhook_is_validated_before_the_subscription_exists() {
    let (world, hook) = world().await;
    for schema in ["EventGridSchema", "CloudEventSchemaV1_0"] {
        let schema = json!({ "schema": schema });
        for (path, expected) in [("/wrong", "must answer 200"), ("/silent", "nobody")] {
            let refused = subscribe(&world, path, &schema).await.unwrap_err();
            assert!(refused.contains(expected), "{refused}");
            assert!(world.emulator().subscriptions().unwrap().is_empty());
        }
        subscribe(&world, "/events", &schema).await.unwrap();
        assert!(world.emulator().unsubscribe("hook").await.unwrap());
    }
    assert!(hook.take().is_empty());
}

#[tokio::test]
async fn webhook_is_confirmed_by_its_validation_url_within_ten_minutes() {
    for (wait_s, expected) in [(599, 200), (600, 404)] {
        let (world, hook) = world().await;
        let emulator = world.emulator();
        let text = serde_json::to_string(&settings("/by-hand", &json!({}))).unwrap();
        let told = world.control("PUT", "/subscriptions/hook", text).await;
        assert_eq!(told.status, 202);
        assert_eq!(told.json()["status"], "AwaitingManualAction");
        assert!(emulator.subscriptions().unwrap().is_empty());
        let url = hook.confirm.lock().unwrap().take().unwrap();
        let start = "http://127.0.0.1:10003/subscriptions/hook/confirm?code=";
        assert!(url.starts_with(start), "{url}");
        world.advance_s(wait_s);
        let confirm = async |url: &str| world.control("GET", url, "").await.status;
        assert_eq!(confirm(start).await, 404);
        assert_eq!(confirm(&url).await, expected);
        assert_eq!(
            emulator.subscriptions().unwrap().len(),
            usize::from(expected == 200)
        );
        assert_eq!(confirm(&url).await, 404);
    }
}

#[tokio::test]
async fn webhook_receives_an_array_with_headers() {
    let (world, hook) = world().await;
    subscribe(&world, "/events", &json!({})).await.unwrap();
    world.put_blob("a").await;
    world.deliver().await;
    let received = hook.take();
    let [(headers, events)] = received.as_slice() else {
        panic!("{received:?}");
    };
    for (name, value) in [
        ("aeg-event-type", "Notification"),
        ("aeg-subscription-name", "HOOK"),
        ("aeg-delivery-count", "0"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(headers[name], value);
    }
    assert_eq!(short(&events[0]), "BlobCreated PutBlob a");
}

#[tokio::test]
async fn batch_has_at_most_the_wanted_events_and_bytes() {
    for (settings, sizes) in [
        (json!({ "max_events_per_batch": 2 }), vec![2, 2, 1]),
        (json!({ "max_events_per_batch": 10 }), vec![5]),
        (
            json!({ "max_events_per_batch": 10, "preferred_batch_kib": 1 }),
            vec![1; 5],
        ),
    ] {
        let (world, hook) = world().await;
        subscribe(&world, "/events", &settings).await.unwrap();
        for blob in ["a", "b", "c", "d", "e"] {
            world.put_blob(blob).await;
        }
        world.deliver().await;
        let received = hook.take();
        let found = received
            .iter()
            .map(|(_, events)| events.as_array().unwrap().len());
        assert_eq!(found.collect::<Vec<_>>(), sizes, "{settings}");
    }
}

#[tokio::test]
async fn refusal_is_repeated_unless_it_is_final() {
    for (status, waits) in [
        (500, vec![10]),
        (503, vec![30]),
        (404, vec![300]),
        (401, vec![]),
    ] {
        let (world, hook) = world().await;
        subscribe(&world, "/events", &json!({})).await.unwrap();
        hook.statuses.lock().unwrap().push(status);
        world.put_blob("a").await;
        let mut found = Vec::new();
        while let Some(wait_s) = world.deliver().await {
            found.push(wait_s);
            world.advance_s(wait_s);
        }
        assert_eq!(found, waits, "{status}");
        assert_eq!(hook.take().len(), 1 + waits.len(), "{status}");
    }
}

#[tokio::test]
async fn channel_receives_events_in_process() {
    let (world, _) = world().await;
    let emulator = world.emulator();
    let channel = emulator.event_channel("mine", Filter::default(), Schema::default());
    let mut channel = channel.await.unwrap();
    world.put_blob("a").await;
    assert!(channel.try_recv().is_err());
    world.deliver().await;
    assert_eq!(short(&channel.try_recv().unwrap()), "BlobCreated PutBlob a");
    drop(channel);
    world.put_blob("b").await;
    assert_eq!(world.deliver().await, Some(30));
    let again = emulator.event_channel("mine", Filter::default(), Schema::default());
    let mut channel = again.await.unwrap();
    world.deliver_all().await;
    assert_eq!(short(&channel.try_recv().unwrap()), "BlobCreated PutBlob b");
}
