//! Recordings of the test proxy that the Azure SDKs share, in JSON.
//!
//! `Entries`, each with `RequestUri`, `RequestMethod`, `RequestHeaders`, `RequestBody`,
//! `StatusCode`, `ResponseHeaders`, `ResponseBody`. A body is nothing, a text, a list of lines, a
//! document of JSON, or Base64 where the media type is no text.

use bytes::Bytes;

use super::node::{Node, Value, Wrong};
use super::raw::{Raw, base64, header, headers};

/// Whether a document is a recording of the test proxy.
pub fn is_one(document: &Node) -> bool {
    document.get("Entries").is_some()
}

/// The exchanges of a recording.
///
/// # Errors
/// With the place of what is wrong.
pub fn read(document: &Node) -> Result<Vec<Raw>, Wrong> {
    let entries = document.need("Entries")?.seq()?;
    entries.iter().map(exchange).collect()
}

fn exchange(node: &Node) -> Result<Raw, Wrong> {
    let mut lacks = Vec::new();
    let request_headers = headers(node.get("RequestHeaders"))?;
    let response_headers = headers(node.get("ResponseHeaders"))?;
    let mut body = |name: &str, headers: &[(String, String)]| {
        let media_type = header(headers, "content-type");
        body(name, node.get(name), media_type, &mut lacks)
    };
    let request_body = body("RequestBody", &request_headers)?;
    let response_body = body("ResponseBody", &response_headers)?;
    Ok(Raw {
        at: node.at.clone(),
        method: node.need("RequestMethod")?.text()?.to_ascii_uppercase(),
        url: node.need("RequestUri")?.text()?.to_owned(),
        request_headers,
        request_body,
        status: node.need("StatusCode")?.status()?,
        response_headers,
        response_body,
        began: None,
        lacks,
    })
}

fn body(
    name: &str,
    node: Option<&Node>,
    media_type: &str,
    lacks: &mut Vec<String>,
) -> Result<Bytes, Wrong> {
    let Some(node) = node else {
        return Ok(Bytes::new());
    };
    match &node.value {
        Value::Seq(lines) if lines.iter().all(|line| line.text().is_ok()) => {
            let lines: Result<Vec<&str>, Wrong> = lines.iter().map(Node::text).collect();
            Ok(Bytes::from(lines?.concat()))
        }
        Value::Seq(_) | Value::Map(_) | Value::Bool(_) => {
            lacks.push(format!("{name}: JSON, written anew by the recorder"));
            Ok(Bytes::from(node.json()))
        }
        _ if is_text(media_type) => Ok(Bytes::from(node.text()?.to_owned())),
        _ => base64(node).or_else(|_| {
            lacks.push(format!("{name}: text where Base64 was due, taken as it is"));
            Ok(Bytes::from(node.text()?.to_owned()))
        }),
    }
}

/// The media types whose bodies the proxy writes as text.
fn is_text(media_type: &str) -> bool {
    let known = ["text/", "xml", "json", "charset", "urlencoded"];
    known.iter().any(|part| media_type.contains(part))
}
