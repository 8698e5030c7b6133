//! Names and settings that the processes share.

use std::sync::Arc;
use std::time::Duration;

use smalt_listener::ListenerConfig;
use smalt_listener::config::{Encoding, Idle, Tasks};
use smalt_listener::partition::{PartitionSender, PartitionSettings, Partitions};
use smalt_listener::payload::{Offload, Sender};
use smalt_sleeve::port::{BlobId, CallContext, PortResult, Storage};

/// Number of queues for chunks.
const WORK_QUEUES: u32 = 3;
/// The service counts the receipts of killed processes as attempts, so the limit is far higher than
/// a message needs by itself.
const ATTEMPTS_MAX: u32 = 100;

/// The account and names that the processes share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) storage: Arc<dyn Storage>,
    /// Prefix of the queues' names, and name of the container.
    pub(crate) name: String,
    /// How long the messages of a dead process stay hidden.
    pub(crate) visibility: Duration,
    /// Seed of names and pauses, different in each process.
    pub(crate) seed: u64,
}

impl Site {
    /// Creates missing queues and containers.
    pub(crate) async fn prepare(&self) -> PortResult<()> {
        let cx = CallContext::default();
        self.storage.create_container(&cx, &self.name).await?;
        self.storage
            .create_container(&cx, &self.payloads().container)
            .await?;
        self.storage
            .create_queue(&cx, &self.results_queue())
            .await?;
        Ok(())
    }

    pub(crate) fn blob(&self, name: &str) -> BlobId {
        BlobId::new(&self.name, name)
    }

    /// Returns the settings of chunks' payloads: above 16 KiB they are stored in blobs.
    fn payloads(&self) -> Offload {
        Offload {
            above_bytes: 16 * 1024,
            ..Offload::into(format!("{}-payloads", self.name))
        }
    }

    fn results_queue(&self) -> String {
        format!("{}-results", self.name)
    }

    /// Returns the set of queues for chunks.
    pub(crate) fn work(&self) -> anyhow::Result<Arc<Partitions>> {
        let name = format!("{}-work", self.name);
        let settings = PartitionSettings::new(name, WORK_QUEUES, &self.name);
        let partitions = Partitions::new(Arc::clone(&self.storage), settings)?;
        Ok(Arc::new(partitions))
    }

    pub(crate) fn work_sender(&self) -> anyhow::Result<PartitionSender> {
        let payloads = Some(self.payloads());
        let work = self.work()?;
        Ok(PartitionSender::new(
            work,
            Encoding::Text,
            payloads,
            self.seed,
        )?)
    }

    pub(crate) fn results_sender(&self) -> anyhow::Result<Sender> {
        let (queue, payloads) = (self.results_queue(), Some(self.payloads()));
        let storage = Arc::clone(&self.storage);
        Ok(Sender::new(
            storage,
            queue,
            Encoding::Text,
            payloads,
            self.seed,
        )?)
    }

    /// Returns the settings of the listener for chunks; the set of queues provides the name.
    pub(crate) fn work_config(&self, worker: &str) -> ListenerConfig {
        ListenerConfig {
            tasks: Tasks { min: 1, max: 4 },
            ..self.config(worker, format!("{}-work", self.name))
        }
    }

    /// Returns the settings of the listener for results.
    pub(crate) fn results_config(&self, worker: &str) -> ListenerConfig {
        ListenerConfig {
            slots: 32,
            ..self.config(worker, self.results_queue())
        }
    }

    fn config(&self, worker: &str, queue: String) -> ListenerConfig {
        ListenerConfig {
            worker: worker.to_owned(),
            visibility: self.visibility,
            max_dequeue: ATTEMPTS_MAX,
            retry: vec![Duration::from_secs(1), Duration::from_secs(5)],
            idle: Idle {
                min: Duration::from_millis(50),
                max: Duration::from_secs(1),
            },
            offload: Some(self.payloads()),
            ..ListenerConfig::new(queue)
        }
    }
}
