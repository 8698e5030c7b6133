//! Frames of the response: an Avro object container file with one record per block.
//!
//! Source: recordings, byte by byte; "Apache Avro Specification", object container files. Each
//! record is one of a union: `resultData`, `error`, `progress`, `end`.

use bytes::Bytes;
use smalt_protocol::ApiVersion;
use uuid::Uuid;

/// Since this version the schema mentions records instead of bytes. The recordings of 2020-02-10
/// and 2021-12-02 differ; Parquet, which has no lines, was introduced in between.
const BY_RECORD: ApiVersion = ApiVersion::V2020_10_02;

/// Maximum size of the buffered errors, in bytes. The limit is the emulator's own.
const ERROR_BYTES_MAX: usize = 1024 * 1024;

const MAGIC: &[u8] = b"Obj\x01";
/// Index of each record type in the union.
const RESULT_DATA: i64 = 0;
const ERROR: i64 = 1;
const PROGRESS: i64 = 2;
const END: i64 = 3;

/// Rows of at least this many bytes are passed on without a copy.
const OWN_PIECE_BYTES: usize = 64 * 1024;

/// Collects the frames of a response.
#[derive(Debug)]
pub struct Frames {
    /// Complete output that precedes `out`.
    pieces: Vec<Bytes>,
    out: Vec<u8>,
    /// Errors held back until the next progress frame.
    errors: Vec<u8>,
    sync: [u8; 16],
}

impl Frames {
    /// Starts the file with its header. `sync` ends the header and each block.
    pub fn new(version: ApiVersion, sync: Uuid) -> Self {
        let mut out = MAGIC.to_vec();
        // The metadata map has one entry, then its end marker.
        push_long(&mut out, 1);
        push_bytes(&mut out, b"avro.schema");
        push_bytes(&mut out, schema(version).as_bytes());
        push_long(&mut out, 0);
        let sync = *sync.as_bytes();
        out.extend_from_slice(&sync);
        Frames {
            pieces: Vec::new(),
            out,
            errors: Vec::new(),
            sync,
        }
    }

    /// Adds result rows.
    pub fn data(&mut self, data: Vec<u8>) {
        let mut head = Vec::new();
        push_long(&mut head, RESULT_DATA);
        push_count(&mut head, data.len() as u64);
        push_long(&mut self.out, 1);
        push_count(&mut self.out, (head.len() + data.len()) as u64);
        self.out.extend_from_slice(&head);
        if data.len() < OWN_PIECE_BYTES {
            self.out.extend_from_slice(&data);
        } else {
            self.pieces.push(std::mem::take(&mut self.out).into());
            self.pieces.push(data.into());
        }
        self.out.extend_from_slice(&self.sync);
    }

    /// Adds an error at a position in the blob. The error is held back until it is
    /// [released](Frames::release_errors).
    pub fn error(&mut self, is_fatal: bool, name: &str, description: &str, position: u64) {
        let mut record = Vec::new();
        push_long(&mut record, ERROR);
        record.push(u8::from(is_fatal));
        push_bytes(&mut record, name.as_bytes());
        push_bytes(&mut record, description.as_bytes());
        push_count(&mut record, position);
        push_block(&mut self.errors, &record, &self.sync);
    }

    /// Returns `true` if the buffered errors should be released.
    pub fn holds_many_errors(&self) -> bool {
        self.errors.len() >= ERROR_BYTES_MAX
    }

    /// Moves the buffered errors to the output.
    pub fn release_errors(&mut self) {
        self.out.append(&mut self.errors);
    }

    /// Adds the progress: bytes scanned and bytes in total.
    pub fn progress(&mut self, scanned: u64, total: u64) {
        let mut record = Vec::new();
        push_long(&mut record, PROGRESS);
        push_count(&mut record, scanned);
        push_count(&mut record, total);
        self.block(&record);
    }

    /// Adds the last frame.
    pub fn end(&mut self, total: u64) {
        let mut record = Vec::new();
        push_long(&mut record, END);
        push_count(&mut record, total);
        self.block(&record);
    }

    /// Returns the output since the last call, in order.
    pub fn take(&mut self) -> Vec<Bytes> {
        if !self.out.is_empty() {
            self.pieces.push(std::mem::take(&mut self.out).into());
        }
        std::mem::take(&mut self.pieces)
    }

    fn block(&mut self, record: &[u8]) {
        push_block(&mut self.out, record, &self.sync);
    }
}

fn push_block(out: &mut Vec<u8>, record: &[u8], sync: &[u8]) {
    push_long(out, 1);
    push_bytes(out, record);
    out.extend_from_slice(sync);
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_count(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn push_count(out: &mut Vec<u8>, count: u64) {
    push_long(out, i64::try_from(count).unwrap_or(i64::MAX));
}

/// Encodes as zigzag, then seven bits per byte, lowest first.
fn push_long(out: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    while left >= 0x80 {
        out.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Returns the schema exactly as the service sends it: clients rely only on its names, but
/// recordings compare every byte.
fn schema(version: ApiVersion) -> String {
    let (position, total) = if version >= BY_RECORD {
        (
            "The record offset in the blob at which the error occurred",
            "The total number of bytes scanned in this query",
        )
    } else {
        (
            "The blob offset at which the error occurred",
            "The total number of bytes to be scanned in this query",
        )
    };
    let records = [
        record(
            "resultData",
            "Holds result data in the format specified for this query (CSV, JSON, etc.).",
            &[("data", "bytes", "")],
        ),
        record(
            "error",
            "An error that occurred while processing the query.",
            &[
                ("fatal", "boolean", FATAL),
                ("name", "string", "The name of the error"),
                ("description", "string", "A description of the error"),
                ("position", "long", position),
            ],
        ),
        record(
            "progress",
            "Information about the progress of the query",
            &[
                (
                    "bytesScanned",
                    "long",
                    "The number of bytes that have been scanned",
                ),
                (
                    "totalBytes",
                    "long",
                    "The total number of bytes to be scanned in this query",
                ),
            ],
        ),
        record(
            "end",
            "Sent as the final message of the response, indicating that all results have been \
             sent.",
            &[("totalBytes", "long", total)],
        ),
    ];
    format!("[\n{}\n]\n", records.join(",\n"))
}

const FATAL: &str = "If true, this error prevents further query processing.  More result data may \
    be returned, but there is no guarantee that all of the original data will be processed.  If \
    false, this error does not prevent further query processing.";

fn record(name: &str, doc: &str, fields: &[(&str, &str, &str)]) -> String {
    let field = |(name, kind, doc): &(&str, &str, &str)| {
        let doc = match doc.is_empty() {
            true => String::new(),
            false => format!(",\n        \"doc\": \"{doc}\""),
        };
        format!(
            "      {{\n        \"name\": \"{name}\",\n        \"type\": \"{kind}\"{doc}\n      }}"
        )
    };
    let fields: Vec<String> = fields.iter().map(field).collect();
    let name = format!("com.microsoft.azure.storage.queryBlobContents.{name}");
    format!(
        "  {{\n    \"type\": \"record\",\n    \"name\": \"{name}\",\n    \"doc\": \"{doc}\",\n    \
         \"fields\": [\n{}\n    ]\n  }}",
        fields.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_numbers_as_avro_does() {
        for (number, bytes) in [
            (0, &[0][..]),
            (-1, &[1]),
            (32, &[0x40]),
            (64, &[0x80, 0x01]),
            (
                i64::MAX,
                &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            ),
            (
                i64::MIN,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            ),
        ] {
            let mut out = Vec::new();
            push_long(&mut out, number);
            assert_eq!(out, bytes, "{number}");
        }
    }

    #[test]
    fn each_frame_is_a_block() {
        let sync = Uuid::from_u128(7);
        let mut frames = Frames::new(ApiVersion::V2021_12_02, sync);
        let head = frames.take().concat();
        assert!(head.starts_with(b"Obj\x01\x02\x16avro.schema\xce\x1e["));
        assert!(head.ends_with(sync.as_bytes()));
        frames.data(b"400\n".to_vec());
        frames.progress(32, 32);
        frames.error(false, "A", "b", 3);
        frames.release_errors();
        frames.end(32);
        let mut expected = Vec::new();
        for block in [
            &b"\x02\x0c\x00\x08400\n"[..],
            b"\x02\x06\x04\x40\x40",
            b"\x02\x0e\x02\x00\x02A\x02b\x06",
            b"\x02\x04\x06\x40",
        ] {
            expected.extend_from_slice(block);
            expected.extend_from_slice(sync.as_bytes());
        }
        assert_eq!(frames.take().concat(), expected);
        let older = Frames::new(ApiVersion::V2020_02_10, sync).take().concat();
        assert!(older.starts_with(b"Obj\x01\x02\x16avro.schema\xbe\x1e["));
    }
    #[test]
    fn long_rows_are_passed_on_without_a_copy() {
        let sync = Uuid::from_u128(7);
        let mut frames = Frames::new(ApiVersion::LATEST, sync);
        frames.take();
        let data = vec![b'x'; OWN_PIECE_BYTES];
        frames.data(data.clone());
        frames.end(1);
        let pieces = frames.take();
        assert_eq!((pieces.len(), pieces[1].as_ref()), (3, data.as_slice()));
        let mut whole = Frames::new(ApiVersion::LATEST, sync);
        whole.take();
        let mut record = Vec::new();
        push_long(&mut record, RESULT_DATA);
        push_bytes(&mut record, &data);
        whole.block(&record);
        whole.end(1);
        assert_eq!(pieces.concat(), whole.take().concat());
    }
}
