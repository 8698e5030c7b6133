//! Names and settings of what the processes share.

use std::sync::Arc;
use std::time::Duration;

use smalt_listener::ListenerConfig;
use smalt_listener::config::{Encoding, Idle, Tasks};
use smalt_listener::partition::{PartitionSender, PartitionSettings, Partitions};
use smalt_listener::payload::{Offload, Sender};
use smalt_sleeve::port::{BlobId, CallContext, PortResult, Storage};

/// Queues that chunks are spread over.
const WORK_QUEUES: u32 = 3;
/// A process that is killed has taken its messages, and the service counts that. So the limit is
/// far beyond what a message needs by itself.
const ATTEMPTS_MAX: u32 = 100;

/// What the processes share: an account, and names in it.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) storage: Arc<dyn Storage>,
    /// Names of queues begin with it; the container is called so.
    pub(crate) name: String,
    /// How long the messages of a process that dies stay hidden.
    pub(crate) visibility: Duration,
    /// Seed of names and pauses; another one in each process.
    pub(crate) seed: u64,
}

impl Site {
    /// Creates what is missing.
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

    /// A blob of the site.
    pub(crate) fn blob(&self, name: &str) -> BlobId {
        BlobId::new(&self.name, name)
    }

    /// Chunks are large: above 16 KiB they travel in blobs.
    fn payloads(&self) -> Offload {
        Offload {
            above_bytes: 16 * 1024,
            ..Offload::into(format!("{}-payloads", self.name))
        }
    }

    fn results_queue(&self) -> String {
        format!("{}-results", self.name)
    }

    /// The set of queues for chunks.
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

    /// How chunks are listened to; the set of queues gives the name.
    pub(crate) fn work_config(&self, worker: &str) -> ListenerConfig {
        ListenerConfig {
            tasks: Tasks { min: 1, max: 4 },
            ..self.config(worker, format!("{}-work", self.name))
        }
    }

    /// How results are listened to.
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
