//! Queues and their messages.

use std::sync::Arc;
use std::time::Duration;

use azure_core::http::pager::PagerOptions;
use azure_core::http::{RequestContent, XmlFormat};
use azure_core::time::OffsetDateTime;
use azure_storage_queue::QueueClient;
use azure_storage_queue::models::{
    PeekedMessage, QueueClientClearOptions, QueueClientCreateOptions,
    QueueClientDeleteMessageOptions, QueueClientDeleteOptions, QueueClientGetPropertiesOptions,
    QueueClientPeekMessagesOptions, QueueClientReceiveMessagesOptions,
    QueueClientSendMessageOptions, QueueClientUpdateMessageOptions, QueueMessage as SdkMessage,
    QueueServiceClientListQueuesOptions, ReceivedMessage,
};
use futures_util::StreamExt;
use smalt_protocol::{Timestamp, limits};

use super::AzureStorage;
use super::answer::{Answer, time};
use crate::error::{ErrorKind, PortError};
use crate::policy::{Call, Repeat, context, options};
use crate::port::{
    CallContext, MessageTtl, PortResult, QueueMessage, QueueMessages, QueueProperties, Receipt,
};

/// Maximum number of clear requests before the call gives up. Each removes as many messages as the
/// service can within its own timeout (Q16).
const CLEAR_ROUNDS_MAX: u32 = 100;

/// "Never expires" in responses: 9999-12-31T23:59:59Z.
const NEVER_S: u64 = 253_402_300_799;

impl AzureStorage {
    pub(super) async fn make_queue(&self, cx: &CallContext, queue: &str) -> PortResult<bool> {
        let (call, client) = self.on_queue("Create Queue", Repeat::Idempotent, cx, queue)?;
        let asked = QueueClientCreateOptions {
            method_options: options(&call),
            ..Default::default()
        };
        match call.check(client.create(Some(asked)).await) {
            // The queue exists with other metadata.
            Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
            Ok(response) => Ok(u16::from(response.status()) == 201),
        }
    }

    pub(super) async fn queue_names(
        &self,
        cx: &CallContext,
        prefix: &str,
    ) -> PortResult<Vec<String>> {
        let (call, service) = self.on_queues("List Queues", Repeat::Read, cx)?;
        let asked = QueueServiceClientListQueuesOptions {
            prefix: Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty()),
            method_options: PagerOptions {
                context: context(&call),
                ..Default::default()
            },
            ..Default::default()
        };
        let listed = service.list_queues(Some(asked));
        let mut names = Vec::new();
        let mut queues = std::pin::pin!(call.check(listed)?);
        while let Some(queue) = queues.next().await {
            names.extend(call.check(queue)?.name);
        }
        Ok(names)
    }

    /// Delete Queue, with all messages.
    pub async fn delete_queue(&self, cx: &CallContext, queue: &str) -> PortResult<()> {
        let (call, client) = self.on_queue("Delete Queue", Repeat::Removal, cx, queue)?;
        let asked = QueueClientDeleteOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let removed = client.delete(Some(asked)).await;
        call.removed(removed, |error| error.kind == ErrorKind::NotFound)
    }

    pub(super) async fn queue_facts(
        &self,
        cx: &CallContext,
        queue: &str,
    ) -> PortResult<QueueProperties> {
        let (call, client) = self.on_queue("Get Queue Metadata", Repeat::Read, cx, queue)?;
        let asked = QueueClientGetPropertiesOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.get_properties(Some(asked)).await)?;
        let answer = Answer::read(response.headers());
        let count = answer
            .approximate_count
            .and_then(|count| count.parse().ok());
        Ok(QueueProperties {
            approximate_count: count.ok_or_else(|| call.unreadable("no count"))?,
            metadata: answer.metadata,
        })
    }

    pub(super) async fn put_text(
        &self,
        cx: &CallContext,
        queue: &str,
        text: &str,
        ttl: MessageTtl,
        visibility_timeout: Duration,
    ) -> PortResult<Receipt> {
        let (call, client) = self.on_queue("Put Message", Repeat::Never, cx, queue)?;
        let ttl_s = match ttl {
            MessageTtl::Never => -1,
            MessageTtl::After(ttl) => seconds(&call, ttl, 1, i32::MAX)?,
        };
        let asked = QueueClientSendMessageOptions {
            message_time_to_live: Some(ttl_s),
            visibility_timeout: Some(hiding(&call, visibility_timeout, 0)?),
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(
            client
                .send_message(document(&call, text)?, Some(asked))
                .await,
        )?;
        let list = call.check(response.into_model())?;
        let sent = call.check(list.into_message())?;
        match (sent.message_id, sent.pop_receipt, sent.time_next_visible) {
            (Some(id), Some(pop_receipt), Some(next_visible)) => Ok(Receipt {
                id,
                pop_receipt,
                next_visible: timestamp(next_visible),
            }),
            _ => Err(call.unreadable("a message without id, receipt or time")),
        }
    }

    pub(super) async fn take(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
        visibility_timeout: Duration,
    ) -> PortResult<QueueMessages> {
        // A lost response only hides messages for a while, so the call may be repeated.
        let (call, client) = self.on_queue("Get Messages", Repeat::Read, cx, queue)?;
        let asked = QueueClientReceiveMessagesOptions {
            number_of_messages: Some(batch(&call, count)?),
            visibility_timeout: Some(hiding(&call, visibility_timeout, 1)?),
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.receive_messages(Some(asked)).await)?;
        let server_time = Answer::read(response.headers()).server_time(&call)?;
        let list = call.check(response.into_model())?;
        let read = |message| taken(&call, message);
        all(list.items.unwrap_or_default(), read, server_time)
    }

    pub(super) async fn peek(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
    ) -> PortResult<QueueMessages> {
        let (call, client) = self.on_queue("Peek Messages", Repeat::Read, cx, queue)?;
        let asked = QueueClientPeekMessagesOptions {
            number_of_messages: Some(batch(&call, count)?),
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.peek_messages(Some(asked)).await)?;
        let server_time = Answer::read(response.headers()).server_time(&call)?;
        let list = call.check(response.into_model())?;
        let read = |message| peeked(&call, message);
        all(list.items.unwrap_or_default(), read, server_time)
    }

    /// The pop receipt acts as a condition: after an unanswered attempt, a mismatch may be caused
    /// by that attempt.
    pub(super) async fn update(
        &self,
        cx: &CallContext,
        queue: &str,
        message: (&str, &str),
        visibility_timeout: Duration,
        text: Option<&str>,
    ) -> PortResult<Receipt> {
        let (call, client) = self.on_queue("Update Message", Repeat::Conditional, cx, queue)?;
        let (id, pop_receipt) = check_message(&call, message)?;
        let hidden_s = hiding(&call, visibility_timeout, 0)?;
        let asked = QueueClientUpdateMessageOptions {
            queue_message: text.map(|text| document(&call, text)).transpose()?,
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(
            client
                .update_message(id, pop_receipt, hidden_s, Some(asked))
                .await,
        )?;
        let answer = Answer::read(response.headers());
        let receipt = answer
            .pop_receipt
            .ok_or_else(|| call.unreadable("no receipt"))?;
        Ok(Receipt {
            id: id.to_owned(),
            pop_receipt: receipt.to_owned(),
            next_visible: time(&call, "x-ms-time-next-visible", answer.next_visible)?,
        })
    }

    pub(super) async fn remove(
        &self,
        cx: &CallContext,
        queue: &str,
        message: (&str, &str),
    ) -> PortResult<()> {
        let (call, client) = self.on_queue("Delete Message", Repeat::Removal, cx, queue)?;
        let (id, pop_receipt) = check_message(&call, message)?;
        let asked = QueueClientDeleteMessageOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let removed = client.delete_message(id, pop_receipt, Some(asked)).await;
        call.removed(removed, |error| error.kind == ErrorKind::NotFound)
    }

    /// Repeats the request while the service reports that it could not finish within its timeout
    /// (Q16).
    pub(super) async fn clear(&self, cx: &CallContext, queue: &str) -> PortResult<()> {
        let mut rounds = 0;
        loop {
            let (call, client) = self.on_queue("Clear Messages", Repeat::Idempotent, cx, queue)?;
            let Err(error) = clear_once(&call, &client).await else {
                return Ok(());
            };
            rounds += 1;
            let unfinished = error.code.as_deref() == Some("OperationTimedOut");
            if !unfinished || rounds == CLEAR_ROUNDS_MAX {
                return Err(error);
            }
        }
    }
}

async fn clear_once(call: &Arc<Call>, client: &QueueClient) -> PortResult<()> {
    let asked = QueueClientClearOptions {
        method_options: options(call),
        ..Default::default()
    };
    let cleared = client.clear(Some(asked)).await;
    call.check(cleared.map(drop))
}

fn batch(call: &Call, count: u32) -> Result<i32, PortError> {
    let count = i64::from(count);
    let permitted = limits::DEQUEUE_COUNT.contains(&count);
    let count = i32::try_from(count).ok().filter(|_| permitted);
    count.ok_or_else(|| call.invalid("the number of messages must be 1 to 32"))
}

/// Converts a visibility timeout to seconds; at most seven days.
fn hiding(call: &Call, timeout: Duration, least_s: i32) -> Result<i32, PortError> {
    let most_s = i32::try_from(*limits::VISIBILITY_GET_S.end()).unwrap_or(i32::MAX);
    seconds(call, timeout, least_s, most_s)
}

/// Converts to whole seconds, rounded up so that nothing becomes visible or expires early.
fn seconds(call: &Call, time: Duration, least: i32, most: i32) -> Result<i32, PortError> {
    let whole = time
        .as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0));
    let whole = i32::try_from(whole)
        .ok()
        .filter(|s| (least..=most).contains(s));
    whole.ok_or_else(|| call.invalid(&format!("{time:?} is not within {least} to {most} s")))
}

fn check_message<'a>(
    call: &Call,
    (id, receipt): (&'a str, &'a str),
) -> Result<(&'a str, &'a str), PortError> {
    // The SDK adds the id to the path without escaping it.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if id.is_empty() || !id.bytes().all(plain) {
        return Err(call.invalid("not a message id"));
    }
    if receipt.is_empty() {
        return Err(call.invalid("the message has no pop receipt"));
    }
    Ok((id, receipt))
}

/// Builds the XML document of a message. The SDK does not escape a carriage return, which XML
/// parsers convert to a line feed.
fn document(call: &Call, text: &str) -> Result<RequestContent<SdkMessage, XmlFormat>, PortError> {
    if text.len() > limits::MESSAGE_TEXT_BYTES_MAX {
        return Err(call.invalid("the text has more than 64 KiB"));
    }
    let mut xml = String::with_capacity(text.len() + 96);
    xml.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>");
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '\r' => xml.push_str("&#xD;"),
            '\t' | '\n' => xml.push(c),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                return Err(call.invalid(&format!("a message cannot contain {c:?}; encode it")));
            }
            _ => xml.push(c),
        }
    }
    xml.push_str("</MessageText></QueueMessage>");
    Ok(RequestContent::from(xml.into_bytes()))
}

/// Converts every message of a response, or returns the first error.
fn all<M>(
    items: Vec<M>,
    read: impl Fn(M) -> PortResult<QueueMessage>,
    server_time: Timestamp,
) -> PortResult<QueueMessages> {
    Ok(QueueMessages {
        messages: items.into_iter().map(read).collect::<PortResult<_>>()?,
        server_time,
    })
}

fn taken(call: &Call, message: ReceivedMessage) -> Result<QueueMessage, PortError> {
    let incomplete = || call.unreadable("an incomplete message");
    let ReceivedMessage {
        message_id: Some(id),
        pop_receipt: Some(pop_receipt),
        insertion_time: Some(inserted),
        expiration_time: Some(expires),
        time_next_visible: Some(next_visible),
        dequeue_count: Some(dequeue_count),
        message_text,
        ..
    } = message
    else {
        return Err(incomplete());
    };
    Ok(QueueMessage {
        id,
        pop_receipt,
        inserted: timestamp(inserted),
        expires: expiry(timestamp(expires)),
        next_visible: Some(timestamp(next_visible)),
        dequeue_count: u32::try_from(dequeue_count).map_err(|_| incomplete())?,
        text: message_text.unwrap_or_default(),
    })
}

fn peeked(call: &Call, message: PeekedMessage) -> Result<QueueMessage, PortError> {
    let incomplete = || call.unreadable("an incomplete message");
    let PeekedMessage {
        message_id: Some(id),
        insertion_time: Some(inserted),
        expiration_time: Some(expires),
        dequeue_count: Some(dequeue_count),
        message_text,
        ..
    } = message
    else {
        return Err(incomplete());
    };
    Ok(QueueMessage {
        id,
        pop_receipt: String::new(),
        inserted: timestamp(inserted),
        expires: expiry(timestamp(expires)),
        next_visible: None,
        dequeue_count: u32::try_from(dequeue_count).map_err(|_| incomplete())?,
        text: message_text.unwrap_or_default(),
    })
}

fn expiry(told: Timestamp) -> Timestamp {
    if told >= Timestamp::from_unix_s(NEVER_S) {
        Timestamp::MAX
    } else {
        told
    }
}

/// Converts a time of the SDK; times before 1970 do not occur.
fn timestamp(time: OffsetDateTime) -> Timestamp {
    u64::try_from(time.unix_timestamp()).map_or(Timestamp::MIN, Timestamp::from_unix_s)
}
