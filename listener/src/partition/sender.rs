//! Puts messages into the queue of their key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use super::set::{PartitionError, Partitions, Read};
use crate::config::{ConfigError, Encoding};
use crate::notify::{Destination, Publisher, When};
use crate::payload::{Offload, SendOptions, Sender, Sent};

/// Attempts to put a message whose queue was retired meanwhile.
const SEND_ATTEMPTS: u32 = 5;

/// Puts messages by key. Cheap to share; every method takes `&self`.
pub struct PartitionSender {
    partitions: Arc<Partitions>,
    encoding: Encoding,
    offload: Option<Offload>,
    seed: u64,
    publisher: Option<Publisher>,
    map: AsyncMutex<Option<Read>>,
    senders: Mutex<BTreeMap<String, Arc<Sender>>>,
}

impl PartitionSender {
    /// Creates a sender to the set; `encoding`, `offload` and `seed` are as for [`Sender::new`].
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(
        partitions: Arc<Partitions>,
        encoding: Encoding,
        offload: Option<Offload>,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        if let Some(offload) = &offload {
            offload.validate()?;
        }
        Ok(PartitionSender {
            partitions,
            encoding,
            offload,
            seed,
            publisher: None,
            map: AsyncMutex::new(None),
            senders: Mutex::default(),
        })
    }

    /// Publishes events, as [`Sender::notifying`].
    #[must_use]
    pub fn notifying(mut self, to: Vec<Arc<dyn Destination>>, when: When) -> Self {
        let publisher = Publisher::new(to, when);
        self.publisher = (!publisher.is_silent()).then_some(publisher);
        self
    }

    /// Puts one message into the queue of `key`. `Ok` means that the message is in a queue that is
    /// read until it is empty. If this process stalled during a resize, the message may exist
    /// twice.
    ///
    /// # Errors
    /// As [`Sender::send`], or the map cannot be read.
    pub async fn send(
        &self,
        key: &[u8],
        body: &[u8],
        options: SendOptions,
    ) -> Result<Sent, PartitionError> {
        for _ in 0..SEND_ATTEMPTS {
            let read = self.trusted().await?;
            let queue = read.map.queue_of(key);
            let sent = self.sender(&queue)?.send(body, options).await?;
            if read.is_trusted() {
                return Ok(sent);
            }
            // The put took too long: only a map that was read after it shows whether the message
            // will be found.
            if self.read_again().await?.map.is_current(&queue) {
                return Ok(sent);
            }
        }
        Err(PartitionError::Contended)
    }

    async fn trusted(&self) -> Result<Read, PartitionError> {
        let mut kept = self.map.lock().await;
        if let Some(read) = kept.as_ref().filter(|read| read.is_trusted()) {
            return Ok(read.clone());
        }
        let read = self.partitions.read().await?;
        *kept = Some(read.clone());
        Ok(read)
    }

    async fn read_again(&self) -> Result<Read, PartitionError> {
        let mut kept = self.map.lock().await;
        let read = self.partitions.read().await?;
        *kept = Some(read.clone());
        Ok(read)
    }

    fn sender(&self, queue: &str) -> Result<Arc<Sender>, ConfigError> {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(queue) {
            return Ok(Arc::clone(sender));
        }
        let storage = Arc::clone(self.partitions.storage());
        let offload = self.offload.clone();
        let sender = Sender::new(storage, queue, self.encoding, offload, self.seed)?;
        let publisher = self.publisher.as_ref().map(Publisher::of_another_queue);
        let sender = Arc::new(sender.publishing(publisher));
        senders.insert(queue.to_owned(), Arc::clone(&sender));
        Ok(sender)
    }
}
