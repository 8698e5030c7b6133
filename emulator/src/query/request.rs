//! The XML document of a request: the query, and the formats of blob and response.
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
/// Maximum length of a separator, in bytes. The limit is the emulator's own.
const SEPARATOR_BYTES_MAX: usize = 16;
const JSON_SEPARATOR: &str = "\n";

/// A parsed request.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    pub(super) statement: Statement,
    pub(super) input: Format,
    pub(super) output: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Delimited(Dialect),
    /// JSON, with this separator after each record.
    Json(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Text(Format),
    /// Arrow, with this schema.
    Arrow(Vec<Field>),
}

impl QueryRequest {
    /// Parses the document.
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

/// Checks that the statement suits the format: paths require JSON, `sys.split` requires delimited
/// text.
fn check(statement: &Statement, input: &Format) -> Result<(), StorageError> {
    match input {
        Format::Delimited(_) if !statement.from.path.is_empty() => Err(sql::syntax_error()),
        Format::Json(_) if matches!(statement.select, Select::Split(_)) => {
            Err(sql::refuse("sys.split requires delimited text."))
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
        // Azure supports Parquet; the emulator does not.
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
    // A newline always ends a record, as Microsoft's own tests note.
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

/// Parses a separator; an empty element counts as absent.
fn separator(settings: &Element<'_>, name: &str) -> Result<Option<String>, StorageError> {
    match settings.child(name) {
        Some(element) if element.text.len() > SEPARATOR_BYTES_MAX => Err(wrong(element)),
        Some(element) if !element.text.is_empty() => Ok(Some(element.text.to_string())),
        _ => Ok(None),
    }
}

/// Parses a single character; `None` if the element is empty.
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
