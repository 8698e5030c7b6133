//! HTTP Archive 1.2, as browsers and proxies save it.
//!
//! `log.entries`, each with `startedDateTime`, `request` (`method`, `url`, `headers`, `postData`)
//! and `response` (`status`, `headers`, `content`).

use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::node::{Node, Wrong};
use super::raw::{Raw, base64, plain_body};

/// Whether a document is an archive.
pub fn is_one(document: &Node) -> bool {
    let log = document.get("log");
    log.is_some_and(|log| log.get("entries").is_some())
}

/// The exchanges of an archive.
///
/// # Errors
/// With the place of what is wrong.
pub fn read(document: &Node) -> Result<Vec<Raw>, Wrong> {
    let entries = document.need("log")?.need("entries")?.seq()?;
    let mut exchanges = Vec::with_capacity(entries.len());
    for entry in entries {
        exchanges.extend(exchange(entry)?);
    }
    Ok(exchanges)
}

/// `None` where the browser got no answer: it notes the status 0.
fn exchange(node: &Node) -> Result<Option<Raw>, Wrong> {
    let (request, response) = (node.need("request")?, node.need("response")?);
    let status = response.need("status")?;
    if status.text()? == "0" {
        return Ok(None);
    }
    let posted = request.get("postData");
    let began = node.get("startedDateTime").map(Node::text).transpose()?;
    Ok(Some(Raw {
        at: node.at.clone(),
        method: request.need("method")?.text()?.to_ascii_uppercase(),
        url: request.need("url")?.text()?.to_owned(),
        request_headers: headers(request)?,
        request_body: match posted {
            Some(posted) => body(posted)?,
            None => Bytes::new(),
        },
        status: status.status()?,
        response_headers: headers(response)?,
        response_body: body(response.need("content")?)?,
        began: began.and_then(time),
        lacks: Vec::new(),
    }))
}

/// `2026-11-21T11:00:00.000Z`; times of other zones are left to the `Date` of the answer.
fn time(text: &str) -> Option<Timestamp> {
    Timestamp::parse_iso(text)
}

/// A list of `{name, value}`; the pseudo headers of HTTP/2 are none.
fn headers(node: &Node) -> Result<Vec<(String, String)>, Wrong> {
    let mut headers = Vec::new();
    for header in node.need("headers")?.seq()? {
        let name = header.need("name")?.text()?.to_ascii_lowercase();
        let value = header.get("value").map(Node::text).transpose()?;
        if !name.starts_with(':') {
            headers.push((name, value.unwrap_or_default().to_owned()));
        }
    }
    Ok(headers)
}

fn body(node: &Node) -> Result<Bytes, Wrong> {
    let encoding = node.get("encoding").map(Node::text).transpose()?;
    match (node.get("text"), encoding) {
        (Some(text), Some("base64")) => base64(text),
        (text, _) => plain_body(text),
    }
}
