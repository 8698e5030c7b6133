//! Put Message: adds a message to the back of a queue.
//!
//! Source: "Put Message". Since 2016-05-31 the response has the message's record; before, its body
//! is empty.
//!
//! ```http
//! POST /devstoreaccount1/orders/messages?messagettl=3600
//!
//! <QueueMessage><MessageText>hello</MessageText></QueueMessage>
//!
//! 201 Created
//! ```
//!
//! Versions before 2009-09-19 also accept the bare bytes of a message by PUT, as in the first
//! description of the service: arbitrary bytes, which are returned in Base64.
//!
//! ```http
//! PUT /devstoreaccount1/orders/messages?messagettl=3600
//! x-ms-version: 2009-07-17
//!
//! 201 Created
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::Method;
use md5::{Digest as _, Md5};
use smalt_protocol::limits::{
    MESSAGE_BODY_BYTES_MAX, MESSAGE_TTL_INFINITE, MESSAGE_TTL_S, MESSAGE_TTL_S_BEFORE_2017,
    MESSAGE_TTL_S_DEFAULT, VISIBILITY_PUT_S,
};
use smalt_protocol::xml::read_queue_message;
use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};
use uuid::Uuid;

use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::blob::headers::{check_md5, parse_md5};
use crate::ops::queue::id;
use crate::ops::queue::messages::{Message, NewText};
use crate::ops::queue::name::QueueName;
use crate::ops::queue::parameters::{check_length, seconds};
use crate::ops::queue::render;
use crate::records::{MessageRecord, QueueRecord};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Put Message operation.
pub struct PutMessage {
    name: QueueName,
    random: Uuid,
    version: ApiVersion,
    ttl_s: i64,
    visibility_timeout_s: i64,
    /// Whether the message gets a random place among those of the same time.
    shuffled: bool,
    text: NewText,
    /// `Some` if the body is the message itself and not a document, with its `Content-MD5`, if any.
    bare: Option<Option<[u8; 16]>>,
}

impl Write for PutMessage {
    type Checked = QueueRecord;
    type Output = Message;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let ttl_s = time_to_live_s(call)?;
        let visibility_timeout_s = visibility_timeout_s(call)?;
        // "The visibility timeout of a message cannot be set to a value later than the expiry."
        if ttl_s != MESSAGE_TTL_INFINITE && visibility_timeout_s >= ttl_s {
            let value = visibility_timeout_s.to_string();
            let reason = "messagettl must be greater than visibilitytimeout.";
            return Err(StorageError::invalid_query(
                "visibilitytimeout",
                &value,
                reason,
            ));
        }
        Ok(PutMessage {
            name: QueueName::of(call)?,
            random: call.fresh_id,
            version: call.version,
            ttl_s,
            visibility_timeout_s,
            shuffled: call.shuffle_messages,
            text: NewText::Inline(String::new()),
            bare: bare(call)?,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(MESSAGE_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        let text = match self.bare {
            Some(md5) => {
                md5.map_or(Ok(()), |md5| check_md5(md5, Md5::digest(&document).into()))?;
                check_length(document.len(), self.version)?;
                BASE64.encode(&document)
            }
            None => {
                let text = read_queue_message(&document)?;
                check_length(text.len(), self.version)?;
                text
            }
        };
        self.text = NewText::Inline(text);
        Ok(())
    }

    fn spill(&mut self) -> Option<Bytes> {
        self.text.spill()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.text = NewText::staged(received);
        Ok(())
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<QueueRecord, StorageError> {
        self.name.find(view)
    }

    fn apply(
        self,
        queue: QueueRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Message, StorageError> {
        let expires = match self.ttl_s {
            MESSAGE_TTL_INFINITE => Timestamp::MAX,
            ttl_s => stamp.now.plus_s(ttl_s.unsigned_abs()),
        };
        let tick = stamp.tick.ticks();
        let sequence = if self.shuffled {
            // Random, and as unlikely to collide as an id.
            self.random.as_u64_pair().0
        } else {
            tick
        };
        let message = Message {
            id: id::rising(tick, self.random),
            record: MessageRecord {
                inserted: stamp.now,
                expires,
                visible: stamp.now.plus_s(self.visibility_timeout_s.unsigned_abs()),
                sequence,
                place: sequence,
                receipt: tick,
                dequeue_count: 0,
                text: self.text.adopt(tx)?,
            },
        };
        message.insert(tx, queue.generation)?;
        Ok(message)
    }

    fn render(message: Message, call: &Call) -> Result<Reply, StorageError> {
        if call.version < ApiVersion::V2016_05_31 {
            return Ok(Reply::new(201));
        }
        Ok(render::put(&message, call))
    }
}

/// Returns `Some` if the body is the message itself, with the MD5 that the request gives.
fn bare(call: &Call) -> Result<Option<Option<[u8; 16]>>, StorageError> {
    if call.method != Method::PUT {
        return Ok(None);
    }
    call.header("content-md5")?
        .map(parse_md5)
        .transpose()
        .map(Some)
}

/// Parses the visibility timeout, which only versions from 2011-08-18 on have for a put. *Put
/// Message*, `visibilitytimeout`.
fn visibility_timeout_s(call: &Call) -> Result<i64, StorageError> {
    let name = "visibilitytimeout";
    match call.query(name) {
        Some(value) if call.version < ApiVersion::V2011_08_18 => {
            let refused = StorageError::new(ErrorCode::UnsupportedQueryParameter);
            Err(refused
                .with_element("QueryParameterName", name)
                .with_element("QueryParameterValue", value))
        }
        _ => Ok(seconds(call, name, VISIBILITY_PUT_S)?.unwrap_or(0)),
    }
}

fn time_to_live_s(call: &Call) -> Result<i64, StorageError> {
    let name = "messagettl";
    if call.version < ApiVersion::V2017_07_29 {
        return Ok(seconds(call, name, MESSAGE_TTL_S_BEFORE_2017)?.unwrap_or(MESSAGE_TTL_S_DEFAULT));
    }
    let any = i64::from(i32::MIN)..=i64::from(i32::MAX);
    let ttl_s = seconds(call, name, any)?.unwrap_or(MESSAGE_TTL_S_DEFAULT);
    // Reported of production (azure-sdk-for-net, issue 15158): a value that is too small is an
    // invalid value, not one out of range.
    if ttl_s != MESSAGE_TTL_INFINITE && !MESSAGE_TTL_S.contains(&ttl_s) {
        let value = ttl_s.to_string();
        return Err(StorageError::invalid_query(name, &value, ""));
    }
    Ok(ttl_s)
}
