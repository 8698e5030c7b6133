//! What the processes share: an account, the names in it, and access to channels.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use smalt_listener::ListenerConfig;
use smalt_listener::config::{Encoding, Idle, Tasks};
use smalt_listener::payload::Sender;
use smalt_sleeve::port::{CallContext, PortResult, Storage};
use smalt_sleeve::{Account, AzureStorage, Clock, Settings, Transport};

use super::tables::{Row, TableResult, Tables, row};

/// Table of channels: PartitionKey is the name, RowKey is empty.
pub(crate) const CHANNELS: &str = "Channels";
/// Table of blogs: PartitionKey is the channel's name, RowKey the creation time in a sortable form.
pub(crate) const BLOGS: &str = "Blogs";
/// Table of the writers' progress: PartitionKey is the writer's name, RowKey is empty.
pub(crate) const WRITERS: &str = "Writers";
/// Queue with the names of channels to delete with their blogs.
pub(crate) const QUEUE: &str = "deletechannelandblogs";

/// RowKey of a partition's only entity.
pub(crate) const ONLY: &str = "";
/// The service counts the receipts of killed workers as attempts, so the limit is far higher than a
/// message needs by itself.
const ATTEMPTS_MAX: u32 = 100;
/// Longest time of one attempt. The next attempt continues with the remaining rows, so this need
/// only be far longer than a page takes.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(3600);

/// The account and names that the processes share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) tables: Tables,
    /// How long the message of a dead worker stays hidden from the others.
    pub(crate) visibility: Duration,
    /// Seed of pauses, different in each process.
    pub(crate) seed: u64,
}

impl Site {
    /// Opens the account of a connection string.
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

    /// Returns whether blogs may be written into a channel; not into a missing one.
    pub(crate) async fn may_write(&self, channel: &str) -> TableResult<bool> {
        let found = self.tables.get(CHANNELS, (channel, ONLY)).await?;
        Ok(found.is_some_and(|(channel, _)| is_valid(&channel)))
    }

    /// Returns the number of messages in the queue, hidden ones included.
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

    /// Returns the settings of the listener for requests.
    pub(crate) fn config(&self) -> ListenerConfig {
        ListenerConfig {
            worker: "channels".to_owned(),
            visibility: self.visibility,
            max_dequeue: ATTEMPTS_MAX,
            handler_timeout: ATTEMPT_TIME_MAX,
            retry: vec![Duration::from_secs(1), Duration::from_secs(5)],
            tasks: Tasks { min: 1, max: 2 },
            // A worker processes two channels at a time and leaves the others to other workers.
            slots: 1,
            idle: Idle {
                min: Duration::from_millis(50),
                max: Duration::from_secs(1),
            },
            ..ListenerConfig::new(QUEUE)
        }
    }
}

/// When every channel was created.
const CREATED_ON: &str = "2026-01-01T00:00:00Z";

/// Returns a channel's entity.
pub(crate) fn channel_row(name: &str, valid: bool) -> Row {
    row(json!({
        "PartitionKey": name,
        "RowKey": ONLY,
        "Owner": format!("owner-of-{name}"),
        "CreatedOn": CREATED_ON,
        "Valid": valid,
    }))
}

/// Returns whether blogs may be written into the channel.
pub(crate) fn is_valid(channel: &Row) -> bool {
    channel.get("Valid").and_then(Json::as_bool) == Some(true)
}
