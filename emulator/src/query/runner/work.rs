//! Processes the rows of a query: filters, selects, aggregates and writes.

use std::collections::BTreeMap;

use smalt_protocol::{StorageError, Timestamp};

use super::RESULT_BYTES_MAX;
use crate::query::aggregate::Total;
use crate::query::avro::Frames;
use crate::query::evaluate::Scope;
use crate::query::json::Json;
use crate::query::meter::Meter;
use crate::query::moment::Moment;
use crate::query::output::{Output, ordinal_name};
use crate::query::row::{Fields, Row};
use crate::query::split::Split;
use crate::query::sql::{Column, Expr, Name, Select, Statement, Step, refuse, syntax_error};
use crate::query::value::{Fault, Value};

#[derive(Debug)]
pub(super) struct Work {
    pub(super) statement: Statement,
    pub(super) output: Output,
    pub(super) frames: Frames,
    pub(super) results: Vec<u8>,
    names: Vec<String>,
    /// Whether the first record contains names and has not been read yet.
    pub(super) awaits_header: bool,
    aggregate: Option<Total>,
    pub(super) split: Option<Split>,
    pub(super) rows_left: Option<u64>,
    pub(super) meter: Meter,
    now: Moment,
}

impl Work {
    pub(super) fn new(
        statement: Statement,
        output: Output,
        frames: Frames,
        now: Timestamp,
    ) -> Result<Self, StorageError> {
        let now =
            Moment::of(now).ok_or_else(|| StorageError::internal("the time is out of range"))?;
        let aggregate = match &statement.select {
            Select::Aggregate(aggregate) => Some(Total::new(aggregate.function)),
            _ => None,
        };
        let split = match statement.select {
            Select::Split(bytes) => Some(Split::new(bytes)),
            _ => None,
        };
        // The limit applies to the result: an aggregate is a single row.
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
            meter: Meter::default(),
            now,
        })
    }

    pub(super) fn bind_to(&mut self, fields: Fields<'_>) -> Result<(), StorageError> {
        if fields.count() > HEADER_FIELDS_MAX {
            let told = format!("The header row has more than {HEADER_FIELDS_MAX} columns.");
            return Err(refuse(&told));
        }
        let names = fields
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned());
        self.bind(Some(names.collect()))
    }

    /// Replaces field names of delimited text with positions. `header` is the first record, if it
    /// contains names.
    pub(super) fn bind(&mut self, header: Option<Vec<String>>) -> Result<(), StorageError> {
        self.awaits_header = false;
        let mut header = header.unwrap_or_default();
        if let Some(first) = header.first_mut()
            && let Some(unmarked) = first.strip_prefix('\u{feff}')
        {
            *first = unmarked.to_owned();
        }
        self.name_columns(Some(&header));
        let columns = Positions::of(&header);
        let mut refused = None;
        self.statement.each_expr(&mut |expr| {
            let Expr::Field(name, steps) = expr else {
                return;
            };
            let found = columns.find(name);
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

    pub(super) fn write_header(&mut self, header: Vec<String>) {
        if matches!(self.statement.select, Select::All) {
            self.names = header;
        }
        if self.output.has_headers() && !self.names.is_empty() {
            self.output.header(&mut self.results, &self.names);
        }
    }

    /// Sets the names of the selected values: the alias, the field name, or the position. `header`
    /// is that of delimited text.
    pub(super) fn name_columns(&mut self, header: Option<&[String]>) {
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

    /// Processes the rows at `path` in a JSON record. Returns `true` if the query is over.
    pub(super) fn rows(&mut self, json: Json<'_>, path: &[Step], position: u64) -> bool {
        let Some((step, rest)) = path.split_first() else {
            return self.row(Row::Json(json), position);
        };
        if let Err(fault) = self.meter.step(json.steps_to(None)) {
            return self.fault(fault, position);
        }
        let found = match step {
            Step::Each => return json.items().any(|item| self.rows(item, rest, position)),
            Step::Item(index) => json.item(*index),
            Step::Member(name) => json.member(name),
        };
        found.is_some_and(|found| self.rows(found, rest, position))
    }

    /// Reports an error. Returns `true` if it ends the query.
    pub(super) fn fault(&mut self, fault: Fault, position: u64) -> bool {
        let (name, description) = fault.describe();
        let is_fatal = fault.is_fatal();
        self.frames.error(is_fatal, name, description, position);
        is_fatal
    }

    /// Processes a row. Returns `true` if the query is over.
    pub(super) fn row(&mut self, row: Row<'_>, position: u64) -> bool {
        match self.try_row(row) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(fault) => {
                // Errors are buffered until the record ends.
                let told = self.meter.make(ERROR_BYTES);
                let is_over = self.fault(fault, position);
                return is_over || told.is_err_and(|fault| self.fault(fault, position));
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

    /// Writes or aggregates the row. Returns `false` if the condition excludes it.
    fn try_row(&mut self, row: Row<'_>) -> Result<bool, Fault> {
        let scope = Scope {
            row,
            now: self.now,
            meter: &self.meter,
        };
        if let Some(condition) = &self.statement.condition
            && !scope.holds(condition)?
        {
            return Ok(false);
        }
        self.meter.step(self.output.row_steps())?;
        let before = self.results.len() + self.output.held_bytes();
        match &self.statement.select {
            Select::All => {
                self.meter.step(row.bytes())?;
                self.output.whole(&mut self.results, &self.names, row)?;
            }
            Select::Columns(columns) => {
                let values: Result<Vec<Value<'_>>, Fault> = columns
                    .iter()
                    .map(|column| scope.value(&column.value))
                    .collect();
                let values = values?;
                // Counted before writing, because the same long field can be selected many times.
                self.meter
                    .make(values.iter().map(Value::text_bytes).sum())?;
                self.output
                    .values(&mut self.results, &self.names, &values)?;
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
        let written = self.results.len() + self.output.held_bytes() - before;
        self.meter.make(written)?;
        Ok(true)
    }

    pub(super) fn batch(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.one_value(Value::Integer(bytes));
        }
    }

    /// Writes a row with a single value that has no position in the blob.
    fn one_value(&mut self, value: Value<'_>) {
        let written = self.output.values(&mut self.results, &self.names, &[value]);
        if let Err(fault) = written {
            self.fault(fault, 0);
        }
    }

    /// Writes the aggregate and the last batch, which are known only at the end.
    pub(super) fn conclude(&mut self) {
        if let Some(total) = self.aggregate.take()
            && self.rows_left != Some(0)
        {
            self.one_value(total.value());
        }
        let rest = self.split.as_mut().and_then(Split::rest);
        self.batch(rest);
    }

    pub(super) fn send(&mut self) {
        self.output.flush(&mut self.results);
        if !self.results.is_empty() {
            self.frames.data(std::mem::take(&mut self.results));
        }
    }
}

/// Approximate size of a reported error, in bytes.
const ERROR_BYTES: usize = 128;
/// Maximum columns of a header row. The limit is the emulator's own.
const HEADER_FIELDS_MAX: usize = 65_536;

/// Positions of the fields of a header row; the first one of each name counts.
struct Positions<'h> {
    exact: BTreeMap<&'h str, usize>,
    folded: BTreeMap<String, usize>,
}

impl<'h> Positions<'h> {
    fn of(header: &'h [String]) -> Self {
        let (mut exact, mut folded) = (BTreeMap::new(), BTreeMap::new());
        for (position, field) in header.iter().enumerate() {
            exact.entry(field.as_str()).or_insert(position);
            let name = field.to_ascii_lowercase();
            folded.entry(name).or_insert(position);
        }
        Positions { exact, folded }
    }

    /// Returns the position of the first field that [matches](Name::matches).
    fn find(&self, name: &Name) -> Option<usize> {
        let found = match name.is_exact {
            true => self.exact.get(name.text.as_str()),
            false => self.folded.get(&name.text.to_ascii_lowercase()),
        };
        found.copied()
    }
}

/// The text that users of the service report.
const NO_HEADER: &str =
    "Column names can be used only if 'hasHeader' is set in the config and there is a header row.";

/// Returns the last name on the path to a field, for delimited text as the header row spells it.
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
