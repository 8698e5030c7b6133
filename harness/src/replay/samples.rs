//! Small recordings for tests.

use serde_json::json;

use super::recording::{self, Recording};

/// The `Date` of a sample's answers, unless they contain another.
pub(super) const DATE: &str = "Thu, 09 May 2019 00:57:59 GMT";

/// One interaction: method, absolute URL, status, further response headers.
pub(super) type Line<'a> = (&'a str, String, u16, Vec<(&'a str, String)>);

/// Creates a recording of the blob service.
pub(super) fn blobs(lines: &[Line<'_>]) -> Recording {
    recording("blob", lines)
}

/// Creates a recording of these interactions, with empty bodies.
pub(super) fn recording(service: &str, lines: &[Line<'_>]) -> Recording {
    let header = json!({ "service": service, "sdk": "own", "interactions": lines.len() });
    let mut text = header.to_string();
    for (n, (method, url, status, headers)) in lines.iter().enumerate() {
        let mut answered = serde_json::Map::from_iter([("Date".to_owned(), json!(DATE))]);
        answered.extend(
            headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!(value))),
        );
        let line = json!({
            "n": n, "op": "x",
            "request": { "method": method, "url": url, "headers": {} },
            "response": { "status": status, "headers": answered },
        });
        text.push('\n');
        text.push_str(&line.to_string());
    }
    recording::parse("own.jsonl", &text).unwrap()
}
