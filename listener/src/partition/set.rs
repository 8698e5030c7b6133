//! The set of queues: its map in a blob, read and changed under ETags.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smalt_protocol::{Timestamp, names};
use smalt_sleeve::port::{
    BlobId, CallContext, Conditions, ErrorKind, PortError, PortResult, PutBlob, Storage, Tag,
};
use tokio::time::Instant;

use super::map::{MAX_AGE_MAX_S, Map, PARTITIONS_MAX, queue_name_of};
use crate::config::{ConfigError, queue_name};
use crate::observers::{Observer, Observers};
use crate::payload::SendError;
use crate::report::ListenerError;
use crate::throttle::AccountLimit;

/// Length of the longest map, a hundred names of 63 characters.
const MAP_BYTES_MAX: u64 = 64 * 1024;
/// Attempts at a change while others change the map as well.
const CHANGE_ATTEMPTS: u32 = 10;

/// The settings of a partitioned queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSettings {
    /// Name of the set; its queues are `name-00` and following.
    pub name: String,
    /// Number of queues in the first map. Later only [`Partitions::resize`] changes it.
    pub partitions: u32,
    /// Container of the map, the blob `name.partitions.json`.
    pub container: String,
    /// How long a sender may trust a map that it has read, in whole seconds from 1 s to 1 h.
    pub max_age: Duration,
}

impl PartitionSettings {
    /// Returns the defaults: a map is trusted for a minute.
    pub fn new(name: impl Into<String>, partitions: u32, container: impl Into<String>) -> Self {
        PartitionSettings {
            name: name.into(),
            partitions,
            container: container.into(),
            max_age: Duration::from_secs(60),
        }
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns all invalid settings.
    pub fn faults(&self) -> Vec<ConfigError> {
        let longest = queue_name_of(&self.name, PARTITIONS_MAX - 1);
        let checks = [
            queue_name("partitions.name", &longest),
            check_number(self.partitions),
            check_container(&self.container),
            check_max_age(self.max_age),
        ];
        checks.into_iter().filter_map(Result::err).collect()
    }
}

fn check_container(container: &str) -> Result<(), ConfigError> {
    names::validate_container_name(container).map_err(|_| {
        let problem = format!("`{container}` is not a container name");
        ConfigError::value("partitions.container", problem)
    })
}

fn check_max_age(max_age: Duration) -> Result<(), ConfigError> {
    let seconds = max_age.as_secs();
    if seconds == 0 || seconds > u64::from(MAX_AGE_MAX_S) || max_age.subsec_nanos() > 0 {
        let problem = "must be whole seconds from 1s to 1h";
        return Err(ConfigError::value("partitions.max_age", problem));
    }
    Ok(())
}

fn check_number(partitions: u32) -> Result<(), ConfigError> {
    if (1..=PARTITIONS_MAX).contains(&partitions) {
        return Ok(());
    }
    let problem = format!("{partitions} is not between 1 and {PARTITIONS_MAX}");
    Err(ConfigError::value("partitions", problem))
}

/// An error of a partitioned queue.
#[derive(Debug, thiserror::Error)]
pub enum PartitionError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Storage fails or rejects a request.
    #[error(transparent)]
    Storage(#[from] PortError),
    /// The stored document is not a map that can be followed.
    #[error("the partition map cannot be followed: {0}")]
    Map(String),
    /// The message was not put, or may not have been.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A listener ended with an error, such as a handler that cannot run.
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// Other processes changed the map at every attempt.
    #[error("the partition map changed during every attempt; try again")]
    Contended,
}

/// A map that was read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) map: Map,
    tag: Tag,
    /// When the map was written, by the service's clock.
    modified: Timestamp,
    /// When the map was read, by the service's clock.
    server_time: Timestamp,
    /// When the map was requested, by the local clock.
    pub(crate) asked: Instant,
}

impl Read {
    /// Returns whether a message put by now counts as sent.
    pub(crate) fn is_trusted(&self) -> bool {
        self.asked.elapsed() < self.map.max_age()
    }
}

/// A partitioned queue.
pub struct Partitions {
    storage: Arc<dyn Storage>,
    settings: PartitionSettings,
    account: Option<AccountLimit>,
    observers: Observers,
}

impl Partitions {
    /// Creates the set without any request.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(
        storage: Arc<dyn Storage>,
        settings: PartitionSettings,
    ) -> Result<Self, ConfigError> {
        settings.check()?;
        Ok(Partitions {
            storage,
            settings,
            account: None,
            observers: Observers::default(),
        })
    }

    /// Limits its requests by a limit that others on the account share.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = Some(account);
        self
    }

    /// Adds an observer of the requests about the map; there may be several. The listeners of the
    /// queues have observers of their own.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.add(observer);
        self
    }

    /// Returns whether the daily budget is spent; `false` without a budget.
    pub(crate) fn is_spent(&self) -> bool {
        let account = self.account.as_ref();
        account.is_some_and(AccountLimit::is_spent)
    }

    /// Sends a request when the rate limit allows it, counts it, and reports the result.
    async fn ask<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        if let Some(account) = &self.account {
            account.request().await;
        }
        self.observers.see(operation, call).await
    }

    /// Returns the settings.
    pub fn settings(&self) -> &PartitionSettings {
        &self.settings
    }

    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Returns the current map, and creates it if there is none.
    ///
    /// # Errors
    /// Storage fails, or the map cannot be followed.
    pub async fn map(&self) -> Result<Map, PartitionError> {
        Ok(self.read().await?.map)
    }

    /// Returns the current map; `None` if there is none.
    ///
    /// # Errors
    /// Storage fails, or the map cannot be followed.
    pub async fn known_map(&self) -> Result<Option<Map>, PartitionError> {
        Ok(self.look().await?.map(|read| read.map))
    }

    /// Changes the number of queues and returns the new map. Queues that are no longer written
    /// drain; [`Partitions::retire`] drops them when they are empty.
    ///
    /// # Errors
    /// Storage fails, or the number is invalid. After a write without an answer, the map shows
    /// whether it was made.
    pub async fn resize(&self, partitions: u32) -> Result<Map, PartitionError> {
        check_number(partitions)?;
        for _ in 0..CHANGE_ATTEMPTS {
            let read = self.read().await?;
            let Some(next) = read.map.resized(partitions) else {
                return Ok(read.map);
            };
            // The queues exist before any process looks for them.
            self.create_queues(&next).await?;
            if self.write(&next, Conditions::matching(&read.tag)).await? {
                return Ok(next);
            }
        }
        Err(PartitionError::Contended)
    }

    /// Drops the draining queues that are empty, once every sender knows that they drain. Returns
    /// their names. The queues themselves remain for their owner to delete.
    ///
    /// # Errors
    /// Storage fails, or the map cannot be followed.
    pub async fn retire(&self) -> Result<Vec<String>, PartitionError> {
        let read = self.read().await?;
        let is_settled = read.map.is_settled(read.modified, read.server_time);
        if read.map.draining.is_empty() || !is_settled {
            return Ok(Vec::new());
        }
        let mut empty = Vec::new();
        for queue in &read.map.draining {
            if self.is_empty(queue).await? {
                empty.push(queue.clone());
            }
        }
        let Some(next) = read.map.without(&empty) else {
            return Ok(Vec::new());
        };
        // Refused if another process changed the map, which may have made one of the queues
        // current.
        let written = self.write(&next, Conditions::matching(&read.tag)).await?;
        Ok(if written { empty } else { Vec::new() })
    }

    /// The service's count is never too low, and includes received messages.
    async fn is_empty(&self, queue: &str) -> Result<bool, PartitionError> {
        Ok(self.count(queue).await?.unwrap_or(0) == 0)
    }

    async fn exists(&self, queue: &str) -> Result<bool, PartitionError> {
        Ok(self.count(queue).await?.is_some())
    }

    /// Returns the number of messages in a queue; `None` if it does not exist.
    async fn count(&self, queue: &str) -> Result<Option<u64>, PartitionError> {
        let cx = CallContext::housekeeping();
        let call = self.storage.queue_properties(&cx, queue);
        match self.ask("Get Queue Metadata", call).await {
            Ok(properties) => Ok(Some(properties.approximate_count)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the map, and creates it if there is none.
    pub(crate) async fn read(&self) -> Result<Read, PartitionError> {
        for _ in 0..CHANGE_ATTEMPTS {
            if let Some(read) = self.look().await? {
                return Ok(read);
            }
            self.create().await?;
        }
        Err(PartitionError::Contended)
    }

    async fn look(&self) -> Result<Option<Read>, PartitionError> {
        let (cx, blob) = (CallContext::housekeeping(), self.blob());
        let call = async {
            // Trust counts from the time of the request.
            let asked = Instant::now();
            let got = self.storage.get_blob(&cx, &blob, MAP_BYTES_MAX).await?;
            Ok((asked, got))
        };
        let (asked, got) = match self.ask("Get Blob", call).await {
            Ok(answer) => answer,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let map = Map::parse(&got.content, &self.settings.name).map_err(PartitionError::Map)?;
        Ok(Some(Read {
            map,
            tag: got.properties.etag,
            modified: got.properties.last_modified,
            server_time: got.server_time,
            asked,
        }))
    }

    async fn create(&self) -> Result<(), PartitionError> {
        let PartitionSettings {
            name, partitions, ..
        } = &self.settings;
        // Checked to be at most an hour.
        let max_age_s = u32::try_from(self.settings.max_age.as_secs()).unwrap_or(MAX_AGE_MAX_S);
        let first = Map::first(name, *partitions, max_age_s, self.exists(name).await?);
        self.create_queues(&first).await?;
        let (cx, container) = (CallContext::housekeeping(), &self.settings.container);
        let call = self.storage.create_container(&cx, container);
        self.ask("Create Container", call).await?;
        self.write(&first, Conditions::absent()).await.map(|_| ())
    }

    async fn create_queues(&self, map: &Map) -> Result<(), PartitionError> {
        for queue in map.current() {
            let cx = CallContext::housekeeping();
            let call = self.storage.create_queue(&cx, &queue);
            self.ask("Create Queue", call).await?;
        }
        Ok(())
    }

    /// Writes a map; returns `false` if the conditions are not met. If the answer is lost, the
    /// caller reads the map again.
    async fn write(&self, map: &Map, conditions: Conditions) -> Result<bool, PartitionError> {
        let put = PutBlob {
            content_type: Some("application/json".to_owned()),
            conditions,
            ..PutBlob::default()
        };
        let (cx, blob) = (CallContext::housekeeping(), self.blob());
        let document = Bytes::from(map.document());
        let call = self.storage.put_blob(&cx, &blob, document, &put);
        match self.ask("Put Blob", call).await {
            Ok(_) => Ok(true),
            Err(error) => match error.kind {
                ErrorKind::ConditionNotMet
                | ErrorKind::AlreadyExists
                | ErrorKind::OutcomeUnknown => Ok(false),
                _ => Err(error.into()),
            },
        }
    }

    fn blob(&self) -> BlobId {
        let name = format!("{}.partitions.json", self.settings.name);
        BlobId::new(&self.settings.container, name)
    }
}
