//! Answers against what the model says.

use serde_json::Value as Json;
use smalt_model::vocabulary::tables::{Properties, Row, TableExpected, TableOperation};
use smalt_protocol::table::{BodyFormat, payload};

use super::Bound;
use super::requests::Exchange;
use crate::histories::server::Answer;

/// What one request of a transaction, or one alone, was answered.
struct Part {
    status: u16,
    tag: Option<String>,
    body: Vec<u8>,
}

/// Compares, and binds the tags that are new.
pub(super) fn judge(
    operation: &TableOperation,
    expected: &TableExpected,
    exchange: &Exchange,
    bound: &mut Bound,
) -> Result<(), String> {
    let (_, first) = exchange.0.first().ok_or("nothing was asked")?;
    if let TableOperation::Batch(changes) = operation {
        same("status", &first.status, &202)?;
        let several = changes.len() > 1;
        return judge_batch(expected, &parts(first)?, several, bound);
    }
    if let TableOperation::Query { page, .. } = operation
        && expected.code.is_none()
    {
        return judge_rows(expected, exchange, *page, bound);
    }
    let alone = Part {
        status: first.status,
        tag: first.header("etag").map(str::to_owned),
        body: first.body.to_vec(),
    };
    judge_part(expected, &alone, None)?;
    if let (TableOperation::Get(_), [row]) = (operation, expected.rows.as_slice()) {
        judge_row(row, &json(&alone.body)?, bound)?;
    }
    match (&expected.tags[..], &alone.tag) {
        ([Some(tag)], Some(text)) => bound.see(*tag, text),
        ([] | [None], None) => Ok(()),
        (tags, text) => Err(format!("tags {tags:?} and {text:?}")),
    }
}

fn judge_batch(
    expected: &TableExpected,
    parts: &[Part],
    several: bool,
    bound: &mut Bound,
) -> Result<(), String> {
    if expected.code.is_some() {
        let [part] = parts else {
            return Err(format!("{} parts for a refusal", parts.len()));
        };
        return judge_part(expected, part, expected.place.filter(|_| several));
    }
    same("parts", &parts.len(), &expected.tags.len())?;
    for (part, tag) in parts.iter().zip(&expected.tags) {
        same("status", &part.status, &expected.status)?;
        match (tag, &part.tag) {
            (Some(tag), Some(text)) => bound.see(*tag, text)?,
            (None, None) => {}
            (tag, text) => return Err(format!("tag {tag:?} and {text:?}")),
        }
    }
    Ok(())
}

/// Status, and of a refusal its code and the place that its message begins with.
fn judge_part(expected: &TableExpected, part: &Part, place: Option<usize>) -> Result<(), String> {
    same("status", &part.status, &expected.status)?;
    let Some(code) = expected.code else {
        return Ok(());
    };
    let error = json(&part.body)?["odata.error"].take();
    same("code", &error["code"].as_str(), &Some(code.as_str()))?;
    let message = error["message"]["value"].as_str().unwrap_or_default();
    let digits = message.split_once(':').map(|(digits, _)| digits);
    let told = digits.and_then(|digits| digits.parse().ok());
    same("place", &told, &place)
}

/// All pages together; none larger than was asked for.
fn judge_rows(
    expected: &TableExpected,
    exchange: &Exchange,
    page: u32,
    bound: &mut Bound,
) -> Result<(), String> {
    let mut shown = Vec::new();
    for (_, answer) in &exchange.0 {
        same("status", &answer.status, &expected.status)?;
        let values = json(&answer.body)?["value"].take();
        let Json::Array(values) = values else {
            return Err("no list".to_owned());
        };
        if values.len() > page as usize {
            return Err(format!("{} entities on a page of {page}", values.len()));
        }
        shown.extend(values);
    }
    same("entities", &shown.len(), &expected.rows.len())?;
    for (row, value) in expected.rows.iter().zip(&shown) {
        judge_row(row, value, bound)?;
    }
    Ok(())
}

fn judge_row(row: &Row, shown: &Json, bound: &mut Bound) -> Result<(), String> {
    let read = payload::read_entity(BodyFormat::Json, shown.to_string().as_bytes());
    let read = read.map_err(|error| error.to_string())?;
    same(
        "partition",
        &read.partition_key.as_ref(),
        &Some(&row.id.partition_key),
    )?;
    same("row", &read.row_key.as_ref(), &Some(&row.id.row_key))?;
    let owned = |(name, value): (&str, &_)| (name.to_owned(), Clone::clone(value));
    let properties: Properties = read.properties.iter().map(owned).collect();
    same("properties", &properties, &row.properties)?;
    let tag = shown["odata.etag"].as_str().unwrap_or_default();
    bound.see(row.tag, tag)
}

/// The parts of an answer to a transaction, read by their lines.
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

fn json(body: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, wanted: &T) -> Result<(), String> {
    if is == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {is:?}, not {wanted:?}"))
    }
}
