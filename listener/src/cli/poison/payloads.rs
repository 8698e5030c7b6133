//! Payloads of messages in a poison queue: what happens to the blob when the message is purged or
//! put back.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use smalt_listener::config::Encoding;
use smalt_listener::payload::envelope::looks_like_claim;
use smalt_listener::payload::{Offload, PayloadStore};
use smalt_listener::rules::requeue;
use smalt_sleeve::port::{MessageTtl, PortResult, QueueMessage, Storage};

/// The payloads that messages of a queue refer to.
pub(crate) struct Payloads {
    /// `None` if the file has no `offload` for the queue.
    pub(crate) place: Option<(Arc<dyn Storage>, Offload)>,
    /// The source queue of messages without an envelope.
    pub(crate) queue: String,
    pub(crate) encoding: Encoding,
    /// Whether the target queue of a requeue reads another container, or none.
    pub(crate) is_elsewhere: bool,
}

impl Payloads {
    /// Returns the settings for a queue that is not in the file.
    pub(crate) fn unknown() -> Self {
        Payloads {
            place: None,
            queue: String::new(),
            encoding: Encoding::Text,
            is_elsewhere: false,
        }
    }

    /// Returns why a message has to stay: it refers to a payload that this command cannot reach.
    pub(crate) fn problem(&self, message: &QueueMessage) -> Option<&'static str> {
        let text = stored_text(message);
        let decoded = STANDARD.decode(text.trim()).ok();
        let decoded = decoded.is_some_and(|body| looks_like_claim(&body));
        if !decoded && !looks_like_claim(text.as_bytes()) {
            return None;
        }
        match (&self.place, self.is_elsewhere) {
            (None, _) => Some("its payload is in a blob: give the --config that has `offload`"),
            (_, true) => Some("its payload is in a container that the target queue does not read"),
            _ => None,
        }
    }

    /// Prepares the payload before its message is deleted permanently.
    pub(crate) async fn before_purge(&self, message: &QueueMessage) -> PortResult<()> {
        match (self.store(message), self.body(message)) {
            (Some(store), Some(body)) => store.before_discard(&body).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Discards the payload after its message was deleted. On a failure the sweeper deletes it
    /// later.
    pub(crate) async fn purged(&self, message: &QueueMessage) {
        if let (Some(store), Some(body)) = (self.store(message), self.body(message))
            && let Err(error) = store.discard(&body).await
        {
            tracing::warn!(
                op = "purge", msg_id = %message.id, reason = %error,
                "cannot delete the payload; the sweeper will delete it"
            );
        }
    }

    /// Checks and binds the payload before the message is put into `queue`, its own or another.
    pub(crate) async fn admit(&self, message: &QueueMessage, queue: &str) -> PortResult<()> {
        match (self.store(message), self.body(message)) {
            (Some(store), Some(body)) => store.admit(&body, queue).await,
            _ => Ok(()),
        }
    }

    /// Gives the payload the time to live of the message that was, or will be, put back.
    pub(crate) async fn requeued(
        &self,
        message: &QueueMessage,
        life: MessageTtl,
    ) -> PortResult<()> {
        match (self.store(message), self.body(message)) {
            (Some(store), Some(body)) => store.requeued(&body, life).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Returns the payload store of the message's source queue, to which its payload is bound.
    fn store(&self, message: &QueueMessage) -> Option<PayloadStore> {
        let (storage, offload) = self.place.as_ref()?;
        let envelope = requeue::open(&message.text);
        let queue = envelope.map_or_else(|| self.queue.clone(), |envelope| envelope.queue);
        let (storage, offload) = (Arc::clone(storage), offload.clone());
        Some(PayloadStore::new(storage, offload, &queue))
    }

    fn body(&self, message: &QueueMessage) -> Option<Vec<u8>> {
        let text = stored_text(message);
        match self.encoding {
            Encoding::Text => Some(text.into_bytes()),
            Encoding::Base64 => STANDARD.decode(text.trim()).ok(),
        }
    }
}

fn stored_text(message: &QueueMessage) -> String {
    requeue::open(&message.text).map_or_else(|| message.text.clone(), |envelope| envelope.body)
}
