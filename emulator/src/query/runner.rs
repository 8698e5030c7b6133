//! A query under way: bytes of the blob in, frames of the answer out.
//!
//! Every 4 MiB that are read the rows found so far are sent, then the progress is told, then what
//! went wrong on the way: so the tests of Microsoft's SDKs have it, and the one for Python cannot
//! read an answer that begins with an error. A row that a query has no answer for is left out;
//! where the text itself is broken the answer ends.

mod work;

use bytes::Bytes;
use smalt_protocol::limits::MIB;
use smalt_protocol::{ApiVersion, StorageError, Timestamp};
use uuid::Uuid;

use super::avro::Frames;
use super::csv;
use super::json::Json;
use super::json::scan::{Broken, Scanner};
use super::record::RECORD_BYTES_MAX;
use super::request::{Format, QueryRequest};
use super::row::Row;
use work::Work;

/// How often progress is told, in bytes.
const PROGRESS_BYTES: u64 = 4 * MIB;
/// Rows that are held before they are sent, in bytes. A frame is this long and one row at most.
const RESULT_BYTES_MAX: usize = 4 * MIB as usize;
/// Steps of [`Meter`](super::meter::Meter) after which others get their turn: about 30 ms. The
/// record that is begun is ended first.
const TURN_STEPS: u64 = 1 << 24;

/// A query under way.
#[derive(Debug)]
pub struct Runner {
    input: Input,
    work: Work,
    /// Bytes of the blob that were read.
    scanned: u64,
    total: u64,
    /// Where the present record of delimited text begins.
    record_start: u64,
    told: u64,
    is_over: bool,
    /// The last frames are made.
    has_ended: bool,
}

#[derive(Debug)]
enum Input {
    Delimited(Box<csv::Reader>),
    Json(Box<Scanner>),
}

impl Runner {
    /// Begins a query over `total` bytes.
    ///
    /// # Errors
    /// 400 `ErrorProcessingQueryExpression` where fields are named that have no names.
    pub fn new(
        request: QueryRequest,
        total: u64,
        version: ApiVersion,
        sync: Uuid,
        now: Timestamp,
    ) -> Result<Self, StorageError> {
        let QueryRequest {
            statement,
            input,
            output,
        } = request;
        let mut work = Work::new(statement, output.into(), Frames::new(version, sync), now)?;
        work.results = work.output.begin();
        work.send();
        let input = match input {
            Format::Delimited(dialect) => {
                work.awaits_header = dialect.has_headers;
                if !dialect.has_headers {
                    work.bind(None)?;
                }
                Input::Delimited(Box::new(csv::Reader::new(dialect)))
            }
            Format::Json(separator) => {
                work.name_columns(None);
                work.write_header(Vec::new());
                Input::Json(Box::new(Scanner::new(&separator)))
            }
        };
        let is_over = work.rows_left == Some(0);
        Ok(Runner {
            input,
            work,
            scanned: 0,
            total,
            record_start: 0,
            told: 0,
            is_over,
            has_ended: false,
        })
    }

    /// Whether a query may still turn out to be wrong: the names of its fields are not read yet.
    pub fn awaits_header(&self) -> bool {
        self.work.awaits_header && !self.is_over
    }

    /// Whether no more bytes are needed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads the next bytes of the blob: all of them, or as many as one turn takes. How many.
    ///
    /// # Errors
    /// As [`Runner::new`], as long as it [awaits the header](Runner::awaits_header).
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, StorageError> {
        let turn_ends = self.work.meter.steps() + TURN_STEPS;
        let mut left = bytes;
        while !left.is_empty() && !self.is_over && self.work.meter.steps() < turn_ends {
            let to_tell = PROGRESS_BYTES - self.scanned % PROGRESS_BYTES;
            let length = left
                .len()
                .min(usize::try_from(to_tell).unwrap_or(usize::MAX));
            let (part, _) = left.split_at(length);
            let taken = self.next_record(part)?;
            left = left.get(taken..).unwrap_or_default();
            self.scanned += taken as u64;
            let is_due = self.scanned.is_multiple_of(PROGRESS_BYTES);
            let is_told = self.scanned == self.told || self.is_over;
            if (is_due || self.work.frames.holds_many_errors()) && !is_told {
                self.tell();
            }
        }
        Ok(bytes.len() - left.len())
    }

    /// The blob has ended, or nothing more is wanted of it.
    ///
    /// # Errors
    /// As [`Runner::read`].
    pub fn finish(&mut self) -> Result<(), StorageError> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Ok(());
        }
        if !self.is_over {
            self.last_record()?;
        }
        self.is_over = true;
        self.work.conclude();
        if self.scanned > self.told {
            self.tell();
        }
        self.work.send();
        self.work.frames.release_errors();
        self.work.frames.end(self.total);
        Ok(())
    }

    /// The frames since the last call, in pieces.
    pub fn take(&mut self) -> Vec<Bytes> {
        self.work.frames.take()
    }

    fn tell(&mut self) {
        self.work.send();
        self.work.frames.progress(self.scanned, self.total);
        self.work.frames.release_errors();
        self.told = self.scanned;
    }

    /// Reads up to the end of a record, or of the part. How many bytes that are; the whole part
    /// where nothing more is wanted of the blob.
    fn next_record(&mut self, part: &[u8]) -> Result<usize, StorageError> {
        let mut left = part;
        let found = match &mut self.input {
            Input::Delimited(reader) => reader.next(&mut left).map_err(Broken::from),
            Input::Json(scanner) => scanner.next(&mut left),
        };
        let taken = part.len() - left.len();
        let at = self.scanned + taken as u64;
        match found {
            Ok(true) => self.record(at)?,
            Ok(false) => {}
            Err(broken) => self.break_off(broken, at),
        }
        Ok(if self.is_over { part.len() } else { taken })
    }

    fn last_record(&mut self) -> Result<(), StorageError> {
        let found = match &mut self.input {
            Input::Delimited(reader) => Ok(reader.finish()),
            Input::Json(scanner) => scanner.finish(),
        };
        match found {
            Ok(true) => self.record(self.scanned)?,
            Ok(false) => {}
            Err(broken) => self.break_off(broken, self.scanned),
        }
        // Of an empty blob.
        if self.awaits_header() {
            self.work.bind(None)?;
        }
        Ok(())
    }

    /// Takes the record that ends at this place.
    fn record(&mut self, end: u64) -> Result<(), StorageError> {
        if let Err(fault) = self.work.meter.next_record(end) {
            self.is_over = self.work.fault(fault, self.record_start);
            return Ok(());
        }
        match &self.input {
            Input::Delimited(reader) => {
                let (start, fields) = (self.record_start, reader.fields());
                self.record_start = end;
                if let Some(split) = &mut self.work.split {
                    let batch = split.add(end - start);
                    self.work.batch(batch);
                } else if self.work.awaits_header {
                    return self.work.bind_to(fields);
                } else {
                    self.is_over = self.work.row(Row::Fields(fields), start);
                }
            }
            Input::Json(scanner) => {
                let start = end.saturating_sub(scanner.since_start());
                let record = Json::new(scanner.record());
                let path = std::mem::take(&mut self.work.statement.from.path);
                self.is_over = self.work.rows(record, &path, start);
                self.work.statement.from.path = path;
            }
        }
        Ok(())
    }

    /// Tells why there is no more.
    fn break_off(&mut self, broken: Broken, at: u64) {
        let start = match &self.input {
            Input::Delimited(_) => self.record_start,
            Input::Json(scanner) => at.saturating_sub(scanner.since_start()),
        };
        let description = match broken {
            Broken::Syntax(description) => description,
            Broken::TooLong => format!("A record is longer than {RECORD_BYTES_MAX} bytes."),
        };
        self.work
            .frames
            .error(true, "ParseError", &description, start);
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests;
