//! What the processes share: an account, the names in it, and how a channel is seen.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use smalt_listener::ListenerConfig;
use smalt_listener::config::{Encoding, Idle, Tasks};
use smalt_listener::payload::Sender;
use smalt_sleeve::port::{CallContext, PortResult, Storage};
use smalt_sleeve::{Account, AzureStorage, Clock, Settings, Transport};

use super::tables::{Row, TableResult, Tables, row};

/// Channels: PartitionKey is the name, RowKey is empty.
pub(crate) const CHANNELS: &str = "Channels";
/// Blogs: PartitionKey is the channel's name, RowKey the time of creation, as a text that sorts.
pub(crate) const BLOGS: &str = "Blogs";
/// How far each writer is: PartitionKey is its name, RowKey is empty.
pub(crate) const WRITERS: &str = "Writers";
/// Names of channels that are to be deleted with their blogs.
pub(crate) const QUEUE: &str = "deletechannelandblogs";

/// The RowKey of a partition's only entity.
pub(crate) const ONLY: &str = "";
/// A worker that is killed has taken its messages, and the service counts that. So the limit is far
/// beyond what a message needs by itself.
const ATTEMPTS_MAX: u32 = 100;
/// Most time of one attempt: the next goes on with what is left, so this only has to be far beyond
/// a page.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(3600);

/// What the processes share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) tables: Tables,
    /// How long the message of a worker that dies stays hidden from the others.
    pub(crate) visibility: Duration,
    /// Seed of pauses; another one in each process.
    pub(crate) seed: u64,
}

/// A channel as it was read.
pub(crate) struct Channel {
    pub(crate) valid: bool,
    /// The ETag.
    pub(crate) tag: String,
}

impl Site {
    /// Opens the account that a connection string names.
    pub(crate) fn open(
        connection_string: &str,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        visibility: Duration,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let account = Account::from_connection_string(connection_string)?;
        let settings = Settings {
            clock: Arc::clone(&clock),
            seed: Some(seed),
            ..Settings::default()
        };
        let storage = AzureStorage::open(account, Arc::clone(&transport), settings)?;
        Ok(Site {
            storage: Arc::new(storage),
            tables: Tables::open(connection_string, transport, clock)?,
            visibility,
            seed,
        })
    }

    /// The channel, if there is one.
    pub(crate) async fn channel(&self, name: &str) -> TableResult<Option<Channel>> {
        let found = self.tables.get(CHANNELS, (name, ONLY)).await?;
        Ok(found.map(|(properties, tag)| Channel {
            valid: is_valid(&properties),
            tag,
        }))
    }

    /// Messages in the queue, hidden ones included.
    pub(crate) async fn waiting(&self) -> PortResult<u64> {
        let cx = CallContext::default();
        let properties = self.storage.queue_properties(&cx, QUEUE).await?;
        Ok(properties.approximate_count)
    }

    pub(crate) fn sender(&self) -> anyhow::Result<Sender> {
        let storage = Arc::clone(&self.storage);
        Ok(Sender::new(
            storage,
            QUEUE,
            Encoding::Text,
            None,
            self.seed,
        )?)
    }

    /// How requests are listened to.
    pub(crate) fn config(&self) -> ListenerConfig {
        ListenerConfig {
            worker: "channels".to_owned(),
            visibility: self.visibility,
            max_dequeue: ATTEMPTS_MAX,
            handler_timeout: ATTEMPT_TIME_MAX,
            retry: vec![Duration::from_secs(1), Duration::from_secs(5)],
            tasks: Tasks { min: 1, max: 2 },
            // A worker takes two channels at a time, and leaves the others to its fellows.
            slots: 1,
            idle: Idle {
                min: Duration::from_millis(50),
                max: Duration::from_secs(1),
            },
            ..ListenerConfig::new(QUEUE)
        }
    }
}

/// A channel's entity.
pub(crate) fn channel_row(name: &str, valid: bool) -> Row {
    row(json!({ "PartitionKey": name, "RowKey": ONLY, "Valid": valid }))
}

/// Whether the entity is of a channel that blogs may be written into.
pub(crate) fn is_valid(channel: &Row) -> bool {
    channel.get("Valid").and_then(Json::as_bool) == Some(true)
}
