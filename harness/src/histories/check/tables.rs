//! Parses an answer of the Table service, and compares it with the model's.

use serde_json::Value as Json;
use smalt_model::vocabulary::tables::{Properties, RowId, TableExpected, TableOperation};
use smalt_protocol::table::{BodyFormat, continuation, payload};

use crate::histories::names::Names;
use crate::wire::Answer;

/// A parsed answer, with ETags as strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Status; for a rejected transaction, that of its only part.
    pub status: u16,
    /// Error code.
    pub code: Option<String>,
    /// Index of the failed operation, from the error message.
    pub place: Option<usize>,
    /// ETags of the entities that were changed, or read by their keys.
    pub tags: Vec<Option<String>>,
    /// Entities of all pages, with their ETags.
    pub rows: Vec<(RowId, String, Properties)>,
    /// First entity of the next page, from the continuation token.
    pub next: Option<RowId>,
}

impl Seen {
    /// Returns status, code and index.
    pub fn summary(&self) -> String {
        let code = self.code.as_deref().unwrap_or_default();
        let place = self.place.map(|place| format!("at {place}"));
        let place = place.unwrap_or_default();
        format!("{} {code} {place}", self.status)
            .trim_end()
            .to_owned()
    }
}

/// Parses an answer, including the further pages of a query.
///
/// # Errors
/// When the operation cannot have such an answer in any state.
pub fn read(
    operation: &TableOperation,
    first: &Answer,
    further: &[Answer],
) -> Result<Seen, String> {
    if matches!(operation, TableOperation::Batch(_)) && first.status == 202 {
        return of_parts(&parts(first)?);
    }
    if let Some(code) = first.header("x-ms-error-code") {
        return Ok(Seen {
            status: first.status,
            code: Some(code.to_owned()),
            ..Seen::default()
        });
    }
    let part = Part {
        status: first.status,
        tag: first.header("etag").map(str::to_owned),
        body: first.body.to_vec(),
    };
    let mut seen = part.seen()?;
    if seen.code.is_some() {
        return Ok(seen);
    }
    match operation {
        TableOperation::Get(..) => seen.rows = vec![row(&json(&part.body)?)?],
        TableOperation::Query { page, .. } => {
            for answer in std::iter::once(first).chain(further) {
                seen.rows.extend(rows(answer, *page)?);
            }
        }
        TableOperation::Page { most, .. } => {
            seen.rows = rows(first, *most)?;
            seen.next = next(first)?;
        }
        TableOperation::Change(_) if part.tag.is_none() => seen.tags = vec![None],
        _ => {}
    }
    Ok(seen)
}

/// Compares an answer with the expected one, and records ETags.
///
/// # Errors
/// The first difference.
pub fn judge(
    expected: &TableExpected,
    seen: Option<&Seen>,
    names: &mut Names,
) -> Result<(), String> {
    let seen = seen.ok_or("not an answer of the Table service")?;
    let code = expected.code.map(|code| code.as_str().to_owned());
    let wanted = Seen {
        status: expected.status,
        code,
        place: expected.place,
        ..Seen::default()
    };
    same("answer", &seen.summary(), &wanted.summary())?;
    same("tags", &seen.tags.len(), &expected.tags.len())?;
    for (shown, tag) in seen.tags.iter().zip(&expected.tags) {
        match (shown, tag) {
            (Some(text), Some(tag)) => names.see_entity_tag(*tag, text)?,
            (None, None) => {}
            (shown, tag) => return Err(format!("tag {shown:?} for {tag:?}")),
        }
    }
    same("entities", &seen.rows.len(), &expected.rows.len())?;
    for ((id, text, properties), row) in seen.rows.iter().zip(&expected.rows) {
        same("entity", id, &row.id)?;
        same("properties", properties, &row.properties)?;
        names.see_entity_tag(row.tag, text)?;
    }
    same("next page", &seen.next, &expected.next)
}

/// The answer to a single request, or to one in a transaction.
struct Part {
    status: u16,
    tag: Option<String>,
    body: Vec<u8>,
}

impl Part {
    /// Returns status and ETag; for an error also its code and the index in its message.
    fn seen(&self) -> Result<Seen, String> {
        let mut seen = Seen {
            status: self.status,
            tags: self.tag.iter().cloned().map(Some).collect(),
            ..Seen::default()
        };
        if self.status >= 400 {
            let error = json(&self.body)?["odata.error"].take();
            let code = error["code"].as_str().ok_or("an error without a code")?;
            let message = error["message"]["value"].as_str().unwrap_or_default();
            let digits = message.split_once(':').map(|(digits, _)| digits);
            seen.place = digits.and_then(|digits| digits.parse().ok());
            seen.code = Some(code.to_owned());
        }
        Ok(seen)
    }
}

/// Combines the parts of a transaction: all of them, or the one that failed.
fn of_parts(parts: &[Part]) -> Result<Seen, String> {
    let first = parts.first().ok_or("no part")?.seen()?;
    if first.code.is_some() {
        same("parts of an error", &parts.len(), &1)?;
        return Ok(first);
    }
    for part in parts {
        same("status of a part", &part.status, &first.status)?;
    }
    Ok(Seen {
        tags: parts.iter().map(|part| part.tag.clone()).collect(),
        ..first
    })
}

/// Splits the answer to a transaction into its parts.
fn parts(answer: &Answer) -> Result<Vec<Part>, String> {
    let text = str::from_utf8(&answer.body).map_err(|error| error.to_string())?;
    let mut parts = Vec::new();
    for piece in text.split("HTTP/1.1 ").skip(1) {
        let (head, rest) = piece.split_once("\r\n\r\n").ok_or("no head")?;
        let (body, _) = rest.split_once("\r\n--").ok_or("no boundary")?;
        let status = head
            .split(' ')
            .next()
            .and_then(|status| status.parse().ok());
        let tag = head.lines().find_map(|line| line.strip_prefix("ETag: "));
        parts.push(Part {
            status: status.ok_or("no status")?,
            tag: tag.map(str::to_owned),
            body: body.as_bytes().to_vec(),
        });
    }
    Ok(parts)
}

/// Returns the entities of a page, which must not exceed the requested size.
fn rows(answer: &Answer, most: u32) -> Result<Vec<(RowId, String, Properties)>, String> {
    same("status of a page", &answer.status, &200)?;
    let Json::Array(values) = json(&answer.body)?["value"].take() else {
        return Err("no list".to_owned());
    };
    if values.len() > most as usize {
        return Err(format!("{} entities on a page of {most}", values.len()));
    }
    values.iter().map(row).collect()
}

fn row(shown: &Json) -> Result<(RowId, String, Properties), String> {
    let read = payload::read_entity(BodyFormat::Json, shown.to_string().as_bytes());
    let read = read.map_err(|error| error.to_string())?;
    let (Some(partition_key), Some(row_key)) = (read.partition_key, read.row_key) else {
        return Err("an entity without its keys".to_owned());
    };
    let owned = |(name, value): (&str, &_)| (name.to_owned(), Clone::clone(value));
    let tag = shown["odata.etag"].as_str().unwrap_or_default();
    Ok((
        RowId {
            partition_key,
            row_key,
        },
        tag.to_owned(),
        read.properties.iter().map(owned).collect(),
    ))
}

/// Returns the start of the next page.
fn next(answer: &Answer) -> Result<Option<RowId>, String> {
    let read = |name: &str| {
        let token = answer.header(name).map(continuation::read);
        token.transpose().map_err(|error| error.to_string())
    };
    let partition_key = read("x-ms-continuation-nextpartitionkey")?;
    let row_key = read("x-ms-continuation-nextrowkey")?;
    Ok(partition_key
        .zip(row_key)
        .map(|(partition_key, row_key)| RowId {
            partition_key,
            row_key,
        }))
}

fn json(body: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(body).map_err(|error| format!("invalid JSON: {error}"))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, wanted: &T) -> Result<(), String> {
    if is == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {is:?} in place of {wanted:?}"))
    }
}
