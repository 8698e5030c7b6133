//! Builds the imported state and counts its contents.

use serde::Serialize;
use smalt_protocol::{Service as ServiceName, Timestamp};

use super::document::Service;
use super::error::AzuriteError;
use crate::keys;
use crate::records::Record as _;
use crate::store::{Stamp, Successor};

/// The counts of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Number of containers.
    pub containers: u64,
    /// Number of blobs, without snapshots.
    pub blobs: u64,
    /// Number of snapshots.
    pub snapshots: u64,
    /// Number of uncommitted blocks.
    pub uncommitted_blocks: u64,
    /// Number of queues.
    pub queues: u64,
    /// Number of messages, without expired ones.
    pub messages: u64,
    /// Number of tables.
    pub tables: u64,
    /// Number of entities.
    pub entities: u64,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} containers, {} blobs, {} snapshots, {} uncommitted blocks, {} queues, \
             {} messages, {} tables, {} entities",
            self.containers,
            self.blobs,
            self.snapshots,
            self.uncommitted_blocks,
            self.queues,
            self.messages,
            self.tables,
            self.entities
        )
    }
}

pub(super) struct Build<'a, 'b> {
    pub(super) successor: &'a mut Successor<'b>,
    pub(super) now: Timestamp,
    pub(super) tick: Timestamp,
    pub(super) report: Report,
}

impl<'a, 'b> Build<'a, 'b> {
    pub(super) fn new(successor: &'a mut Successor<'b>, now: Timestamp) -> Self {
        Build {
            successor,
            now,
            tick: now,
            report: Report::default(),
        }
    }

    /// Stores the service properties of each account.
    pub(super) fn services(
        &mut self,
        name: ServiceName,
        services: &[Service],
    ) -> Result<(), AzuriteError> {
        for service in services {
            let key = keys::service(service.account(), name.as_str());
            let properties = service.properties();
            self.successor.transact(|tx| properties.save(tx, key))?;
        }
        Ok(())
    }

    /// Returns a unique tick.
    pub(super) fn tick(&mut self) -> u64 {
        self.tick = self.tick.plus_ticks(1);
        self.tick.ticks()
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            now: self.now,
            tick: self.tick,
        }
    }
}
