//! What a client sees of an answer, with numbers in place of what the service made up.

use std::collections::BTreeSet;

use smalt_model::expected::Shown;
use smalt_model::vocabulary::tables::{TableExpected, TableOperation};
use smalt_model::vocabulary::{
    BlobOperation, ContainerOperation, Metadata, Operation, QueueOperation, Receipt,
};
use smalt_model::{Expected, Fact};

use super::pool::Pool;
use crate::histories::check::metadata;
use crate::histories::documents::{self, Entry};
use crate::histories::run::Answered;
use crate::table_histories::answers::{self, Seen};

/// An answer. What it does not show is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Status.
    pub status: u16,
    /// `x-ms-error-code`.
    pub code: Option<String>,
    /// `ETag`.
    pub tag: Option<u32>,
    /// `x-ms-lease-id`.
    pub lease: Option<u32>,
    /// `x-ms-lease-state`.
    pub lease_state: Option<String>,
    /// `x-ms-lease-time`.
    pub lease_time: Option<String>,
    /// User metadata.
    pub metadata: Option<Metadata>,
    /// Index tags.
    pub tags: Option<Metadata>,
    /// Body of a blob.
    pub body: Option<Vec<u8>>,
    /// Length of a blob in bytes.
    pub length: Option<String>,
    /// `x-ms-approximate-messages-count`.
    pub count: Option<String>,
    /// Messages.
    pub messages: Option<Vec<Message>>,
    /// The new receipt of an update.
    pub receipt: Option<u32>,
    /// Blobs of a listing, all pages: name, ETag, length in bytes.
    pub entries: Option<Vec<(String, u32, u64)>>,
    /// What the Table service shows; its code stands above.
    pub table: Option<TableExpected>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Id.
    pub id: u32,
    /// Receipt.
    pub receipt: Option<u32>,
    /// Text.
    pub text: Option<String>,
    /// How often it was given out.
    pub dequeue_count: Option<u32>,
    /// When it can be seen again, in seconds of the Unix epoch.
    pub visible_s: Option<u64>,
}

impl Output {
    /// What an answer of the service shows, numbered by the pool.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(operation: &Operation, answered: &Answered, pool: &mut Pool) -> Result<Self, String> {
        if let (Operation::Table(_, operation), Some(seen)) = (operation, &answered.table) {
            return Self::of_table(operation, seen, pool);
        }
        let answer = &answered.answer;
        let text = |name: &str| answer.header(name).map(str::to_owned);
        let mut output = Output {
            status: answer.status,
            code: text("x-ms-error-code"),
            ..Output::default()
        };
        if output.code.is_some() {
            return Ok(output);
        }
        output.tag = match answer.header("etag") {
            Some(text) => Some(pool.tag(text)?.0),
            None => None,
        };
        output.lease = match answer.header("x-ms-lease-id") {
            Some(text) => Some(pool.lease(text)?.0),
            None => None,
        };
        output.lease_state = text("x-ms-lease-state");
        output.lease_time = text("x-ms-lease-time");
        output.count = text("x-ms-approximate-messages-count");
        output.length = text("content-length");
        output.metadata = Some(metadata(answer));
        output.read_body(operation, answered, pool)?;
        Ok(output)
    }

    fn of_table(operation: &TableOperation, seen: &Seen, pool: &mut Pool) -> Result<Self, String> {
        let number = |id: &_, text: &str| pool.entity(id, text);
        let table = answers::numbered(seen, number, &operation.rows())?;
        Ok(Output {
            status: seen.status,
            code: seen.code.clone(),
            table: Some(table),
            ..Output::default()
        })
    }

    fn read_body(
        &mut self,
        operation: &Operation,
        answered: &Answered,
        pool: &mut Pool,
    ) -> Result<(), String> {
        let answer = &answered.answer;
        match operation {
            Operation::Blob(_, BlobOperation::Get { .. }) => {
                self.body = Some(answer.body.to_vec());
            }
            Operation::Blob(_, BlobOperation::GetTags(_)) => {
                self.tags = Some(documents::tags(&answer.body)?);
            }
            Operation::Container(_, ContainerOperation::List { .. }) => {
                let entries = answered.entries.iter().map(|entry| entry_of(entry, pool));
                self.entries = Some(entries.collect::<Result<_, _>>()?);
            }
            Operation::Queue(_, QueueOperation::Update { id, .. }) => {
                let text = answer.header("x-ms-popreceipt").ok_or("no new receipt")?;
                self.receipt = Some(pool.receipt(*id, text)?.0);
            }
            Operation::Queue(
                _,
                QueueOperation::Put { .. }
                | QueueOperation::Receive { .. }
                | QueueOperation::Peek { .. },
            ) => {
                let messages = documents::messages(&answer.body)?.into_iter();
                let messages = messages.map(|message| Message::of(message, pool));
                self.messages = Some(messages.collect::<Result<_, _>>()?);
            }
            _ => {}
        }
        Ok(())
    }
}

fn entry_of(entry: &Entry, pool: &mut Pool) -> Result<(String, u32, u64), String> {
    if let Entry::Blob(blob) = entry
        && let (None, Some(tag)) = (&blob.snapshot, &blob.tag)
    {
        return Ok((blob.name.clone(), pool.tag(tag)?.0, blob.length));
    }
    Err(format!("{entry:?} was not asked for"))
}

impl Message {
    fn of(shown: documents::Message, pool: &mut Pool) -> Result<Self, String> {
        let id = pool.message(&shown.id)?;
        let receipt = shown.receipt.map(|text| pool.receipt(id, &text));
        Ok(Message {
            id: id.0,
            receipt: receipt.transpose()?.map(|receipt| receipt.0),
            text: shown.text,
            dequeue_count: shown.dequeue_count,
            visible_s: shown.visible_s,
        })
    }
}

/// What the model expects, as a client would see it.
impl From<&Expected> for Output {
    fn from(expected: &Expected) -> Self {
        let mut output = Output {
            status: expected.status,
            code: expected.code.map(|code| code.as_str().to_owned()),
            ..Output::default()
        };
        for fact in &expected.facts {
            match fact {
                Fact::Tag(tag) => output.tag = Some(tag.0),
                Fact::LeaseId(id) => output.lease = Some(id.0),
                Fact::Header("x-ms-lease-state", text) => output.lease_state.clone_from(text),
                Fact::Header("x-ms-lease-time", text) => output.lease_time.clone_from(text),
                Fact::Header("content-length", text) => output.length.clone_from(text),
                Fact::Header("x-ms-approximate-messages-count", text) => {
                    output.count.clone_from(text);
                }
                Fact::Metadata(metadata) => output.metadata = Some(metadata.clone()),
                Fact::Body(body) => output.body = Some(body.clone()),
                Fact::Tags(tags) => output.tags = Some(tags.clone()),
                Fact::Table(table) => {
                    output.table = Some(TableExpected {
                        code: None,
                        ..table.clone()
                    });
                }
                Fact::Receipt(receipt) => output.receipt = Some(receipt.0),
                Fact::Messages(shown) => {
                    output.messages = Some(shown.iter().map(Message::from).collect());
                }
                _ => {}
            }
        }
        output
    }
}

impl From<&Shown> for Message {
    fn from(shown: &Shown) -> Self {
        Message {
            id: shown.id.0,
            receipt: shown.receipt.map(|Receipt(number)| number),
            text: shown.text.clone(),
            dequeue_count: shown.dequeue_count,
            visible_s: shown.visible_s,
        }
    }
}

/// Numbers of one history that its answers show as made by their calls, each by one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// ETags.
    pub tags: BTreeSet<u32>,
    /// Message ids.
    pub messages: BTreeSet<u32>,
    /// Receipts.
    pub receipts: BTreeSet<u32>,
}

impl Made {
    /// Adds what an operation made when it was answered like this.
    ///
    /// # Errors
    /// When something else made it before.
    pub fn add(&mut self, operation: &Operation, seen: &Output) -> Result<(), String> {
        if seen.code.is_some() {
            return Ok(());
        }
        let once = |set: &mut BTreeSet<u32>, what: &str, number: Option<u32>| match number {
            Some(number) if !set.insert(number) => Err(format!("{what} {number} was made twice")),
            _ => Ok(()),
        };
        let messages = seen.messages.as_deref().unwrap_or_default();
        match operation {
            Operation::Table(_, TableOperation::Change(_) | TableOperation::Batch(_)) => {
                let tags = seen
                    .table
                    .iter()
                    .flat_map(|table| table.tags.iter().flatten());
                // One commit has one tag for all that it writes.
                let mut tags = tags.collect::<BTreeSet<_>>().into_iter();
                tags.try_for_each(|tag| once(&mut self.tags, "ETag", Some(tag.0)))
            }
            Operation::Blob(_, BlobOperation::Put(..) | BlobOperation::SetMetadata(..))
            | Operation::Container(
                _,
                ContainerOperation::Create(_) | ContainerOperation::SetMetadata(..),
            ) => once(&mut self.tags, "ETag", seen.tag),
            Operation::Queue(_, QueueOperation::Put { .. }) => {
                let id = messages.first().map(|message| message.id);
                once(&mut self.messages, "message", id)?;
                let receipt = messages.first().and_then(|message| message.receipt);
                once(&mut self.receipts, "receipt", receipt)
            }
            Operation::Queue(_, QueueOperation::Receive { .. }) => {
                // One answer has one receipt for all of its messages.
                let receipts = messages.iter().map(|message| message.receipt);
                let mut receipts = receipts.collect::<BTreeSet<_>>().into_iter();
                receipts.try_for_each(|receipt| once(&mut self.receipts, "receipt", receipt))
            }
            Operation::Queue(_, QueueOperation::Update { .. }) => {
                once(&mut self.receipts, "receipt", seen.receipt)
            }
            _ => Ok(()),
        }
    }
}
