//! An exchange as a recorder kept it, before anything is scrubbed or renamed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::node::{Node, Value, Wrong};

/// One request and its answer. Names of headers are in lower case.
#[derive(Clone, Debug)]
pub struct Raw {
    /// Where it begins in its file.
    pub at: String,
    /// The method.
    pub method: String,
    /// Absolute.
    pub url: String,
    /// In order.
    pub request_headers: Vec<(String, String)>,
    /// The request's body.
    pub request_body: Bytes,
    /// The status code.
    pub status: u16,
    /// In order.
    pub response_headers: Vec<(String, String)>,
    /// The answer's body.
    pub response_body: Bytes,
    /// When it began, where the recorder noted it.
    pub began: Option<Timestamp>,
    /// What the recorder dropped or changed, in words.
    pub lacks: Vec<String>,
}

/// Headers in any of the forms that recorders write: a map of texts or of lists of texts.
///
/// # Errors
/// When it is neither.
pub fn headers(node: Option<&Node>) -> Result<Vec<(String, String)>, Wrong> {
    let Some(node) = node else {
        return Ok(Vec::new());
    };
    let mut headers = Vec::new();
    for (name, value) in node.map()? {
        let name = name.to_ascii_lowercase();
        match &value.value {
            Value::Seq(values) => {
                let values: Result<Vec<&str>, Wrong> = values.iter().map(Node::text).collect();
                // The products of one header, which a recorder took apart.
                let between = if name == "server" { " " } else { "," };
                headers.push((name, values?.join(between)));
            }
            Value::Null => {}
            _ => headers.push((name, value.text()?.to_owned())),
        }
    }
    Ok(headers)
}

/// A header's value.
pub fn header<'h>(headers: &'h [(String, String)], name: &str) -> &'h str {
    let found = headers.iter().find(|(known, _)| known == name);
    found.map_or("", |(_, value)| value.as_str())
}

/// A body that is text, `!!binary` or nothing.
///
/// # Errors
/// When it is something else.
pub fn plain_body(node: Option<&Node>) -> Result<Bytes, Wrong> {
    match node.map(|node| (&node.value, node)) {
        None => Ok(Bytes::new()),
        Some((Value::Bytes(bytes), _)) => Ok(Bytes::from(bytes.clone())),
        Some((_, node)) => Ok(Bytes::from(node.text()?.to_owned())),
    }
}

/// Base64 at a place.
///
/// # Errors
/// When it is none.
pub fn base64(node: &Node) -> Result<Bytes, Wrong> {
    let decoded = STANDARD.decode(node.text()?);
    let bytes = decoded.map_err(|error| node.wrong(format!("not Base64: {error}")))?;
    Ok(Bytes::from(bytes))
}
