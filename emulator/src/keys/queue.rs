//! Keys of queues and their messages.

use smalt_protocol::Timestamp;

use super::{EXPIRY, Generation, MESSAGE, MESSAGE_COUNT, QUEUE, VISIBLE, key};

/// Returns the key of a queue. With an empty name, returns where the account's queues start.
pub fn queue(account: &str, name: &str) -> Vec<u8> {
    key(QUEUE, &[account.as_bytes(), &[0], name.as_bytes()])
}

/// Returns the key of a message.
pub fn message(generation: Generation, id: &[u8; 16]) -> Vec<u8> {
    key(MESSAGE, &[&generation.to_be_bytes(), id])
}

/// Returns the key of a message in delivery order.
pub fn visible(generation: Generation, at: Timestamp, sequence: u64) -> Vec<u8> {
    ordered(VISIBLE, generation, at, sequence)
}

/// Returns the key of a message in expiry order.
pub fn expiry(generation: Generation, at: Timestamp, sequence: u64) -> Vec<u8> {
    ordered(EXPIRY, generation, at, sequence)
}

fn ordered(prefix: u8, generation: Generation, at: Timestamp, sequence: u64) -> Vec<u8> {
    key(
        prefix,
        &[
            &generation.to_be_bytes(),
            &at.ticks().to_be_bytes(),
            &sequence.to_be_bytes(),
        ],
    )
}

/// Returns the key of the number of messages of a queue.
pub fn message_count(generation: Generation) -> Vec<u8> {
    key(MESSAGE_COUNT, &[&generation.to_be_bytes()])
}
