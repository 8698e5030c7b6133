//! What the clients of a burst have seen, numbered in the order in which any of them saw it.

use smalt_model::vocabulary::tables::RowId;
use smalt_model::vocabulary::{
    ContainerOperation, MessageId, Operation, PathOperation, QueueOperation, Receipt, Tag,
};

use crate::histories::documents::{self, Blob, Entry};
use crate::histories::names::Names;
use crate::histories::run::Answered;

/// Everything that answers have shown so far.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The values behind the numbers.
    pub names: Names,
    /// Messages with the receipts in the same answers, oldest first.
    pub shown: Vec<(MessageId, Receipt)>,
    /// Entities with the ETags in the same answers, oldest first.
    pub entities: Vec<(RowId, Tag)>,
}

impl Known {
    /// Number of ETags seen; every smaller number is a seen ETag.
    pub fn tags(&self) -> u32 {
        u32::try_from(self.names.tags_seen()).unwrap_or(u32::MAX)
    }

    /// Number of lease ids, including those that clients chose.
    pub fn leases(&self) -> u32 {
        u32::try_from(self.names.leases_seen()).unwrap_or(u32::MAX)
    }

    /// Records the values in an answer.
    pub fn learn(&mut self, operation: &Operation, answered: &Answered) -> Result<(), String> {
        if let (Operation::Table(_, operation), Some(seen)) = (operation, &answered.table) {
            for (id, tag) in operation.rows().iter().zip(&seen.tags) {
                tag.iter().for_each(|text| self.entity(id, text));
            }
            seen.rows
                .iter()
                .for_each(|(id, text, _)| self.entity(id, text));
            return Ok(());
        }
        let answer = &answered.answer;
        if answer.header("x-ms-error-code").is_some() {
            return Ok(());
        }
        if let Some(text) = answer.header("etag") {
            self.names.number_tag(text);
        }
        if let Some(text) = answer.header("x-ms-lease-id") {
            self.names.number_lease(text);
        }
        match operation {
            Operation::Container(_, ContainerOperation::List { .. }) => {
                for entry in &answered.entries {
                    if let Entry::Blob(Blob {
                        tag: Some(text), ..
                    }) = entry
                    {
                        self.names.number_tag(text);
                    }
                }
            }
            Operation::Path(_, PathOperation::List { .. }) => {
                for entry in &answered.entries {
                    if let Entry::Path(path) = entry
                        && let Some(text) = path.tag()
                    {
                        self.names.number_tag(&text);
                    }
                }
            }
            Operation::Queue(_, QueueOperation::Update { id, .. }) => {
                let text = answer.header("x-ms-popreceipt").ok_or("no new receipt")?;
                self.message(*id, text);
            }
            Operation::Queue(
                _,
                QueueOperation::Put { .. }
                | QueueOperation::Receive { .. }
                | QueueOperation::Peek { .. },
            ) => {
                for message in documents::messages(&answer.body)? {
                    let id = self.names.number_message(&message.id);
                    message
                        .receipt
                        .iter()
                        .for_each(|text| self.message(id, text));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, id: MessageId, receipt: &str) {
        let pair = (id, self.names.number_receipt(receipt));
        if !self.shown.contains(&pair) {
            self.shown.push(pair);
        }
    }

    fn entity(&mut self, id: &RowId, tag: &str) {
        let pair = (id.clone(), self.names.number_entity_tag(tag));
        if !self.entities.contains(&pair) {
            self.entities.push(pair);
        }
    }
}
