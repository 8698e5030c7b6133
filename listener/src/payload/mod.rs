//! Large payloads: they travel in a blob, and the message holds a claim check.
//!
//! A [`Sender`] puts bodies into a queue. One that is longer than [`Offload::above_bytes`], or that
//! would not fit into a message, is compressed and put into a blob first; the message then holds
//! its [envelope]. A listener whose configuration has an [`Offload`] gives its handler
//! the payload and deletes the blob after the message.
//!
//! # What is promised
//!
//! - A visible message's payload exists (LS6): its blob is put before it and deleted after it. The
//!   blob's `TimeToLive` lies beyond the message's expiry, so that a sweeper collects what a lost
//!   answer or a crash left behind, and nothing before that. A message that never expires has a
//!   blob without `TimeToLive`. It gets one when its message is about to be deleted, so a listener
//!   that dies between the two deletes leaves it to the sweeper, too; and loses it again if the
//!   message is taken once more. Only a sender that dies between its two puts leaves a blob for
//!   good: nobody could tell it from one whose message waits.
//! - Nothing is read from another container than the configured one, nothing is unpacked beyond the
//!   length that the envelope says, and nothing reaches a handler whose SHA-256 is another.
//! - A message has power over its own payload only. The sender binds the blob to the queue and to a
//!   key that stands in the message alone: whoever writes an envelope without having read the
//!   message does not know it. What does not fit together is neither handed out nor marked nor
//!   deleted, and the message goes to the poison queue. A blob that an earlier release put is bound
//!   by its name, `QUEUE/` and 32 random hexadecimal digits, and by the hash of its content.
//! - A payload that is missing or damaged is looked for again three times, then its message goes to
//!   the poison queue.
//! - On the way to the poison queue, where messages never expire, the blob loses its `TimeToLive`,
//!   under the ETag that was seen; on the way out it gets one again ([`PayloadStore`]).
//!   An ack deletes the very version that was read: so it never takes
//!   the payload from a copy in a poison queue.

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
