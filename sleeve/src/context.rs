//! The operation context on the wire: `x-ms-client-request-id`.
//!
//! The id is the caller's own JSON (Gridwich: the *operation context*). Muting is part of the id,
//! so that the receiver of the storage notification can still see it (G8, G9): a muted context is a
//! JSON object with `"muted": true`. The rest of the id stays as the caller wrote it.

use serde_json::{Map, Value};

use crate::port::CallContext;

/// The service truncates or rejects longer ids (Set Blob Expiry: "1-KiB character limit").
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// JSON member that marks the call as muted.
const MUTED: &str = "muted";
/// JSON member that holds an id which is not itself a JSON object (a GUID, a word).
const WRAPPED: &str = "id";

impl CallContext {
    /// Creates a context from the id of a notification. Never fails: a foreign id (a GUID, an empty
    /// string, malformed JSON) is kept unchanged and not muted.
    pub fn from_client_request_id(text: &str) -> Self {
        let muted = match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(object)) => object.get(MUTED) == Some(&Value::Bool(true)),
            _ => false,
        };
        CallContext {
            client_request_id: text.to_owned(),
            muted,
        }
    }
}

/// Returns the header's value, `None` for an empty context, or why the context is invalid.
pub(crate) fn header_value(cx: &CallContext) -> Result<Option<String>, String> {
    if cx.client_request_id.is_empty() && !cx.muted {
        return Ok(None);
    }
    let text = if cx.muted {
        muted_text(&cx.client_request_id)
    } else {
        cx.client_request_id.clone()
    };
    let text = escape_non_ascii(&text);
    if let Some(c) = text.chars().find(|c| !matches!(c, ' '..='~')) {
        return Err(format!("client request id has the character {c:?}"));
    }
    if text.len() > CLIENT_REQUEST_ID_BYTES_MAX {
        return Err(format!(
            "client request id has {} bytes, more than {CLIENT_REQUEST_ID_BYTES_MAX}",
            text.len()
        ));
    }
    Ok(Some(text))
}

fn muted_text(id: &str) -> String {
    let mut object = match serde_json::from_str::<Value>(id) {
        Ok(Value::Object(object)) => object,
        _ if id.is_empty() => Map::new(),
        _ => Map::from_iter([(WRAPPED.to_owned(), Value::String(id.to_owned()))]),
    };
    object.insert(MUTED.to_owned(), Value::Bool(true));
    Value::Object(object).to_string()
}

/// Replaces characters that a header cannot carry with JSON escapes. Other text has no such escapes
/// and passes unchanged; the caller's check then rejects it.
fn escape_non_ascii(text: &str) -> String {
    if text.is_ascii() || !text.starts_with('{') {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(id: &str, muted: bool) -> Result<Option<String>, String> {
        header_value(&CallContext {
            client_request_id: id.to_owned(),
            muted,
        })
    }

    /// G9: muting is part of the id and nothing else.
    #[test]
    fn muting_is_part_of_the_id() {
        let table = [
            ("", false, None),
            ("", true, Some(r#"{"muted":true}"#)),
            (r#"{"worker":"w1"}"#, false, Some(r#"{"worker":"w1"}"#)),
            (
                r#"{"worker":"w1"}"#,
                true,
                Some(r#"{"muted":true,"worker":"w1"}"#),
            ),
            ("8a1c", true, Some(r#"{"id":"8a1c","muted":true}"#)),
            (
                r#"{"n":"é😀"}"#,
                false,
                Some(r#"{"n":"\u00e9\ud83d\ude00"}"#),
            ),
        ];
        for (id, muted, expected) in table {
            let text = wire(id, muted).unwrap();
            assert_eq!(text.as_deref(), expected, "{id} {muted}");
            if let Some(text) = text {
                assert_eq!(CallContext::from_client_request_id(&text).muted, muted);
            }
        }
    }

    /// DG6: exactly 1 KiB is allowed.
    #[test]
    fn the_limit_is_enforced() {
        assert!(wire(&"x".repeat(1024), false).is_ok());
        assert!(wire(&"x".repeat(1025), false).is_err());
        assert!(wire(&"x".repeat(1024), true).is_err());
        assert!(wire("a\nb", false).is_err());
        assert!(wire("é", false).is_err());
    }

    /// G6: foreign ids (GUIDs, empty, garbage) never cause an error.
    #[test]
    fn foreign_ids_are_kept() {
        for text in ["", "{", "null", "[true]", r#"{"muted":"true"}"#, "0-0-0"] {
            let cx = CallContext::from_client_request_id(text);
            assert_eq!((cx.client_request_id.as_str(), cx.muted), (text, false));
        }
    }
}
