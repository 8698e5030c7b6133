//! A message in the hands of a listener.

use smalt_listener::Outcome;
use smalt_protocol::Timestamp;

use super::message::{Taken, never_expires};
use crate::scenario::history::{Event, Exchange};

/// One message that one life has.
pub(super) struct Owner {
    pub(super) actor: String,
    pub(super) id: String,
    pub(super) count: u32,
    pub(super) got_at: Timestamp,
    pub(super) until: Timestamp,
    pub(super) expires: Option<Timestamp>,
    pub(super) receipt: String,
    pub(super) started: Option<Timestamp>,
    pub(super) ended: Option<(Timestamp, &'static str)>,
    /// When the life learned that it has lost the message, or deleted it.
    pub(super) lost: Option<Timestamp>,
    /// When it last asked for more time.
    pub(super) asked: Timestamp,
    /// The last visibility timeout in seconds that it asked for.
    pub(super) hidden_s: Option<u64>,
    pub(super) deletes: u32,
    /// Number of its deletes that a busy service refused.
    pub(super) refused: u32,
    /// Whether it knows that its copy is in the poison queue.
    pub(super) copied: bool,
    /// Whether the service has executed its delete, its retry or its release.
    pub(super) deleted: bool,
    /// Whether a request of its own with this receipt may have been executed without its knowledge:
    /// then a mismatch does not prove that it has lost the message.
    pub(super) unsure: bool,
    /// Whether it learned that the message is deleted from a 404 or a mismatch.
    pub(super) told_late: bool,
    /// Whether its last update or delete failed, or lost its answer.
    pub(super) failed: bool,
    /// When a delete may be repeated, if the service has asked to wait.
    pub(super) not_before: Option<Timestamp>,
    pub(super) decided: Option<Outcome>,
}

impl Owner {
    /// Creates the owner of a message that a get has taken.
    pub(super) fn new(event: &Event, get: &Exchange, message: &Taken<'_>) -> Self {
        Owner {
            actor: event.actor.clone(),
            id: message.id.to_owned(),
            count: message.count,
            got_at: event.at,
            until: message.until,
            expires: Some(message.expires).filter(|expires| !never_expires(*expires)),
            receipt: message.receipt.to_owned(),
            started: None,
            ended: None,
            lost: None,
            asked: get.sent,
            hidden_s: None,
            deletes: 0,
            refused: 0,
            copied: false,
            deleted: false,
            unsure: false,
            told_late: false,
            failed: false,
            not_before: None,
            decided: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.started.is_some() && self.ended.is_none()
    }

    /// Whether it still has the message, and its last update or delete succeeded.
    pub(super) fn nothing_failed(&self) -> bool {
        self.lost.is_none() && !self.failed
    }
}
