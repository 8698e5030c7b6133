//! What the tests of events ask of a client: subscriptions whose destinations are queues, and what
//! those queues hold.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use smalt::{Service, Subscription};

use crate::support::{Answer, Client};

/// Creates the containers `box` and `dead`, unless the emulator has them.
pub(crate) async fn with_boxes(client: Client) -> Client {
    for container in ["/box", "/dead"] {
        let path = format!("{container}?restype=container");
        client.send("PUT", &path, &[], "").await;
    }
    client
}

impl Client {
    /// Puts a blob into `box`.
    pub(crate) async fn put_blob(&self, name: &str) {
        self.put(&format!("/box/{name}"), "text").await;
    }

    pub(crate) async fn queue(&self, method: &str, path: &str) -> Answer {
        let answer = self.at(Service::Queue).send(method, path, &[], "").await;
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        answer
    }

    /// Creates the queue and a subscription of the same name for the container `box`, with these
    /// settings.
    pub(crate) async fn subscribe(&self, name: &str, settings: Value) {
        self.queue("PUT", &format!("/{name}")).await;
        self.subscribe_without_queue(name, settings).await;
    }

    pub(crate) async fn subscribe_without_queue(&self, name: &str, settings: Value) {
        let mut all = json!({
            "destination": { "kind": "queue", "account": "devstoreaccount1", "queue": name },
            "filter": { "subject_begins_with": "/blobServices/default/containers/box/" },
        });
        for (field, value) in settings.as_object().unwrap() {
            all[field] = value.clone();
        }
        let settings: Subscription = serde_json::from_value(all).unwrap();
        let subscribed = self.emulator().subscribe(name, settings);
        subscribed.await.unwrap();
    }

    /// Delivers what is due and returns the seconds until the next delivery.
    pub(crate) async fn deliver(&self) -> Option<u64> {
        let next = self.emulator().deliver_events().await.unwrap();
        next.map(|next| next.since(self.now()).as_secs())
    }

    /// Delivers everything, and moves the clock to do so.
    pub(crate) async fn deliver_all(&self) {
        while let Some(wait_s) = self.deliver().await {
            self.advance_s(wait_s.max(1));
        }
    }

    /// Takes every event out of a queue.
    pub(crate) async fn events(&self, queue: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let target = format!("/{queue}/messages?numofmessages=32&visibilitytimeout=604800");
            let page = self.queue("GET", &target).await;
            let texts = page.elements("MessageText");
            if texts.is_empty() {
                return events;
            }
            for text in texts {
                let json = BASE64.decode(text).unwrap();
                events.push(serde_json::from_slice(&json).unwrap());
            }
        }
    }

    /// Takes every event out of a queue, and returns them [`short`].
    pub(crate) async fn short_events(&self, queue: &str) -> Vec<String> {
        self.events(queue).await.iter().map(short).collect()
    }

    /// Returns every dead letter.
    pub(crate) async fn dead_letters(&self) -> Vec<Value> {
        let list = self.get("/dead?restype=container&comp=list").await;
        let mut events = Vec::new();
        for name in list.elements("Name") {
            let blob = self.get(&format!("/dead/{name}")).await.json();
            events.extend(blob.as_array().unwrap().clone());
        }
        events
    }
}

/// Returns type, `api` and blob of an event of the Event Grid schema.
pub(crate) fn short(event: &Value) -> String {
    let kind = event["eventType"].as_str().unwrap();
    let kind = kind.rsplit('.').next().unwrap();
    let (api, blob) = (event["data"]["api"].as_str().unwrap(), blob(event));
    format!("{kind} {api} {blob}")
}

/// Returns the name of the blob.
pub(crate) fn blob(event: &Value) -> &str {
    event["subject"]
        .as_str()
        .unwrap()
        .split("/blobs/")
        .nth(1)
        .unwrap()
}
