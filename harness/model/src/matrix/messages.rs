//! Texts of messages, by the size at which the service may store them in another way.

use super::area::{Area, NONE};
use super::watch::Watch;
use crate::expected::{Expected, Fact};
use crate::state::Model;
use crate::vocabulary::{INLINE_TEXT_BYTES, QueueOperation};

const SHORT: &str = "short";
const FULL: &str = "longest inline";
const LONG: &str = "longer";
const KEPT: &str = "kept";
const ABSENT: &str = "absent";

/// What an operation finds, and what it leaves.
pub(super) const TEXTS: Area = Area {
    name: "message text",
    axes: [
        &["put", "update", "get", "peek", "delete", "clear"],
        &[ABSENT, SHORT, FULL, LONG],
        &[SHORT, FULL, LONG, KEPT],
        NONE,
    ],
    exists: |[operation, before, after, _]| match *operation {
        "put" => *before == ABSENT && *after != KEPT,
        "update" => *before != ABSENT,
        _ => *before != ABSENT && *after == KEPT,
    },
    counts_refusals: false,
};

fn size(text: &str) -> &'static str {
    match text.len() {
        0..INLINE_TEXT_BYTES => SHORT,
        INLINE_TEXT_BYTES => FULL,
        _ => LONG,
    }
}

impl Watch {
    pub(super) fn message(&mut self, model: &Model, name: &str, operation: &QueueOperation) {
        let queue = model.queues.get(name);
        let texts = |id| {
            let found = queue.and_then(|queue| queue.messages.get(id));
            found.map(|message| size(&message.text))
        };
        match operation {
            QueueOperation::Put { text, .. } => {
                self.saw(&TEXTS, ["put", ABSENT, size(text), ""]);
            }
            QueueOperation::Update { id, text, .. } => {
                let after = text.as_deref().map_or(KEPT, size);
                if let Some(before) = texts(id) {
                    self.saw(&TEXTS, ["update", before, after, ""]);
                }
            }
            QueueOperation::DeleteMessage { id, .. } => {
                if let Some(before) = texts(id) {
                    self.saw(&TEXTS, ["delete", before, KEPT, ""]);
                }
            }
            QueueOperation::Clear => {
                for message in queue.iter().flat_map(|queue| queue.messages.values()) {
                    self.saw(&TEXTS, ["clear", size(&message.text), KEPT, ""]);
                }
            }
            _ => {}
        }
    }

    pub(super) fn read_messages(&mut self, operation: &QueueOperation, expected: &Expected) {
        let name = match operation {
            QueueOperation::Receive { .. } => "get",
            QueueOperation::Peek { .. } => "peek",
            _ => return,
        };
        for fact in &expected.facts {
            let Fact::Messages(shown) = fact else {
                continue;
            };
            for text in shown.iter().filter_map(|shown| shown.text.as_deref()) {
                self.saw(&TEXTS, [name, size(text), KEPT, ""]);
            }
        }
    }
}
