//! An emulator with subscriptions whose destinations are queues, and a reader of those queues.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::{Value, json};
use smalt::{Service, Subscription};
use smalt_protocol::ApiVersion;

use crate::support::{Client, exchange, signature};

pub(crate) const PUT: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

pub(crate) struct World {
    pub(crate) client: Client,
}

impl World {
    /// Creates the containers `box` and `dead`.
    pub(crate) async fn of(client: Client) -> Self {
        let world = World { client };
        for container in ["/box", "/dead"] {
            world
                .send("PUT", &format!("{container}?restype=container"), &[], "")
                .await;
        }
        world
    }

    /// Sends a request to the Blob service and returns its status.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> u16 {
        self.client.send(method, path, headers, body).await.status
    }

    pub(crate) async fn put(&self, blob: &str) -> u16 {
        self.send("PUT", &format!("/box/{blob}"), &[PUT], "text")
            .await
    }

    pub(crate) async fn queue(&self, method: &str, path: &str) -> String {
        let emulator = self.client.emulator();
        let target = format!("/devstoreaccount1{path}");
        let (date, version) = (self.client.now().rfc1123(), ApiVersion::LATEST);
        let shown = version.to_string();
        let mut headers = vec![
            ("x-ms-date", date.as_str()),
            ("x-ms-version", shown.as_str()),
            ("content-length", "0"),
        ];
        let by = ("devstoreaccount1", self.client.key());
        let signed = signature(Service::Queue, version, by, method, &target, &headers);
        headers.push(("authorization", &signed));
        let to = (method, target.as_str());
        let (head, body) = exchange(emulator, 10001, to, &headers, Bytes::new()).await;
        assert!(
            head.status.is_success(),
            "{method} {path}: {head:?} {body:?}"
        );
        String::from_utf8(body.to_vec()).unwrap()
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
        self.client
            .emulator()
            .subscribe(name, settings)
            .await
            .unwrap();
    }

    /// Delivers what is due and returns the seconds until the next delivery.
    pub(crate) async fn deliver(&self) -> Option<u64> {
        let next = self.client.emulator().deliver_events().await.unwrap();
        next.map(|next| next.since(self.client.now()).as_secs())
    }

    /// Delivers everything, and moves the clock to do so.
    pub(crate) async fn deliver_all(&self) {
        while let Some(wait_s) = self.deliver().await {
            self.client.advance_s(wait_s.max(1));
        }
    }

    /// Takes every event out of a queue.
    pub(crate) async fn events(&self, queue: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let target = format!("/{queue}/messages?numofmessages=32&visibilitytimeout=604800");
            let page = self.queue("GET", &target).await;
            let texts: Vec<_> = page.split("<MessageText>").skip(1).collect();
            if texts.is_empty() {
                return events;
            }
            for text in texts {
                let json = BASE64.decode(text.split('<').next().unwrap()).unwrap();
                events.push(serde_json::from_slice(&json).unwrap());
            }
        }
    }

    /// Returns every dead letter.
    pub(crate) async fn dead_letters(&self) -> Vec<Value> {
        let list = self
            .client
            .send("GET", "/dead?restype=container&comp=list", &[], "")
            .await;
        let list = String::from_utf8(list.body.to_vec()).unwrap();
        let mut events = Vec::new();
        for name in list.split("<Name>").skip(1) {
            let path = format!("/dead/{}", name.split('<').next().unwrap());
            let blob = self.client.send("GET", &path, &[], "").await;
            let mut array: Vec<Value> = serde_json::from_slice(&blob.body).unwrap();
            events.append(&mut array);
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
