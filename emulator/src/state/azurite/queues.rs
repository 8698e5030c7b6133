//! Azurite's queues and messages.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use smalt_protocol::limits::MESSAGE_TEXT_BYTES_MAX;
use smalt_protocol::{Service as ServiceName, Timestamp};
use uuid::Uuid;

use super::AzuriteError;
use super::build::Build;
use super::document::{Pairs, Policy, Service, metadata, policies, time};
use super::extents::{Chunk, Extents};
use super::loki::Database;
use crate::keys;
use crate::ops::queue::messages::{Message, NewText, TEXT_INLINE_BYTES_MAX};
use crate::records::{MessageRecord, MessageText, QueueRecord, Record};

pub(super) struct Queues {
    database: Database,
    services: Vec<Service>,
    queues: Vec<QueueDocument>,
    messages: Vec<MessageDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueDocument {
    account_name: String,
    name: String,
    metadata: Option<Pairs>,
    queue_acl: Option<Vec<Policy>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageDocument {
    account_name: String,
    queue_name: String,
    message_id: String,
    time_next_visible: Value,
    persistency: Chunk,
    insertion_time: String,
    expiration_time: String,
    dequeue_count: u32,
}

impl Queues {
    pub(super) fn read(mut database: Database) -> Result<Self, AzuriteError> {
        let services = database.take("$SERVICES_COLLECTION$")?;
        let queues = database.take("$QUEUES_COLLECTION$")?;
        let messages = database.take("$MESSAGES_COLLECTION$")?;
        database.end()?;
        Ok(Queues {
            database,
            services,
            queues,
            messages,
        })
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.messages.iter().map(|message| &message.persistency)
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = &str> {
        let services = self.services.iter().map(Service::account);
        services.chain(self.queues.iter().map(|queue| queue.account_name.as_str()))
    }

    pub(super) fn build(
        &self,
        build: &mut Build<'_, '_>,
        extents: &mut Extents,
    ) -> Result<(), AzuriteError> {
        build.services(ServiceName::Queue, &self.services)?;
        let mut generations = BTreeMap::new();
        for queue in &self.queues {
            let generation = build.tick();
            let at = |what| self.database.shape(format!("queue {}: {what}", queue.name));
            let record = QueueRecord {
                generation,
                metadata: metadata(queue.metadata.as_ref()).map_err(at)?,
                policies: policies(queue.queue_acl.as_ref()).map_err(at)?,
                deleted_at: None,
                uncounted: false,
            };
            let key = keys::queue(&queue.account_name, &queue.name);
            build.successor.transact(|tx| record.save(tx, key))?;
            generations.insert(
                (queue.account_name.as_str(), queue.name.as_str()),
                generation,
            );
            build.report.queues += 1;
        }
        for message in &self.messages {
            let queue = (message.account_name.as_str(), message.queue_name.as_str());
            // Azurite keeps messages of deleted queues.
            if let Some(generation) = generations.get(&queue) {
                self.message(build, extents, *generation, message)?;
            }
        }
        Ok(())
    }

    fn message(
        &self,
        build: &mut Build<'_, '_>,
        extents: &Extents,
        generation: u64,
        message: &MessageDocument,
    ) -> Result<(), AzuriteError> {
        let at = |what| {
            let of = format!("message {} of {}", message.message_id, message.queue_name);
            self.database.shape(format!("{of}: {what}"))
        };
        let expires = time(&message.expiration_time).map_err(at)?;
        if expires <= build.now {
            return Ok(());
        }
        let id = Uuid::parse_str(&message.message_id);
        let id = id.map_err(|_| at("its id is not a GUID".to_owned()))?;
        if message.persistency.count > MESSAGE_TEXT_BYTES_MAX as u64 {
            return Err(at(format!(
                "its text is too long: {} bytes",
                message.persistency.count
            )));
        }
        let text = String::from_utf8(extents.bytes(&message.persistency)?);
        let text = text.map_err(|_| at("its text is not UTF-8".to_owned()))?;
        let place = build.tick();
        let record = MessageRecord {
            inserted: time(&message.insertion_time).map_err(at)?,
            expires,
            visible: instant(&message.time_next_visible).map_err(at)?,
            sequence: place,
            place,
            receipt: place,
            dequeue_count: message.dequeue_count,
            text: self.text(build, text)?,
        };
        let message = Message { id, record };
        build
            .successor
            .transact(|tx| message.insert(tx, generation))?;
        build.report.messages += 1;
        Ok(())
    }

    fn text(&self, build: &mut Build<'_, '_>, text: String) -> Result<MessageText, AzuriteError> {
        if text.len() <= TEXT_INLINE_BYTES_MAX {
            return Ok(MessageText::Inline(text));
        }
        let mut writer = build.successor.stage(text.len() as u64)?;
        writer.write(text.as_bytes())?;
        let staged = NewText::Staged(writer.end()?, u32::try_from(text.len()).unwrap_or(u32::MAX));
        Ok(build.successor.transact(|tx| staged.adopt(tx))?)
    }
}

/// Parses a time in milliseconds since 1970 or in ISO 8601.
fn instant(value: &Value) -> Result<Timestamp, String> {
    match value {
        Value::String(text) => time(text),
        other => match other.as_u64() {
            Some(ms) => Ok(Timestamp::from_unix(std::time::Duration::from_millis(ms))),
            None => Err(format!("{other} is not a time")),
        },
    }
}
