//! Messages of an Arrow stream, encoded as flatbuffers.
//!
//! Slot and type numbers are those of `Message.fbs` and `Schema.fbs`. Tables are built in the order
//! of Arrow's own writer, so that the bytes match the recordings.

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

use super::{Field, Kind};

type Builder = FlatBufferBuilder<'static>;
type Table = WIPOffset<UnionWIPOffset>;

/// `MetadataVersion.V4`, as recorded.
const VERSION: i16 = 3;
/// Types of `MessageHeader`.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;
/// Marker before each message; everything is aligned to eight bytes.
const CONTINUATION: [u8; 4] = [0xff; 4];
const ALIGNMENT: usize = 8;

/// Returns the offset of a slot in a table's index.
const fn slot(number: u16) -> u16 {
    4 + 2 * number
}

fn end(builder: &mut Builder, start: WIPOffset<flatbuffers::TableUnfinishedWIPOffset>) -> Table {
    WIPOffset::new(builder.end_table(start).value())
}

pub(super) fn schema(fields: &[Field]) -> Vec<u8> {
    let mut builder = Builder::new();
    let fields: Vec<Table> = fields.iter().map(|one| field(&mut builder, one)).collect();
    let fields = builder.create_vector(&fields);
    let table = builder.start_table();
    builder.push_slot_always(slot(1), fields);
    let header = end(&mut builder, table);
    message(builder, SCHEMA, header, 0)
}

fn field(builder: &mut Builder, field: &Field) -> Table {
    let name = builder.create_string(&field.name);
    let (kind, of) = kind(builder, field.kind);
    let children = builder.create_vector::<Table>(&[]);
    let table = builder.start_table();
    builder.push_slot_always(slot(5), children);
    builder.push_slot_always(slot(3), of);
    builder.push_slot_always(slot(0), name);
    builder.push_slot::<u8>(slot(2), kind, 0);
    // Every field is nullable.
    builder.push_slot::<bool>(slot(1), true, false);
    end(builder, table)
}

/// Encodes a type: its number and its properties.
fn kind(builder: &mut Builder, kind: Kind) -> (u8, Table) {
    let table = builder.start_table();
    let number = match kind {
        Kind::Integer => {
            builder.push_slot::<i32>(slot(0), 64, 0);
            builder.push_slot::<bool>(slot(1), true, false);
            2
        }
        Kind::Float => {
            // `Precision.DOUBLE`.
            builder.push_slot::<i16>(slot(0), 2, 0);
            3
        }
        Kind::Text => 5,
        Kind::Boolean => 6,
        Kind::Decimal { precision, scale } => {
            let number = |digits: u32| i32::try_from(digits).unwrap_or(0);
            builder.push_slot::<i32>(slot(1), number(scale), 0);
            builder.push_slot::<i32>(slot(0), number(precision), 0);
            7
        }
        Kind::Timestamp => {
            // `TimeUnit.MILLISECOND`.
            builder.push_slot::<i16>(slot(0), 1, 0);
            10
        }
    };
    (number, end(builder, table))
}

/// Encodes a message with its length, padded to the alignment.
fn message(mut builder: Builder, kind: u8, header: Table, body_bytes: usize) -> Vec<u8> {
    let body_bytes = i64::try_from(body_bytes).unwrap_or(i64::MAX);
    let table = builder.start_table();
    builder.push_slot::<i64>(slot(3), body_bytes, 0);
    builder.push_slot_always(slot(2), header);
    builder.push_slot::<i16>(slot(0), VERSION, 0);
    builder.push_slot::<u8>(slot(1), kind, 0);
    let root = end(&mut builder, table);
    builder.finish(root, None);
    let metadata = builder.finished_data();
    let padded = metadata.len().next_multiple_of(ALIGNMENT);
    let mut out = CONTINUATION.to_vec();
    out.extend_from_slice(&u32::try_from(padded).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(metadata);
    out.resize(CONTINUATION.len() + 4 + padded, 0);
    out
}

pub(super) struct Body {
    rows: usize,
    /// Number of rows and nulls of each column.
    nodes: Vec<(i64, i64)>,
    /// Offset and length of each buffer.
    buffers: Vec<(i64, i64)>,
    bytes: Vec<u8>,
}

impl Body {
    pub(super) fn new(rows: usize) -> Self {
        Body {
            rows,
            nodes: Vec::new(),
            buffers: Vec::new(),
            bytes: Vec::new(),
        }
    }

    pub(super) fn node(&mut self, rows: usize, nulls: usize) {
        self.nodes.push((long(rows), long(nulls)));
    }

    pub(super) fn buffer(&mut self, bytes: &[u8]) {
        self.buffers
            .push((long(self.bytes.len()), long(bytes.len())));
        self.bytes.extend_from_slice(bytes);
        let padded = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(padded, 0);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let mut builder = Builder::new();
        let nodes = pairs(&mut builder, &self.nodes);
        let buffers = pairs(&mut builder, &self.buffers);
        let table = builder.start_table();
        builder.push_slot::<i64>(slot(0), long(self.rows), 0);
        builder.push_slot_always(slot(2), buffers);
        builder.push_slot_always(slot(1), nodes);
        let header = end(&mut builder, table);
        let mut out = message(builder, RECORD_BATCH, header, self.bytes.len());
        out.extend_from_slice(&self.bytes);
        out
    }
}

fn long(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Writes a vector of structs with two numbers, from its end.
fn pairs(builder: &mut Builder, pairs: &[(i64, i64)]) -> Table {
    builder.start_vector::<i64>(pairs.len() * 2);
    for (first, second) in pairs.iter().rev() {
        builder.push(*second);
        builder.push(*first);
    }
    WIPOffset::new(builder.end_vector::<i64>(pairs.len()).value())
}
