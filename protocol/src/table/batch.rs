//! Entity group transactions: the multipart body of `$batch` and of its answer.
//!
//! A batch contains one change set of up to a hundred writes, or one query. Clients end lines with
//! CR LF or LF, both recorded; the service uses CR LF. Source: *Performing entity group
//! transactions*; recordings.

use crate::error::{ErrorCode, StorageError};
use crate::limits::{BATCH_BODY_BYTES_MAX, ENTITY_GROUP_OPERATIONS_MAX};

/// Maximum characters of a boundary. RFC 2046.
const BOUNDARY_CHARS_MAX: usize = 70;
/// Maximum header lines of one part: smalt's own limit, several times what a client sends.
const HEADERS_MAX: usize = 100;
/// The line end of answers.
const LINE_END: &str = "\r\n";

/// A parsed batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch {
    /// One query.
    Query(Request),
    /// A change set: one to a hundred writes, in order.
    Changes(Vec<Request>),
    /// The first hundred writes of a change set that has more: see [`overfull`].
    Overfull(Vec<Request>),
}

/// A request within a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method as written.
    pub method: String,
    /// The target as sent: a path within the host, or a whole URL.
    pub target: String,
    /// The headers in order, with names as sent.
    pub headers: Vec<(String, String)>,
    /// The body, without trailing line ends.
    pub body: Vec<u8>,
}

/// The answer to a request within a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, written in this order.
    pub headers: Vec<(String, String)>,
    /// The body, which may be empty.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the first value of a header; compares names without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Returns the `Content-ID` that identifies its answer. The `Content-ID` of the enclosing part
    /// is ignored.
    pub fn content_id(&self) -> Option<&str> {
        self.header("Content-ID")
    }

    /// Returns path and query, percent-encoded, starting with a slash.
    pub fn path_and_query(&self) -> &str {
        let Some((_, rest)) = self.target.split_once("://") else {
            return &self.target;
        };
        rest.find('/').map_or("/", |at| &rest[at..])
    }
}

/// Parses a batch; `content_type` is that of the outer request.
///
/// # Errors
/// 413 `RequestBodyTooLarge` beyond 4 MiB; 400 `InvalidInput` for a malformed batch: no boundary,
/// no closing line, several change sets, a query among writes.
pub fn read(content_type: &str, body: &[u8]) -> Result<Batch, StorageError> {
    if body.len() as u64 > BATCH_BODY_BYTES_MAX {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    let boundary = boundary_of(content_type).ok_or_else(|| invalid("no boundary"))?;
    let (parts, has_more) = split(body, boundary, 1)?;
    let ([part], false) = (parts.as_slice(), has_more) else {
        return Err(invalid("a batch must have one part"));
    };
    let (headers, content) = head(part)?;
    let media = header(&headers, "Content-Type").unwrap_or_default();
    if let Some(inner) = boundary_of(media) {
        return changes(content, inner);
    }
    check_http(media)?;
    let query = request(content)?;
    if query.method == "GET" {
        Ok(Batch::Query(query))
    } else {
        Err(invalid("a write outside a change set"))
    }
}

/// Writes the answer to a change set: one part per write, or a single part with the error.
pub fn write_changes(batch_boundary: &str, set_boundary: &str, answers: &[Answer]) -> Vec<u8> {
    let mut out = Vec::new();
    let media = multipart(set_boundary);
    push(&mut out, &["--", batch_boundary, LINE_END]);
    push(&mut out, &["Content-Type: ", &media, LINE_END, LINE_END]);
    for answer in answers {
        push_part(&mut out, set_boundary, answer);
    }
    push(&mut out, &["--", set_boundary, "--", LINE_END]);
    push(&mut out, &["--", batch_boundary, "--", LINE_END]);
    out
}

/// Writes the answer to a query.
pub fn write_query(batch_boundary: &str, answer: &Answer) -> Vec<u8> {
    let mut out = Vec::new();
    push_part(&mut out, batch_boundary, answer);
    push(&mut out, &["--", batch_boundary, "--", LINE_END]);
    out
}

/// Returns `multipart/mixed; boundary=..`, the content type of a batch or a change set.
pub fn multipart(boundary: &str) -> String {
    format!("multipart/mixed; boundary={boundary}")
}

/// Prefixes an error's message with the index of its write, counted from 0, unless the change set
/// has only one write, as recorded.
#[must_use]
pub fn indexed(error: StorageError, index: usize, operations: usize) -> StorageError {
    if operations < 2 {
        return error;
    }
    let message = format!("{index}:{}", error.message());
    error.with_message(message)
}

/// Returns the index and error of a change set with too many writes. The error is the answer to the
/// last permitted write; Azure/azure-storage-python#1 shows the index.
pub fn overfull() -> (usize, StorageError) {
    let message = format!(
        "The batch request operation exceeds the maximum {ENTITY_GROUP_OPERATIONS_MAX} changes per \
         change set."
    );
    let error = StorageError::new(ErrorCode::InvalidInput).with_message(message);
    (ENTITY_GROUP_OPERATIONS_MAX - 1, error)
}

fn push_part(out: &mut Vec<u8>, boundary: &str, answer: &Answer) {
    push(out, &["--", boundary, LINE_END]);
    push(out, &["Content-Type: application/http", LINE_END]);
    push(
        out,
        &["Content-Transfer-Encoding: binary", LINE_END, LINE_END],
    );
    let status = answer.status.to_string();
    push(
        out,
        &["HTTP/1.1 ", &status, " ", reason(answer.status), LINE_END],
    );
    for (name, value) in &answer.headers {
        push(out, &[name, ": ", value, LINE_END]);
    }
    push(out, &[LINE_END]);
    out.extend_from_slice(&answer.body);
    push(out, &[LINE_END]);
}

fn push(out: &mut Vec<u8>, texts: &[&str]) {
    texts
        .iter()
        .for_each(|text| out.extend_from_slice(text.as_bytes()));
}

/// Returns the reason phrase of a status.
const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

fn changes(content: &[u8], boundary: &str) -> Result<Batch, StorageError> {
    let (parts, has_more) = split(content, boundary, ENTITY_GROUP_OPERATIONS_MAX)?;
    if parts.is_empty() {
        return Err(invalid("an empty change set"));
    }
    let mut requests = Vec::with_capacity(parts.len());
    for part in parts {
        let (headers, content) = head(part)?;
        check_http(header(&headers, "Content-Type").unwrap_or_default())?;
        let request = request(content)?;
        if ["GET", "HEAD"].contains(&request.method.as_str()) {
            return Err(invalid("a query in a change set"));
        }
        requests.push(request);
    }
    Ok(if has_more {
        Batch::Overfull(requests)
    } else {
        Batch::Changes(requests)
    })
}

/// Returns the parts between the boundary lines, without the line end before each boundary. Ignores
/// the preamble and the epilogue. Stops when there are more parts than asked for, and says so.
fn split<'a>(
    body: &'a [u8],
    boundary: &str,
    parts_max: usize,
) -> Result<(Vec<&'a [u8]>, bool), StorageError> {
    let mut parts = Vec::new();
    let mut start = None;
    let mut at = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let behind = at + line.len();
        if let Some(is_last) = delimiter(line, boundary) {
            parts.extend(start.map(|start| without_line_end(&body[start..at])));
            if is_last || parts.len() == parts_max {
                return Ok((parts, !is_last));
            }
            start = Some(behind);
        }
        at = behind;
    }
    Err(invalid("no closing line"))
}

/// Returns whether the line is a boundary, and if so whether it is the closing one.
fn delimiter(line: &[u8], boundary: &str) -> Option<bool> {
    let rest = line
        .trim_ascii_end()
        .strip_prefix(b"--")?
        .strip_prefix(boundary.as_bytes())?;
    match rest {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

type Headers = Vec<(String, String)>;

/// Parses header lines; returns them and the rest after the empty line.
fn head(part: &[u8]) -> Result<(Headers, &[u8]), StorageError> {
    let mut headers = Headers::new();
    let mut rest = part;
    while !rest.is_empty() {
        let (line, behind) = line(rest)?;
        rest = behind;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("no header"))?;
        let is_folded = name.is_empty() || name.contains([' ', '\t']);
        if is_folded || headers.len() >= HEADERS_MAX {
            return Err(invalid("no header"));
        }
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok((headers, rest))
}

/// Parses `PUT /table(..) HTTP/1.1`, its headers and its body.
fn request(content: &[u8]) -> Result<Request, StorageError> {
    let (first, rest) = line(content.trim_ascii_start())?;
    let words = first
        .split_once(' ')
        .and_then(|(method, rest)| Some((method, rest.rsplit_once(' ')?)));
    let Some((method, (target, version))) = words else {
        return Err(invalid("no request line"));
    };
    let target = target.trim();
    let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    if !is_method || target.is_empty() || !version.starts_with("HTTP/1.") {
        return Err(invalid("no request line"));
    }
    let (headers, body) = head(rest)?;
    Ok(Request {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: body.trim_ascii_end().to_vec(),
    })
}

/// Returns the first line without its end, and the rest.
fn line(bytes: &[u8]) -> Result<(&str, &[u8]), StorageError> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
    let text = str::from_utf8(without_line_end(line)).map_err(|_| invalid("no text"))?;
    Ok((text, rest))
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(given, _)| given.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Returns the boundary of a multipart content type; `None` for anything else.
fn boundary_of(content_type: &str) -> Option<&str> {
    let mut pieces = content_type.split(';');
    let media = pieces.next()?.trim();
    if !media.eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let given = pieces.find_map(|piece| {
        let (name, value) = piece.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("boundary")
            .then(|| value.trim())
    })?;
    let bare = given
        .strip_prefix('"')
        .and_then(|given| given.strip_suffix('"'))
        .unwrap_or(given);
    let is_short = (1..=BOUNDARY_CHARS_MAX).contains(&bare.len());
    let is_plain = bare.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (is_short && is_plain).then_some(bare)
}

fn check_http(media: &str) -> Result<(), StorageError> {
    let media = media.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/http") {
        Ok(())
    } else {
        Err(invalid("a part is not a request"))
    }
}

fn invalid(cause: &str) -> StorageError {
    StorageError::new(ErrorCode::InvalidInput).with_cause(cause)
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
