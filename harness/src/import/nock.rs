//! Recordings of nock, as objects in JSON (`nock.back`, or `output_objects: true`).
//!
//! A list of `scope`, `method`, `path`, `body`, `status`, `response`, `rawHeaders`, and `reqheaders`
//! where the recorder was asked for them. What nock writes as JavaScript is a program: it is not
//! read.

use bytes::Bytes;

use super::node::{Node, Value, Wrong};
use super::raw::{Raw, headers, plain_body};

/// Whether a document is a recording of nock.
pub fn is_one(document: &Node) -> bool {
    let entries = document.seq().unwrap_or_default();
    entries
        .first()
        .is_some_and(|entry| entry.get("scope").is_some())
}

/// The exchanges of a recording.
///
/// # Errors
/// With the place of what is wrong.
pub fn read(document: &Node) -> Result<Vec<Raw>, Wrong> {
    document.seq()?.iter().map(exchange).collect()
}

fn exchange(node: &Node) -> Result<Raw, Wrong> {
    let mut lacks = Vec::new();
    let response_headers = answered(node)?;
    let mut request_headers = headers(node.get("reqheaders"))?;
    if request_headers.is_empty() {
        lacks.push("no headers of the request".to_owned());
        let version = response_headers.iter().find(|(n, _)| n == "x-ms-version");
        if let Some(version) = version {
            lacks.push("x-ms-version: that of the answer".to_owned());
            request_headers.push(version.clone());
        }
    }
    let scope = node.need("scope")?.text()?;
    // The port that the scheme means anyway is no part of the name.
    let scope = scope.trim_end_matches(":443").trim_end_matches(":80");
    let is_binary = node.get("responseIsBinary").map(|flag| &flag.value);
    let response_body = match node.get("response") {
        Some(answer) if is_binary == Some(&Value::Bool(true)) => hex(answer)?,
        answer => body("response", answer, &mut lacks)?,
    };
    Ok(Raw {
        at: node.at.clone(),
        method: node.need("method")?.text()?.to_ascii_uppercase(),
        url: format!("{scope}{}", node.need("path")?.text()?),
        request_headers,
        request_body: body("body", node.get("body"), &mut lacks)?,
        status: node.need("status")?.status()?,
        response_headers,
        response_body,
        began: None,
        lacks,
    })
}

/// `rawHeaders`, names and values in turn; or a map.
fn answered(node: &Node) -> Result<Vec<(String, String)>, Wrong> {
    let Some(raw) = node.get("rawHeaders") else {
        return headers(node.get("headers"));
    };
    let Value::Seq(values) = &raw.value else {
        return headers(Some(raw));
    };
    let pair = |pair: &[Node]| match pair {
        [name, value] => Ok((name.text()?.to_ascii_lowercase(), value.text()?.to_owned())),
        _ => Err(raw.wrong("names and values in turn are due")),
    };
    values.chunks(2).map(pair).collect()
}

fn body(name: &str, node: Option<&Node>, lacks: &mut Vec<String>) -> Result<Bytes, Wrong> {
    match node {
        Some(node) if matches!(node.value, Value::Map(_) | Value::Seq(_)) => {
            lacks.push(format!("{name}: JSON, written anew by the recorder"));
            Ok(Bytes::from(node.json()))
        }
        node => plain_body(node),
    }
}

/// Bytes in hex, as one text or in pieces.
fn hex(node: &Node) -> Result<Bytes, Wrong> {
    let text = match &node.value {
        Value::Seq(pieces) => {
            let pieces: Result<Vec<&str>, Wrong> = pieces.iter().map(Node::text).collect();
            pieces?.concat()
        }
        _ => node.text()?.to_owned(),
    };
    let byte = |at: usize| {
        let pair = text.get(at..at + 2);
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.map(Bytes::from).ok_or_else(|| node.wrong("not hex"))
}
