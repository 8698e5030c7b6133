//! A query under way: bytes of the blob in, frames of the answer out.
//!
//! Every 4 MiB that are read the rows found so far are sent, then the progress is told, then what
//! went wrong on the way: so the tests of Microsoft's SDKs have it, and the one for Python cannot
//! read an answer that begins with an error. A row that a query has no answer for is left out; where
//! the text itself is broken the answer ends.

use bytes::Bytes;
use smalt_protocol::limits::MIB;
use smalt_protocol::{ApiVersion, StorageError, Timestamp};
use uuid::Uuid;

use super::aggregate::Total;
use super::avro::Frames;
use super::csv;
use super::evaluate::Scope;
use super::json::Json;
use super::json::scan::{Broken, Scanner};
use super::moment::Moment;
use super::output::{Output, ordinal_name};
use super::request::{Format, QueryRequest};
use super::row::{Row, text};
use super::split::Split;
use super::sql::{Column, Expr, Name, Select, Statement, Step, refuse, syntax_error};
use super::value::{Fault, Value};

/// How often progress is told, in bytes.
const PROGRESS_BYTES: u64 = 4 * MIB;
/// Rows that are held before they are sent, in bytes. A frame is this long and one row at most.
const RESULT_BYTES_MAX: usize = 4 * MIB as usize;
/// What is held of one record, in bytes: ours.
const RECORD_BYTES_MAX: usize = 16 * MIB as usize;

/// A record is longer than [`RECORD_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordTooLong;

impl RecordTooLong {
    /// Refuses what would grow too long.
    pub(super) fn check(bytes: usize) -> Result<(), Self> {
        if bytes > RECORD_BYTES_MAX {
            Err(RecordTooLong)
        } else {
            Ok(())
        }
    }
}

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

/// What is done to rows.
#[derive(Debug)]
struct Work {
    statement: Statement,
    output: Output,
    frames: Frames,
    results: Vec<u8>,
    names: Vec<String>,
    /// The first record holds names and is still to come.
    awaits_header: bool,
    aggregate: Option<Total>,
    split: Option<Split>,
    rows_left: Option<u64>,
    now: Moment,
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

    /// Reads the next bytes of the blob.
    ///
    /// # Errors
    /// As [`Runner::new`], as long as it [awaits the header](Runner::awaits_header).
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<(), StorageError> {
        while !bytes.is_empty() && !self.is_over {
            let to_tell = PROGRESS_BYTES - self.scanned % PROGRESS_BYTES;
            let length = bytes
                .len()
                .min(usize::try_from(to_tell).unwrap_or(usize::MAX));
            let (part, rest) = bytes.split_at(length);
            bytes = rest;
            self.records(part)?;
            self.scanned += part.len() as u64;
            let is_due = self.scanned.is_multiple_of(PROGRESS_BYTES);
            if (is_due || self.work.frames.holds_many_errors()) && !self.is_over {
                self.tell();
            }
        }
        Ok(())
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

    /// The frames since the last call.
    pub fn take(&mut self) -> Bytes {
        self.work.frames.take()
    }

    fn tell(&mut self) {
        self.work.send();
        self.work.frames.progress(self.scanned, self.total);
        self.work.frames.release_errors();
        self.told = self.scanned;
    }

    fn records(&mut self, part: &[u8]) -> Result<(), StorageError> {
        let mut left = part;
        loop {
            let found = match &mut self.input {
                Input::Delimited(reader) => reader.next(&mut left).map_err(Broken::from),
                Input::Json(scanner) => scanner.next(&mut left),
            };
            let at = self.scanned + (part.len() - left.len()) as u64;
            match found {
                Ok(true) => self.record(at)?,
                Ok(false) => return Ok(()),
                Err(broken) => self.break_off(broken, at),
            }
            if self.is_over {
                return Ok(());
            }
        }
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
        match &self.input {
            Input::Delimited(reader) => {
                let (start, fields) = (self.record_start, reader.fields());
                self.record_start = end;
                if let Some(split) = &mut self.work.split {
                    let batch = split.add(end - start);
                    self.work.batch(batch);
                } else if self.work.awaits_header {
                    let names = fields.iter().map(|name| text(name).into_owned());
                    return self.work.bind(Some(names.collect()));
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

impl Work {
    fn new(
        statement: Statement,
        output: Output,
        frames: Frames,
        now: Timestamp,
    ) -> Result<Self, StorageError> {
        let now =
            Moment::of(now).ok_or_else(|| StorageError::internal("a time beyond reckoning"))?;
        let aggregate = match &statement.select {
            Select::Aggregate(aggregate) => Some(Total::new(aggregate.function)),
            _ => None,
        };
        let split = match statement.select {
            Select::Split(bytes) => Some(Split::new(bytes)),
            _ => None,
        };
        // An aggregate is one row: the limit is on what it is answered with.
        let rows_left = statement.limit;
        Ok(Work {
            statement,
            output,
            frames,
            results: Vec::new(),
            names: Vec::new(),
            awaits_header: false,
            aggregate,
            split,
            rows_left,
            now,
        })
    }

    /// Gives the fields of delimited text their positions. `header` is the first record, where it
    /// holds names.
    fn bind(&mut self, header: Option<Vec<String>>) -> Result<(), StorageError> {
        self.awaits_header = false;
        let mut header = header.unwrap_or_default();
        if let Some(first) = header.first_mut()
            && let Some(unmarked) = first.strip_prefix('\u{feff}')
        {
            *first = unmarked.to_owned();
        }
        self.name_columns(Some(&header));
        let mut refused = None;
        self.statement.each_expr(&mut |expr| {
            let Expr::Field(name, steps) = expr else {
                return;
            };
            let found = header.iter().position(|field| name.matches(field));
            match found.or_else(|| name.ordinal()) {
                Some(position) if steps.is_empty() => *expr = Expr::Ordinal(position),
                Some(_) => refused = Some(syntax_error()),
                None if header.is_empty() => refused = Some(refuse(NO_HEADER)),
                None => {
                    let told = format!("The header row has no column {}.", name.text);
                    refused = Some(refuse(&told));
                }
            }
        });
        match refused {
            Some(refused) => Err(refused),
            None => {
                self.write_header(header);
                Ok(())
            }
        }
    }

    fn write_header(&mut self, header: Vec<String>) {
        if matches!(self.statement.select, Select::All) {
            self.names = header;
        }
        if self.output.has_headers() && !self.names.is_empty() {
            self.output.header(&mut self.results, &self.names);
        }
    }

    /// What selected values are called: as the query says, as the field is called, or by position.
    /// `header` is that of delimited text.
    fn name_columns(&mut self, header: Option<&[String]>) {
        let name = |(index, column): (usize, &Column)| match (&column.alias, &column.value) {
            (Some(alias), _) => alias.clone(),
            (None, Expr::Field(name, steps)) => {
                field_name(name, steps, header).unwrap_or_else(|| ordinal_name(index))
            }
            _ => ordinal_name(index),
        };
        self.names = match &self.statement.select {
            Select::All => Vec::new(),
            Select::Columns(columns) => columns.iter().enumerate().map(name).collect(),
            Select::Aggregate(aggregate) => {
                vec![aggregate.alias.clone().unwrap_or_else(|| ordinal_name(0))]
            }
            Select::Split(_) => vec![ordinal_name(0)],
        };
    }

    /// The rows of a JSON record: whatever lies at the path. Whether enough was found.
    fn rows(&mut self, json: Json<'_>, path: &[Step], position: u64) -> bool {
        match path.split_first() {
            None => self.row(Row::Json(json), position),
            Some((Step::Each, rest)) => json.items().any(|item| self.rows(item, rest, position)),
            Some((Step::Item(index), rest)) => {
                let item = json.item(*index);
                item.is_some_and(|item| self.rows(item, rest, position))
            }
            Some((Step::Member(name), rest)) => {
                let member = json.member(name);
                member.is_some_and(|member| self.rows(member, rest, position))
            }
        }
    }

    /// Takes a row. Whether enough was found.
    fn row(&mut self, row: Row<'_>, position: u64) -> bool {
        match self.try_row(row) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(fault) => {
                let (name, description) = fault.describe();
                self.frames.error(false, name, description, position);
                return false;
            }
        }
        if self.results.len() + self.output.held_bytes() >= RESULT_BYTES_MAX {
            self.send();
        }
        match &mut self.rows_left {
            Some(left) if self.aggregate.is_none() => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        }
    }

    /// Whether the row remains.
    fn try_row(&mut self, row: Row<'_>) -> Result<bool, Fault> {
        let scope = Scope { row, now: self.now };
        if let Some(condition) = &self.statement.condition
            && !scope.holds(condition)?
        {
            return Ok(false);
        }
        match &self.statement.select {
            Select::All => self.output.whole(&mut self.results, &self.names, row)?,
            Select::Columns(columns) => {
                let values: Result<Vec<Value<'_>>, Fault> = columns
                    .iter()
                    .map(|column| scope.value(&column.value))
                    .collect();
                self.output
                    .values(&mut self.results, &self.names, &values?)?;
            }
            Select::Aggregate(aggregate) => {
                if let Some(total) = &mut self.aggregate {
                    match &aggregate.of {
                        Some(of) => total.add(scope.value(of)?)?,
                        None => total.count_row(),
                    }
                }
            }
            Select::Split(_) => {}
        }
        Ok(true)
    }

    fn batch(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.one_value(Value::Integer(bytes));
        }
    }

    /// A row of one value that is of no place in the blob.
    fn one_value(&mut self, value: Value<'_>) {
        let written = self.output.values(&mut self.results, &self.names, &[value]);
        if let Err(fault) = written {
            let (name, description) = fault.describe();
            self.frames.error(false, name, description, 0);
        }
    }

    /// What is known only at the end.
    fn conclude(&mut self) {
        if let Some(total) = self.aggregate.take()
            && self.rows_left != Some(0)
        {
            self.one_value(total.value());
        }
        let rest = self.split.as_mut().and_then(Split::rest);
        self.batch(rest);
    }

    fn send(&mut self) {
        self.output.flush(&mut self.results);
        if !self.results.is_empty() {
            self.frames.data(&self.results);
            self.results.clear();
        }
    }
}

/// As users are told it.
const NO_HEADER: &str =
    "Column names can be used only if 'hasHeader' is set in the config and there is a header row.";

/// The last name on the way to a field; of delimited text as the header row writes it.
fn field_name(name: &Name, steps: &[Step], header: Option<&[String]>) -> Option<String> {
    let last = steps.iter().rev().find_map(|step| match step {
        Step::Member(name) => Some(name),
        _ => None,
    });
    let name = last.unwrap_or(name);
    match header {
        Some(header) => header.iter().find(|field| name.matches(field)).cloned(),
        None => Some(name.text.clone()),
    }
}

#[cfg(test)]
mod tests;
