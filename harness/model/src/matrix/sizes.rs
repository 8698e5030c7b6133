//! Texts of messages, contents of blobs and entities, by the size from which the service stores
//! them in another way.

use smalt_protocol::table::Value;

use super::area::{Area, NONE};
use super::watch::Watch;
use crate::content::Bytes;
use crate::expected::{Expected, Fact};
use crate::state::{Model, State};
use crate::vocabulary::tables::{Action, Row, RowId, TableExpected, TableOperation};
use crate::vocabulary::{
    BlobId, BlobOperation, INLINE_BYTES, INLINE_TEXT_BYTES, Moment, QueueOperation,
};

const SHORT: &str = "short";
const FULL: &str = "longest inline";
const LONG: &str = "longer";
const SIZES: [&str; 3] = [SHORT, FULL, LONG];
/// The numbers of values that hold an entity.
const VALUES: [&str; 3] = ["one value", "two values", "more values"];
const KEPT: &str = "kept";
const ABSENT: &str = "absent";
const FOUND: &[&str] = &[ABSENT, SHORT, FULL, LONG];
const LEFT: &[&str] = &[SHORT, FULL, LONG, KEPT];

/// What an operation finds, and what it leaves.
pub(super) const TEXTS: Area = Area {
    name: "message text",
    axes: [
        &["put", "update", "get", "peek", "delete", "clear"],
        FOUND,
        LEFT,
        NONE,
    ],
    exists: |[operation, before, after, _]| match *operation {
        "put" => *before == ABSENT && *after != KEPT,
        "update" => *before != ABSENT,
        _ => *before != ABSENT && *after == KEPT,
    },
    counts_refusals: false,
};

/// The content of a block blob or an append blob.
pub(super) const CONTENTS: Area = Area {
    name: "blob content",
    axes: [
        &[
            "put",
            "block list",
            "copy",
            "append",
            "undelete",
            "get",
            "get snapshot",
            "snapshot",
            "delete",
        ],
        FOUND,
        LEFT,
        NONE,
    ],
    exists: |[operation, before, after, _]| match *operation {
        "put" | "block list" | "copy" => *after != KEPT,
        "append" if *before == ABSENT || *after == KEPT => false,
        "append" => [before, after] == [&SHORT, &SHORT] || grows(before, after),
        "undelete" => *before == ABSENT && *after != KEPT,
        _ => *before != ABSENT && *after == KEPT,
    },
    counts_refusals: false,
};

/// An entity, which the service splits when it is large.
pub(super) const ENTITIES: Area = Area {
    name: "entity",
    axes: [
        &[
            "insert",
            "replace",
            "merge",
            "delete",
            "get",
            "query",
            "table delete",
        ],
        &[ABSENT, VALUES[0], VALUES[1], VALUES[2]],
        &[VALUES[0], VALUES[1], VALUES[2], KEPT],
        NONE,
    ],
    exists: |[operation, before, after, _]| match *operation {
        "insert" => *before == ABSENT && *after != KEPT,
        "replace" | "merge" => *after != KEPT,
        _ => *before != ABSENT && *after == KEPT,
    },
    counts_refusals: false,
};

/// Whether a content that grows can go from the one size to the other.
fn grows(before: &str, after: &str) -> bool {
    let place = |size: &str| SIZES.iter().position(|known| *known == size);
    place(before) < place(after) || after == LONG
}

fn size(length: usize, inline: usize) -> &'static str {
    SIZES[usize::from(length >= inline) + usize::from(length > inline)]
}

fn size_of_text(text: &str) -> &'static str {
    size(text.len(), INLINE_TEXT_BYTES)
}

/// Returns the size of a content; `None` for pages.
fn size_of_content(state: &State) -> Option<&'static str> {
    let length = usize::try_from(state.content.length()).unwrap_or(usize::MAX);
    let is_counted = !matches!(state.content, Bytes::Pages { .. });
    is_counted.then(|| size(length, usize::from(INLINE_BYTES)))
}

fn size_of_blob(model: &Model, id: &BlobId, snapshot: Option<Moment>) -> Option<&'static str> {
    model
        .state(id, snapshot)
        .map_or(Some(ABSENT), size_of_content)
}

fn size_of_entity(row: &Row) -> &'static str {
    let bytes = row.properties.values().map(|value| match value {
        Value::String(text) => text.len(),
        _ => 0,
    });
    let values = bytes.sum::<usize>() / usize::from(INLINE_BYTES);
    VALUES[values.min(VALUES.len() - 1)]
}

fn size_of_row(model: &Model, table: &str, id: &RowId) -> &'static str {
    let rows = model.tables.rows(table);
    let found = rows.iter().find(|row| row.id == *id);
    found.map_or(ABSENT, size_of_entity)
}

/// The sizes before the current step of what it addresses.
#[derive(Debug, Default)]
pub(super) struct Before {
    content: Option<&'static str>,
    entities: Vec<&'static str>,
}

impl Watch {
    pub(super) fn message(&mut self, model: &Model, name: &str, operation: &QueueOperation) {
        let queue = model.queues.get(name);
        let texts = |id| {
            let found = queue.and_then(|queue| queue.messages.get(id));
            found.map(|message| size_of_text(&message.text))
        };
        match operation {
            QueueOperation::Put { text, .. } => {
                self.saw(&TEXTS, ["put", ABSENT, size_of_text(text), ""]);
            }
            QueueOperation::Update { id, text, .. } => {
                let after = text.as_deref().map_or(KEPT, size_of_text);
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
                    self.saw(&TEXTS, ["clear", size_of_text(&message.text), KEPT, ""]);
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
                self.saw(&TEXTS, [name, size_of_text(text), KEPT, ""]);
            }
        }
    }

    pub(super) fn content_before(&mut self, model: &Model, id: &BlobId) {
        self.sizes.content = size_of_blob(model, id, None);
    }

    pub(super) fn content_after(&mut self, model: &Model, id: &BlobId, operation: &BlobOperation) {
        use BlobOperation as On;
        let before = self.sizes.content;
        let after = size_of_blob(model, id, None);
        let (name, before, after) = match operation {
            On::Put(..) => ("put", before, after),
            On::PutBlockList(..) => ("block list", before, after),
            On::Copy { .. } | On::FromUrl { .. } => ("copy", before, after),
            On::Append(..) => ("append", before, after),
            On::Undelete if before != after => ("undelete", before, after),
            On::Get { snapshot: None, .. } => ("get", before, Some(KEPT)),
            On::Get { snapshot, .. } => {
                let taken = size_of_blob(model, id, *snapshot);
                ("get snapshot", taken, Some(KEPT))
            }
            On::Snapshot(..) => ("snapshot", before, Some(KEPT)),
            On::Delete { .. } if before != after => ("delete", before, Some(KEPT)),
            _ => return,
        };
        if let (Some(before), Some(after)) = (before, after) {
            self.saw(&CONTENTS, [name, before, after, ""]);
        }
    }

    pub(super) fn entities_before(&mut self, model: &Model, name: &str, on: &TableOperation) {
        let changes = on.changes().iter();
        let before = changes.map(|change| size_of_row(model, name, &change.row));
        self.sizes.entities = before.collect();
        if *on == TableOperation::Delete {
            for row in &model.tables.rows(name) {
                self.saw(&ENTITIES, ["table delete", size_of_entity(row), KEPT, ""]);
            }
        }
    }

    pub(super) fn entities_after(
        &mut self,
        model: &Model,
        name: &str,
        operation: &TableOperation,
        expected: &TableExpected,
    ) {
        let read = match operation {
            TableOperation::Get(..) => "get",
            _ => "query",
        };
        for row in &expected.rows {
            self.saw(&ENTITIES, [read, size_of_entity(row), KEPT, ""]);
        }
        let before = std::mem::take(&mut self.sizes.entities);
        for (change, before) in operation.changes().iter().zip(before) {
            let (write, after) = match change.action {
                Action::Insert(_) => ("insert", size_of_row(model, name, &change.row)),
                Action::Replace(..) => ("replace", size_of_row(model, name, &change.row)),
                Action::Merge(..) => ("merge", size_of_row(model, name, &change.row)),
                Action::Delete(_) => ("delete", KEPT),
            };
            self.saw(&ENTITIES, [write, before, after, ""]);
        }
    }
}
