//! A running query: takes the blob's bytes and returns frames of the response.
//!
//! For every 4 MiB read, the rows found so far are sent, then the progress, then the errors: the
//! tests of Microsoft's SDKs expect this order, and the Python SDK cannot read a response that
//! begins with an error. A row that cannot be evaluated is omitted; malformed input ends the
//! response.

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

/// Interval of progress frames, in bytes read.
const PROGRESS_BYTES: u64 = 4 * MIB;
/// Maximum size of the buffered rows in bytes. A frame exceeds it by one row at most.
const RESULT_BYTES_MAX: usize = 4 * MIB as usize;
/// Steps of [`Meter`](super::meter::Meter) after which a query yields to others: about 30 ms. The
/// current record is completed first.
const TURN_STEPS: u64 = 1 << 24;

/// A running query.
#[derive(Debug)]
pub struct Runner {
    input: Input,
    work: Work,
    /// Bytes of the blob read so far.
    scanned: u64,
    total: u64,
    /// Offset of the current record of delimited text.
    record_start: u64,
    told: u64,
    is_over: bool,
    has_ended: bool,
}

#[derive(Debug)]
enum Input {
    Delimited(Box<csv::Reader>),
    Json(Box<Scanner>),
}

impl Runner {
    /// Starts a query over `total` bytes.
    ///
    /// # Errors
    /// 400 `ErrorProcessingQueryExpression` if the query names fields of delimited text without a
    /// header row.
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

    /// Returns `true` while the header row is unread, so that the query can still be rejected.
    pub fn awaits_header(&self) -> bool {
        self.work.awaits_header && !self.is_over
    }

    /// Returns `true` if no more bytes are needed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads the next bytes of the blob, as many as one turn allows, and returns their number.
    ///
    /// # Errors
    /// As [`Runner::new`], while it [awaits the header](Runner::awaits_header).
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

    /// Ends the query, because the blob has ended or no more of it is needed.
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

    /// Returns the frames since the last call, in pieces.
    pub fn take(&mut self) -> Vec<Bytes> {
        self.work.frames.take()
    }

    fn tell(&mut self) {
        self.work.send();
        self.work.frames.progress(self.scanned, self.total);
        self.work.frames.release_errors();
        self.told = self.scanned;
    }

    /// Reads up to the end of a record or of `part`, and returns the number of bytes. Returns the
    /// whole length if no more of the blob is needed.
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
        // The blob was empty.
        if self.awaits_header() {
            self.work.bind(None)?;
        }
        Ok(())
    }

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

    /// Reports malformed input and ends the query.
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
