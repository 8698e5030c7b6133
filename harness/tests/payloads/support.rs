//! Shared parts of the payload tests: an account in process, a listener, a sweeper, and the check
//! of LS6 on the requests that the service executed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use smalt::{AccountSettings, Exchange};
use smalt_harness::testing::TestAccount;
use smalt_listener::config::Encoding;
use smalt_listener::handler::{Context, Handler, Message, Verdict};
use smalt_listener::metrics::Metrics;
use smalt_listener::payload::envelope::Claim;
use smalt_listener::payload::{Offload, SendOptions, Sender};
use smalt_listener::rules::envelope::Envelope;
use smalt_listener::{ListenerConfig, QueueListener, Report};
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;
use smalt_protocol::xml::read_queue_message;
use smalt_sleeve::port::{
    BlobId, BlobProperties, CallContext, ErrorKind, ListBlobs, MessageTtl, Storage, metadata_value,
};
use smalt_sweeper::{Accounts, Sweeper, SweeperConfig, SweptContainer};

use crate::storage;
pub(crate) use crate::{Outcome, s};

pub(crate) const QUEUE: &str = "orders";
pub(crate) const POISON: &str = "orders-poison";
pub(crate) const CONTAINER: &str = "payloads";

/// An account in process, and a storage client for it.
pub(crate) struct World {
    pub(crate) account: TestAccount,
    pub(crate) storage: Arc<dyn Storage>,
}

impl World {
    /// Opens an account and creates the queue, the payload container and the sweeper's container.
    pub(crate) async fn open() -> Outcome<World> {
        Self::of(TestAccount::open()?).await
    }

    /// Opens the same on an account with a hierarchical namespace.
    pub(crate) async fn hierarchical() -> Outcome<World> {
        let account = TestAccount::open()?;
        let settings = AccountSettings {
            hierarchical_namespace: true,
            ..AccountSettings::default()
        };
        let emulator = account.emulator();
        assert!(emulator.change_settings(EMULATOR_ACCOUNT_NAME, settings));
        Self::of(account).await
    }

    async fn of(account: TestAccount) -> Outcome<World> {
        let storage = storage(&account, 1)?;
        let world = World { account, storage };
        let cx = CallContext::default();
        world.storage.create_queue(&cx, QUEUE).await?;
        for container in [CONTAINER, "ops"] {
            world.storage.create_container(&cx, container).await?;
        }
        Ok(world)
    }

    pub(crate) fn sender(&self, offload: Offload) -> Outcome<Sender> {
        let storage = Arc::clone(&self.storage);
        Ok(Sender::new(
            storage,
            QUEUE,
            Encoding::Base64,
            Some(offload),
            7,
        )?)
    }

    pub(crate) fn config(&self) -> ListenerConfig {
        ListenerConfig {
            encoding: Encoding::Base64,
            offload: Some(Offload::into(CONTAINER)),
            visibility: s(30),
            retry: vec![s(1)],
            ..ListenerConfig::new(QUEUE)
        }
    }

    /// Runs a listener on the queue for `time`.
    pub(crate) async fn listen(&self, handler: &Keep, time: Duration) -> Outcome<Report> {
        self.listen_as(self.config(), handler, time).await
    }

    pub(crate) async fn listen_as(
        &self,
        config: ListenerConfig,
        handler: &Keep,
        time: Duration,
    ) -> Outcome<Report> {
        let storage = Arc::clone(&self.storage);
        let metrics = Arc::new(Metrics::new(QUEUE));
        let listener = QueueListener::new(config, storage, Arc::new(handler.clone()), 3)?
            .observed_by(metrics.clone());
        let report = listener.run_until(tokio::time::sleep(time)).await?;
        // All billed requests are reported, including those for payloads.
        assert_eq!(metrics.counts().requests(), report.requests);
        Ok(report)
    }

    /// Runs one cycle of a real sweeper on the payloads.
    pub(crate) async fn sweep(&self) -> Outcome {
        let config = SweeperConfig {
            state_account: "default".to_owned(),
            state_blob: BlobId::new("ops", "state"),
            create_state: true,
            containers: vec![SweptContainer {
                account: "default".to_owned(),
                container: CONTAINER.to_owned(),
                prefix: String::new(),
            }],
            ..SweeperConfig::default()
        };
        let accounts = Accounts::new().with("default", Arc::clone(&self.storage));
        let finished = Sweeper::new(config, accounts, 5)?.once().await;
        match finished.error {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Returns the existing payloads.
    pub(crate) async fn payloads(&self) -> Outcome<Vec<(String, BlobProperties)>> {
        let (cx, all) = (CallContext::default(), ListBlobs::default());
        let page = self.storage.list_blobs(&cx, CONTAINER, &all).await?;
        let blobs = page.blobs.into_iter();
        Ok(blobs.map(|blob| (blob.name, blob.properties)).collect())
    }

    /// Sends a body as a payload, in a message without expiry that is rejected; returns the text of
    /// its copy in the poison queue.
    pub(crate) async fn poisoned(&self, body: &[u8]) -> Outcome<String> {
        let sender = self.sender(Offload::into(CONTAINER))?;
        sender.send(body, never()).await?;
        let rejecting = Keep::saying(Verdict::reject("no"));
        self.listen(&rejecting, s(5)).await?;
        let envelope: Envelope = serde_json::from_str(&self.standing(POISON)[0])?;
        Ok(envelope.body)
    }

    /// Returns the texts of the messages in a queue.
    pub(crate) fn standing(&self, queue: &str) -> Vec<String> {
        let messages = self.account.messages(queue);
        messages.standing_now().map(|m| m.text.clone()).collect()
    }

    /// Checks that no message was visible without its payload, and that none is now.
    #[track_caller]
    pub(crate) fn assert_ls6(&self) {
        let broken = violations(&self.account.history());
        assert!(broken.is_empty(), "LS6:\n{}", broken.join("\n"));
    }
}

pub(crate) fn never() -> SendOptions {
    SendOptions {
        ttl: MessageTtl::Never,
        ..SendOptions::default()
    }
}

/// Returns a body that compresses poorly and depends on the seed.
pub(crate) fn body(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[5]
    };
    (0..len).map(|_| next()).collect()
}

/// Returns the `TimeToLive` of a payload.
pub(crate) fn ttl(properties: &BlobProperties) -> Option<&str> {
    metadata_value(&properties.metadata, "TimeToLive")
}

/// A handler that records its bodies and returns the given result.
#[derive(Clone)]
pub(crate) struct Keep {
    pub(crate) bodies: Arc<Mutex<Vec<Bytes>>>,
    verdict: Verdict,
    time: Duration,
}

impl Keep {
    pub(crate) fn saying(verdict: Verdict) -> Self {
        Keep {
            bodies: Arc::default(),
            verdict,
            time: Duration::ZERO,
        }
    }

    pub(crate) fn taking(self, time: Duration) -> Self {
        Keep { time, ..self }
    }

    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.bodies.lock().unwrap().clone()
    }
}

#[async_trait]
impl Handler for Keep {
    async fn handle(&self, message: &Message, _ctx: &Context) -> Verdict {
        self.bodies.lock().unwrap().push(message.body.clone());
        tokio::time::sleep(self.time).await;
        self.verdict.clone()
    }
}

/// Checks LS6 on the executed requests, in their order: the payload of a message exists when the
/// message is put, and is not deleted while the message exists.
pub(crate) fn violations(history: &[Exchange]) -> Vec<String> {
    let mut blobs: BTreeSet<String> = BTreeSet::new();
    let mut needs: BTreeMap<String, String> = BTreeMap::new();
    let mut broken = Vec::new();
    let executed = history.iter().filter(|e| e.response.status().is_success());
    for exchange in executed {
        let path = exchange.request.uri().path().replace("%2F", "/");
        let (_, blob) = path
            .split_once(&format!("/{CONTAINER}/"))
            .unwrap_or_default();
        match exchange.operation {
            Some("BlockBlob_Upload") => {
                blobs.insert(blob.to_owned());
            }
            Some("Blob_Delete") => {
                blobs.remove(blob);
                let bereft = needs.iter().filter(|(_, needed)| *needed == blob);
                broken.extend(bereft.map(|(id, _)| format!("  {blob} is deleted before {id}")));
            }
            Some("Messages_Enqueue") => {
                let Some((id, needed)) = reference(exchange) else {
                    continue;
                };
                if !blobs.contains(&needed) {
                    broken.push(format!("  {id} is put without {needed}"));
                }
                needs.insert(id, needed);
            }
            Some("MessageId_Delete") => {
                needs.remove(path.rsplit('/').next().unwrap_or_default());
            }
            _ => {}
        }
    }
    broken
}

/// Returns id and payload of a message that was put, including copies in a poison queue.
fn reference(exchange: &Exchange) -> Option<(String, String)> {
    let answer = String::from_utf8_lossy(exchange.response.body());
    let (_, id) = answer.split_once("<MessageId>")?;
    let (id, _) = id.split_once("</MessageId>")?;
    let text = read_queue_message(exchange.request.body()).ok()?;
    let copied = serde_json::from_str::<smalt_listener::rules::envelope::Envelope>(&text).ok();
    let body = STANDARD
        .decode(copied.map_or(text, |copy| copy.body))
        .ok()?;
    let claim: Claim = serde_json::from_slice(&body).ok()?;
    Some((id.to_owned(), claim.reference.blob))
}

/// Returns whether a blob does not exist.
pub(crate) async fn is_gone(world: &World, name: &str) -> bool {
    let (cx, blob) = (CallContext::default(), BlobId::new(CONTAINER, name));
    let seen = world.storage.blob_properties(&cx, &blob).await;
    seen.is_err_and(|error| error.kind == ErrorKind::NotFound)
}
