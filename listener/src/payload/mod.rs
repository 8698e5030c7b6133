//! Large payloads: the payload is stored in a blob, and the message holds a claim check.
//!
//! A [`Sender`] puts bodies into a queue. A body that is longer than [`Offload::above_bytes`], or
//! that would not fit into a message, is first compressed and put into a blob; the message then
//! holds its [envelope]. A listener whose configuration has an [`Offload`] passes the payload to
//! its handler and deletes the blob after the message.
//!
//! # What is promised
//!
//! - The payload of a visible message exists (LS6): its blob is put before it and deleted after it.
//!   The blob's `TimeToLive` is later than the message's expiry, so that a sweeper collects blobs
//!   that a lost answer or a crash left behind, but none earlier. A message that never expires has
//!   a blob without `TimeToLive`. The blob gets one when its message is about to be deleted, so
//!   that the sweeper also collects the blob of a listener that dies between the two deletes, and
//!   loses it again if the message is received once more. Only a sender that dies between its two
//!   puts leaves a blob forever, because it looks like one whose message is waiting.
//! - Payloads are read only from the configured container, never unpacked beyond the length in the
//!   envelope, and passed to a handler only if their SHA-256 matches.
//! - A message can affect only its own payload. The sender binds the blob to the queue and to a key
//!   that only the message contains: nobody who has not read the message can write its envelope. If
//!   blob and message do not match, the payload is not returned, marked or deleted, and the message
//!   goes to the poison queue. A blob that an earlier release put is bound by its name, `QUEUE/`
//!   and 32 random hexadecimal digits, and by the hash of its content.
//! - A missing or damaged payload is searched for three more times; then its message goes to the
//!   poison queue.
//! - When a message goes to the poison queue, where messages never expire, its blob loses its
//!   `TimeToLive`, under the ETag that was read; when the message leaves it, the blob gets one
//!   again ([`PayloadStore`]). An acknowledgement deletes exactly the version that was read, so
//!   that it never takes the payload from a copy in a poison queue.

mod binding;
mod claimed;
pub mod codec;
pub mod envelope;
mod sender;
mod settings;
mod store;

pub(crate) use claimed::{Claimed, Opened};
pub use codec::Compression;
pub use sender::{SendError, SendOptions, Sender, Sent};
pub use settings::{Offload, OffloadLayer, PAYLOAD_BYTES_MAX};
pub use store::{PayloadStore, TTL_KEY};
