//! Payloads of messages in a poison queue: what happens to the blob when the message goes.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use smalt_listener::config::Encoding;
use smalt_listener::payload::envelope::looks_like_claim;
use smalt_listener::payload::{Offload, PayloadStore};
use smalt_listener::rules::requeue;
use smalt_sleeve::port::{MessageTtl, PortResult, QueueMessage, Storage};

/// The payloads that messages of a queue refer to, as far as the file says where they are.
pub(crate) struct Payloads {
    /// None where the file has no `offload` for the queue.
    pub(crate) place: Option<(Arc<dyn Storage>, Offload)>,
    /// The queue that messages came from which do not say so themselves.
    pub(crate) queue: String,
    /// How bodies are written into messages.
    pub(crate) encoding: Encoding,
    /// The queue that messages are put back into reads another container, or none.
    pub(crate) is_elsewhere: bool,
}

impl Payloads {
    /// The settings for a queue that the file does not name.
    pub(crate) fn unknown() -> Self {
        Payloads {
            place: None,
            queue: String::new(),
            encoding: Encoding::Text,
            is_elsewhere: false,
        }
    }

    /// Why a message has to stay: it refers to a payload that nobody could see to.
    pub(crate) fn problem(&self, message: &QueueMessage) -> Option<&'static str> {
        let text = stored_text(message);
        let decoded = STANDARD.decode(text.trim()).ok();
        let decoded = decoded.is_some_and(|body| looks_like_claim(&body));
        if !decoded && !looks_like_claim(text.as_bytes()) {
            return None;
        }
        match (&self.place, self.is_elsewhere) {
            (None, _) => Some("its payload lies in a blob: give the --config that has `offload`"),
            (_, true) => Some("its payload lies in a container that queue does not read from"),
            _ => None,
        }
    }

    /// Before a message is deleted for good.
    pub(crate) async fn before_purge(&self, message: &QueueMessage) -> PortResult<()> {
        match (self.store(message), self.body(message)) {
            (Some(store), Some(body)) => store.before_discard(&body).await.map(drop),
            _ => Ok(()),
        }
    }

    /// After it was. What fails is left to the sweeper.
    pub(crate) async fn purged(&self, message: &QueueMessage) {
        if let (Some(store), Some(body)) = (self.store(message), self.body(message))
            && let Err(error) = store.discard(&body).await
        {
            tracing::warn!(
                op = "purge", msg_id = %message.id, reason = %error,
                "the payload is left to the sweeper"
            );
        }
    }

    /// Before a message is put into this queue, be it its own or another.
    pub(crate) async fn admit(&self, message: &QueueMessage, queue: &str) -> PortResult<()> {
        match (self.store(message), self.body(message)) {
            (Some(store), Some(body)) => store.admit(&body, queue).await,
            _ => Ok(()),
        }
    }

    /// Gives a payload the life of the message that was put back, or is to be.
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

    /// The payloads of the queue that a message came from: each is bound to its own.
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

/// The text of the message that a copy was made of.
fn stored_text(message: &QueueMessage) -> String {
    requeue::open(&message.text).map_or_else(|| message.text.clone(), |envelope| envelope.body)
}
