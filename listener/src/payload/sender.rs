//! Puts bodies into a queue, large ones through a blob.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, CallContext, ErrorKind, MessageTtl, Metadata, PortError, PortResult, Receipt, Storage,
    Written, metadata_value,
};
use tokio::time::Instant;

use super::binding;
use super::codec;
use super::envelope::{self, Claim};
use super::store::INLINE_BYTES_MAX;
use super::{Offload, PayloadStore};
use crate::config::{ConfigError, Encoding, queue_name};
use crate::jitter;
use crate::notify::{Destination, Publisher, When};
use crate::rules::envelope::MESSAGE_MAX_BYTES;

const PUT_ATTEMPTS: u32 = 3;
/// Times in metadata have whole seconds.
const ROUND_UP: Duration = Duration::from_secs(1);

/// Puts bodies into one queue. Cheap to share; every method takes `&self`.
///
/// All times are the service's and do not depend on the local clock.
pub struct Sender {
    storage: Arc<dyn Storage>,
    queue: String,
    encoding: Encoding,
    payloads: Option<PayloadStore>,
    names: Mutex<ChaCha8Rng>,
    publisher: Option<Publisher>,
    /// The service's time of the latest answer, and when it arrived.
    told: Mutex<Option<(Instant, Timestamp)>>,
}

/// Options of one put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// Time to live of the message.
    pub ttl: MessageTtl,
    /// Time during which the message is hidden at first.
    pub delay: Duration,
}

impl Default for SendOptions {
    /// Seven days, the service's own default; visible at once.
    fn default() -> Self {
        SendOptions {
            ttl: MessageTtl::After(Duration::from_secs(7 * 86_400)),
            delay: Duration::ZERO,
        }
    }
}

/// A message that was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Id and pop receipt of the message.
    pub receipt: Receipt,
    /// Blob of the payload; `None` if the body is in the message.
    pub payload: Option<BlobId>,
}

/// A message was not put, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The body is too long.
    #[error("a body of {bytes} bytes is too long: at most {most} are allowed")]
    TooLong {
        /// Length of the body.
        bytes: u64,
        /// Largest allowed length in bytes.
        most: u64,
    },
    /// The body is not UTF-8, and the queue's encoding is text.
    #[error("the body is not UTF-8 text: use the encoding base64, or `offload`")]
    NotText,
    /// The payload was not put, and so neither was the message.
    #[error("the payload was not put: {0}")]
    Payload(PortError),
    /// The message was rejected and does not exist.
    #[error("the message was not put: {0}")]
    Message(PortError),
    /// The message may have been put. Sending it again may create a second one.
    #[error("the message may have been put: {0}")]
    Unknown(PortError),
}

impl Sender {
    /// Creates a sender to `queue`, whose listeners use the same `encoding` and `offload`. `seed`
    /// makes the names and keys of payloads and should be random. If a name is already taken,
    /// another one is drawn.
    ///
    /// # Errors
    /// The queue's name or a setting is invalid.
    pub fn new(
        storage: Arc<dyn Storage>,
        queue: impl Into<String>,
        encoding: Encoding,
        offload: Option<Offload>,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let queue = queue.into();
        queue_name("queue", &queue)?;
        if let Some(offload) = &offload {
            offload.validate()?;
        }
        let payloads =
            offload.map(|offload| PayloadStore::new(Arc::clone(&storage), offload, &queue));
        // The queues of a set share one seed; this keeps keys read in one from revealing those of
        // another.
        let seed = seed ^ jitter::of_name(&queue);
        Ok(Sender {
            payloads,
            storage,
            queue,
            encoding,
            names: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            publisher: None,
            told: Mutex::new(None),
        })
    }

    /// Publishes an event about each put that `when` names, to all destinations. A failure to
    /// publish is logged and fails no put.
    #[must_use]
    pub fn notifying(self, to: Vec<Arc<dyn Destination>>, when: When) -> Self {
        let publisher = Publisher::new(to, when);
        self.publishing((!publisher.is_silent()).then_some(publisher))
    }

    pub(crate) fn publishing(mut self, publisher: Option<Publisher>) -> Self {
        self.publisher = publisher;
        self
    }

    /// Returns the queue's name.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Puts one message.
    ///
    /// # Errors
    /// The message was not put, or it is unknown whether it was: [`SendError::Unknown`]. Dropping
    /// the future is the second case.
    pub async fn send(&self, body: &[u8], options: SendOptions) -> Result<Sent, SendError> {
        let Some(publisher) = &self.publisher else {
            return self.put(body, options).await;
        };
        let delay = options.delay;
        let storage = self.storage.as_ref();
        let event = publisher.due(storage, &self.queue, body, delay).await;
        let sent = self.put(body, options).await;
        // Published after the put (DL19), also if the message only may have been put.
        if let (Some(event), Ok(_) | Err(SendError::Unknown(_))) = (event, &sent) {
            publisher.publish(&event, delay).await;
        }
        sent
    }

    async fn put(&self, body: &[u8], options: SendOptions) -> Result<Sent, SendError> {
        if let Some(payloads) = self
            .payloads
            .as_ref()
            .filter(|p| self.travels_apart(body, p))
        {
            return self.send_apart(payloads, body, options).await;
        }
        let text = self.text(body).ok_or(SendError::NotText)?;
        if text.len() > MESSAGE_MAX_BYTES {
            let (bytes, most) = (body.len() as u64, MESSAGE_MAX_BYTES as u64);
            return Err(SendError::TooLong { bytes, most });
        }
        let receipt = self.put_message(&text, options).await?;
        Ok(Sent {
            receipt,
            payload: None,
        })
    }

    /// Returns whether a body goes into a blob: because it is long, does not fit into a message,
    /// would be read as an envelope, or is not UTF-8 in a text queue.
    fn travels_apart(&self, body: &[u8], payloads: &PayloadStore) -> bool {
        let encoded = match self.encoding {
            Encoding::Text => body.len(),
            Encoding::Base64 => body.len().div_ceil(3) * 4,
        };
        body.len() > payloads.offload().above_bytes
            || encoded > MESSAGE_MAX_BYTES
            || envelope::looks_like_claim(body)
            || (self.encoding == Encoding::Text && std::str::from_utf8(body).is_err())
    }

    /// Puts the blob, then the message.
    async fn send_apart(
        &self,
        payloads: &PayloadStore,
        body: &[u8],
        options: SendOptions,
    ) -> Result<Sent, SendError> {
        let (bytes, most) = (body.len() as u64, payloads.offload().payload_bytes_max);
        if bytes > most {
            return Err(SendError::TooLong { bytes, most });
        }
        let claim = self.put_payload(payloads, body, options.ttl).await?;
        let text = self.text(claim.text().as_bytes());
        let put = match text {
            Some(text) => self.put_message(&text, options).await,
            None => Err(SendError::NotText),
        };
        match put {
            Ok(receipt) => Ok(Sent {
                receipt,
                payload: Some(BlobId::new(
                    &claim.reference.container,
                    &claim.reference.blob,
                )),
            }),
            // The message may exist, and then it needs its payload.
            Err(error @ SendError::Unknown(_)) => Err(error),
            Err(error) => {
                self.take_back(payloads, &claim).await;
                Err(error)
            }
        }
    }

    async fn put_payload(
        &self,
        payloads: &PayloadStore,
        body: &[u8],
        ttl: MessageTtl,
    ) -> Result<Claim, SendError> {
        let offload = payloads.offload();
        let packed = pack(body, offload).await.map_err(SendError::Payload)?;
        let life = match ttl {
            MessageTtl::Never => None,
            MessageTtl::After(life) => Some(life + offload.margin + ROUND_UP),
        };
        let due = match life {
            Some(life) => Some(self.service_time().await?.plus(life)),
            None => None,
        };
        let key = self.random();
        let metadata = payloads.metadata(&key, due);
        let (name, written) = self
            .put_blob(payloads, packed, &metadata)
            .await
            .map_err(SendError::Payload)?;
        let claim = Claim::of(body, offload.compression, &offload.container, &name);
        let claim = claim.bound_by(&key);
        // The assumed service time was too early: a clock was set, or this machine was suspended.
        if let (Some(life), Some(due)) = (life, due)
            && due < written.server_time.plus(life - offload.margin / 2)
        {
            let metadata = payloads.metadata(&key, Some(written.server_time.plus(life)));
            if let Err(error) = payloads.postpone(&name, &metadata, &written.etag).await {
                self.take_back(payloads, &claim).await;
                return Err(SendError::Payload(error));
            }
        }
        Ok(claim)
    }

    /// Puts a blob under a new name. An attempt without an answer is repeated under the same name,
    /// so that it leaves no second blob.
    async fn put_blob(
        &self,
        payloads: &PayloadStore,
        packed: Bytes,
        metadata: &Metadata,
    ) -> PortResult<(String, Written)> {
        let mut name = self.fresh_name();
        let mut maybe_ours = false;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match payloads.put(&name, packed.clone(), metadata).await {
                Ok(written) => {
                    self.tell(written.server_time);
                    return Ok((name, written));
                }
                Err(error) => error,
            };
            if attempts >= PUT_ATTEMPTS {
                return Err(error);
            }
            match error.kind {
                ErrorKind::NotFound => payloads.create_container().await?,
                ErrorKind::OutcomeUnknown | ErrorKind::Busy => maybe_ours = true,
                ErrorKind::AlreadyExists if maybe_ours => {
                    let (seen, server_time) = payloads.seen(&name).await?;
                    let bound = |of| metadata_value(of, binding::BOUND_KEY);
                    if bound(&seen.metadata) == bound(metadata) {
                        let etag = seen.etag;
                        return Ok((name, Written { etag, server_time }));
                    }
                    name = self.fresh_name();
                }
                ErrorKind::AlreadyExists => name = self.fresh_name(),
                _ => return Err(error),
            }
        }
    }

    async fn put_message(&self, text: &str, options: SendOptions) -> Result<Receipt, SendError> {
        let SendOptions { ttl, delay } = options;
        let cx = CallContext::default();
        let put = self
            .storage
            .put_message(&cx, &self.queue, text, ttl, delay)
            .await;
        put.map_err(|error| match error.kind {
            ErrorKind::OutcomeUnknown | ErrorKind::Busy => SendError::Unknown(error),
            _ => SendError::Message(error),
        })
    }

    /// Deletes the payload of a message that was not put. On a failure the sweeper deletes it
    /// later.
    async fn take_back(&self, payloads: &PayloadStore, claim: &Claim) {
        if let Err(error) = payloads.take_back(claim).await {
            tracing::warn!(
                op = "payload",
                queue = %self.queue,
                blob = %claim.reference.blob,
                outcome = "payload_left",
                reason = %error,
                "cannot delete the payload of a message that was not put; the sweeper will"
            );
        }
    }

    /// Returns the service's time: the latest known one plus the time since. The first call peeks
    /// at the queue, which also checks that the queue exists before a payload is put.
    async fn service_time(&self) -> Result<Timestamp, SendError> {
        let told = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, time)) = told {
            return Ok(time.plus(at.elapsed()));
        }
        let cx = CallContext::housekeeping();
        let peeked = self.storage.peek_messages(&cx, &self.queue, 1).await;
        let time = peeked.map_err(SendError::Message)?.server_time;
        self.tell(time);
        Ok(time)
    }

    fn tell(&self, time: Timestamp) {
        let told = (Instant::now(), time);
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// Returns a blob name of 128 random bits under the queue's name.
    fn fresh_name(&self) -> String {
        format!("{}/{}", self.queue, self.random())
    }

    /// Returns 128 random bits in hexadecimal digits.
    fn random(&self) -> String {
        let mut random = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let (high, low) = (random.next_u64(), random.next_u64());
        format!("{high:016x}{low:016x}")
    }

    /// Returns the text of a message; `None` if the encoding is text and the body is not UTF-8.
    fn text(&self, body: &[u8]) -> Option<String> {
        match self.encoding {
            Encoding::Text => std::str::from_utf8(body).ok().map(str::to_owned),
            Encoding::Base64 => Some(STANDARD.encode(body)),
        }
    }
}

/// Compresses a body, on a blocking thread if it is long.
async fn pack(body: &[u8], offload: &Offload) -> PortResult<Bytes> {
    let (body, by) = (body.to_vec(), offload.compression);
    let packed = if body.len() as u64 <= INLINE_BYTES_MAX {
        Ok(codec::pack(&body, by))
    } else {
        tokio::task::spawn_blocking(move || codec::pack(&body, by)).await
    };
    let failed =
        |why: String| PortError::new(ErrorKind::Invalid, "compress", &offload.container, why);
    match packed {
        Ok(Ok(packed)) => Ok(Bytes::from(packed)),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}
