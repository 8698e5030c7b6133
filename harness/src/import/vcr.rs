//! Cassettes of vcrpy, in YAML or JSON.
//!
//! `interactions`, each with `request` (`method`, `uri`, `headers` as lists, `body`) and `response`
//! (`status.code`, `headers`, `body.string`, or `body.base64_string` in JSON).

use bytes::Bytes;

use super::node::{Node, Wrong};
use super::raw::{Raw, base64, headers, plain_body};

/// Whether a document is a cassette.
pub fn is_one(document: &Node) -> bool {
    document.get("interactions").is_some()
}

/// The exchanges of a cassette.
///
/// # Errors
/// With the place of what is wrong.
pub fn read(document: &Node) -> Result<Vec<Raw>, Wrong> {
    let interactions = document.need("interactions")?.seq()?;
    interactions.iter().map(exchange).collect()
}

fn exchange(node: &Node) -> Result<Raw, Wrong> {
    let (request, response) = (node.need("request")?, node.need("response")?);
    Ok(Raw {
        at: request.at.clone(),
        method: request.need("method")?.text()?.to_ascii_uppercase(),
        url: request.need("uri")?.text()?.to_owned(),
        request_headers: headers(request.get("headers"))?,
        request_body: body(request.get("body"))?,
        status: response.need("status")?.need("code")?.status()?,
        response_headers: headers(response.get("headers"))?,
        response_body: body(response.get("body"))?,
        began: None,
        lacks: Vec::new(),
    })
}

/// The text itself, or a map that holds it.
fn body(node: Option<&Node>) -> Result<Bytes, Wrong> {
    let Some(node) = node else {
        return Ok(Bytes::new());
    };
    if node.map().is_err() {
        return plain_body(Some(node));
    }
    match node.get("base64_string") {
        Some(packed) => base64(packed),
        None => plain_body(node.get("string")),
    }
}
