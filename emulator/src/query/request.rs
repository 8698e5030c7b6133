//! The document of a request: a query, and what the blob and the answer are written in.
//!
//! Source: "Query Blob Contents", request body; the swagger of version 2024-08-04.

use smalt_protocol::xml::read::ELEMENTS_MAX;
use smalt_protocol::xml::{Element, read_document};
use smalt_protocol::{ErrorCode, StorageError};

use super::arrow::{Field, Kind};
use super::csv::Dialect;
use super::sql::{self, Select, Statement};

/// "The maximum size of the query expression is 256KiB."
const EXPRESSION_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a separator: ours.
const SEPARATOR_BYTES_MAX: usize = 16;
/// How JSON records are set apart where nothing is said.
const JSON_SEPARATOR: &str = "\n";

/// What is asked, understood.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    /// The query.
    pub(super) statement: Statement,
    /// What the blob is written in.
    pub(super) input: Format,
    /// What the answer is to be written in.
    pub(super) output: Answer,
}

/// How rows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Delimited text.
    Delimited(Dialect),
    /// JSON, with this text after each record.
    Json(String),
}

/// How an answer is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// As text.
    Text(Format),
    /// As Arrow, with this schema.
    Arrow(Vec<Field>),
}

impl QueryRequest {
    /// Reads the document.
    ///
    /// # Errors
    /// 400 `InvalidXmlDocument`, `InvalidXmlNodeValue`, `UnsupportedXmlNode`, `InvalidInput`,
    /// `ErrorProcessingQueryExpression`.
    pub fn parse(document: &[u8]) -> Result<Self, StorageError> {
        let root = read_document(document, ELEMENTS_MAX)?;
        if root.name != "QueryRequest" {
            return Err(root.unexpected());
        }
        let kind = root.required("QueryType")?;
        if !kind.trimmed().eq_ignore_ascii_case("SQL") {
            return Err(wrong(kind));
        }
        let expression = root.required("Expression")?;
        if expression.text.len() > EXPRESSION_BYTES_MAX {
            return Err(ErrorCode::InvalidInput.into());
        }
        let input = match root.child("InputSerialization") {
            Some(serialization) => input(serialization)?,
            None => Format::Delimited(Dialect::default()),
        };
        let output = match root.child("OutputSerialization") {
            Some(serialization) => output(serialization)?,
            None => Answer::Text(Format::Delimited(Dialect::default())),
        };
        let statement = sql::parse(&expression.text)?;
        check(&statement, &input)?;
        Ok(QueryRequest {
            statement,
            input,
            output,
        })
    }
}

/// What fits together: paths are of JSON, splits of delimited text.
fn check(statement: &Statement, input: &Format) -> Result<(), StorageError> {
    match input {
        Format::Delimited(_) if !statement.from.path.is_empty() => Err(sql::syntax_error()),
        Format::Json(_) if matches!(statement.select, Select::Split(_)) => {
            Err(sql::refuse("sys.split is for delimited text only."))
        }
        _ => Ok(()),
    }
}

fn input(serialization: &Element<'_>) -> Result<Format, StorageError> {
    let format = serialization.required("Format")?;
    let kind = format.required("Type")?;
    match kind.trimmed() {
        "delimited" => delimited(format),
        "json" => json(format),
        // Known, and of a format that is not read here.
        "parquet" => Err(unsupported(kind)),
        _ => Err(wrong(kind)),
    }
}

fn output(serialization: &Element<'_>) -> Result<Answer, StorageError> {
    let format = serialization.required("Format")?;
    let kind = format.required("Type")?;
    match kind.trimmed() {
        "delimited" => delimited(format).map(Answer::Text),
        "json" => json(format).map(Answer::Text),
        "arrow" => arrow(format),
        _ => Err(wrong(kind)),
    }
}

fn delimited(format: &Element<'_>) -> Result<Format, StorageError> {
    let mut dialect = Dialect::default();
    let Some(settings) = format.child("DelimitedTextConfiguration") else {
        return Ok(Format::Delimited(dialect));
    };
    if let Some(column) = separator(settings, "ColumnSeparator")? {
        dialect.column = column;
    }
    if let Some(record) = separator(settings, "RecordSeparator")? {
        dialect.record = record;
    }
    if let Some(quote) = settings.child("FieldQuote") {
        dialect.quote = sign(quote)?;
    }
    if let Some(escape) = settings.child("EscapeChar") {
        dialect.escape = sign(escape)?;
    }
    if let Some(has_headers) = settings.child("HasHeaders") {
        dialect.has_headers = match has_headers.trimmed() {
            "true" | "1" => true,
            "false" | "0" | "" => false,
            _ => return Err(wrong(has_headers)),
        };
    }
    // A line always ends a record, whatever else does: Microsoft's own tests note it.
    let is_line = matches!(dialect.column.as_str(), "\n" | "\r");
    if is_line || dialect.column == dialect.record {
        return Err(sql::refuse(
            "Field delimiter and record delimiter must be different characters.",
        ));
    }
    Ok(Format::Delimited(dialect))
}

fn json(format: &Element<'_>) -> Result<Format, StorageError> {
    let settings = format.child("JsonTextConfiguration");
    let given = match settings {
        Some(settings) => separator(settings, "RecordSeparator")?,
        None => None,
    };
    Ok(Format::Json(
        given.unwrap_or_else(|| JSON_SEPARATOR.to_owned()),
    ))
}

/// The schema that the rows are put into.
fn arrow(format: &Element<'_>) -> Result<Answer, StorageError> {
    let schema = format.required("ArrowConfiguration")?.required("Schema")?;
    if schema.children.is_empty() {
        return Err(wrong(schema));
    }
    let field = |element: &Element<'_>| {
        let digits = |name: &str| match element.child(name) {
            None => Ok(0),
            Some(digits) => digits.trimmed().parse().map_err(|_| wrong(digits)),
        };
        let (precision, scale) = (digits("Precision")?, digits("Scale")?);
        let kind = element.required("Type")?;
        let name = element.child("Name").map(|name| name.text.to_string());
        Ok(Field {
            name: name.unwrap_or_default(),
            kind: Kind::parse(kind.trimmed(), precision, scale).ok_or_else(|| wrong(kind))?,
        })
    };
    let fields: Result<_, StorageError> = schema.children.iter().map(field).collect();
    Ok(Answer::Arrow(fields?))
}

/// A separator; an empty one is none given.
fn separator(settings: &Element<'_>, name: &str) -> Result<Option<String>, StorageError> {
    match settings.child(name) {
        Some(element) if element.text.len() > SEPARATOR_BYTES_MAX => Err(wrong(element)),
        Some(element) if !element.text.is_empty() => Ok(Some(element.text.to_string())),
        _ => Ok(None),
    }
}

/// One character, or none where the element is empty.
fn sign(element: &Element<'_>) -> Result<Option<u8>, StorageError> {
    match element.text.as_bytes() {
        [] => Ok(None),
        [sign] => Ok(Some(*sign)),
        _ => Err(wrong(element)),
    }
}

fn wrong(element: &Element<'_>) -> StorageError {
    of_node(ErrorCode::InvalidXmlNodeValue, element)
}

fn unsupported(element: &Element<'_>) -> StorageError {
    of_node(ErrorCode::UnsupportedXmlNode, element)
}

fn of_node(code: ErrorCode, element: &Element<'_>) -> StorageError {
    StorageError::new(code)
        .with_element("XmlNodeName", element.name)
        .with_element("XmlNodeValue", &element.text)
}
