//! One recording: a header line and one line per interaction (JSON lines).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use smalt_protocol::{Service, Timestamp};

use super::hosts::DATA_LAKE;
use crate::wire::url::Url;
use crate::wire::{Answer, Headers, Request};

/// Flag of recordings of an account with a hierarchical namespace.
pub const HIERARCHICAL: &str = "hierarchical";

/// A recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Path below the corpus directory.
    pub name: String,
    /// Service of the requests.
    pub service: Service,
    /// Client library that made the requests.
    pub sdk: String,
    /// Facts about the account and the test, by name.
    pub flags: Vec<String>,
    /// Changes that its preparation made.
    pub notes: Vec<String>,
    /// Containers, queues or tables that it uses but never creates.
    pub uncreated: Vec<String>,
    /// In the order of the requests.
    pub interactions: Vec<Interaction>,
}

impl Recording {
    /// Copies the recording without the interactions.
    #[must_use]
    pub fn without_interactions(&self) -> Recording {
        Recording {
            name: self.name.clone(),
            service: self.service,
            sdk: self.sdk.clone(),
            flags: self.flags.clone(),
            notes: self.notes.clone(),
            uncreated: self.uncreated.clone(),
            interactions: Vec::new(),
        }
    }

    /// Whether the recording has this flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// Whether the recording has this note.
    pub fn has_note(&self, note: &str) -> bool {
        self.notes.iter().any(|n| n.ends_with(note))
    }

    /// Whether no recorded answer has this header (in lower case), so that the recorder must have
    /// dropped it.
    pub fn never_answers_with(&self, header: &str) -> bool {
        let mut answers = self.interactions.iter().map(|i| &i.response);
        !answers.any(|r| r.headers.has(header))
    }
}

/// One request and the answer of the real service.
#[derive(Clone, Debug)]
pub struct Interaction {
    /// Index in the recording.
    pub n: usize,
    /// Operation, as the corpus names it.
    pub operation: String,
    /// The request as sent, with redacted signatures.
    pub request: Request,
    /// The answer as recorded.
    pub response: Answer,
    /// The `Date` of the answer.
    pub date: Timestamp,
}

/// Why a file is not a recording.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct LoadError {
    /// Path below the corpus directory.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong in this line.
    pub problem: String,
}

#[derive(Deserialize)]
struct HeaderLine {
    service: String,
    sdk: String,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    uncreated: Vec<String>,
    interactions: usize,
}

#[derive(Deserialize)]
struct InteractionLine {
    n: usize,
    op: String,
    request: RequestPart,
    response: ResponsePart,
}

#[derive(Deserialize)]
struct RequestPart {
    method: String,
    url: String,
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body_b64: Option<String>,
}

#[derive(Deserialize)]
struct ResponsePart {
    status: u16,
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body_b64: Option<String>,
}

/// Parses a recording. The count and the numbers of the interactions must agree with the header: a
/// recording that lost one is rejected.
pub fn parse(name: &str, text: &str) -> Result<Recording, LoadError> {
    let fail = |line: usize, problem: String| LoadError {
        file: name.to_owned(),
        line,
        problem,
    };
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty());
    let (_, first) = lines
        .next()
        .ok_or_else(|| fail(1, "the file is empty".into()))?;
    let header: HeaderLine = serde_json::from_str(first).map_err(|e| fail(1, e.to_string()))?;
    let mut interactions = Vec::with_capacity(header.interactions);
    for (index, line) in lines {
        let read = interaction(line).map_err(|problem| fail(index + 1, problem))?;
        if read.n != interactions.len() {
            let problem = format!(
                "found interaction {}, expected {}",
                read.n,
                interactions.len()
            );
            return Err(fail(index + 1, problem));
        }
        interactions.push(read);
    }
    if interactions.len() != header.interactions {
        let (found, due) = (interactions.len(), header.interactions);
        return Err(fail(
            1,
            format!("found {found} interactions, but the header announces {due}"),
        ));
    }
    let mut flags = header.flags;
    let service = if header.service == DATA_LAKE {
        flags.push(HIERARCHICAL.to_owned());
        Service::Blob
    } else {
        let named = serde_json::from_value(header.service.into());
        named.map_err(|e| fail(1, e.to_string()))?
    };
    Ok(Recording {
        name: name.to_owned(),
        service,
        sdk: header.sdk,
        flags,
        notes: header.notes,
        uncreated: header.uncreated,
        interactions,
    })
}

fn interaction(line: &str) -> Result<Interaction, String> {
    let read: InteractionLine = serde_json::from_str(line).map_err(|e| e.to_string())?;
    Url::parse(&read.request.url).ok_or_else(|| format!("not a URL: {}", read.request.url))?;
    let response = Answer {
        status: read.response.status,
        headers: read.response.headers.into_iter().collect::<Headers>(),
        body: body(read.response.body_b64.as_deref())?,
    };
    let date = response
        .headers
        .get("date")
        .ok_or("the response has no `Date` header")?;
    let date = Timestamp::parse_rfc1123(date).ok_or_else(|| format!("invalid date: {date}"))?;
    Ok(Interaction {
        n: read.n,
        operation: read.op.trim().to_owned(),
        request: Request {
            method: read.request.method,
            url: read.request.url,
            headers: read.request.headers.into_iter().collect::<Headers>(),
            body: body(read.request.body_b64.as_deref())?,
        },
        response,
        date,
    })
}

fn body(base64: Option<&str>) -> Result<Bytes, String> {
    let decoded = STANDARD.decode(base64.unwrap_or_default());
    decoded.map(Bytes::from).map_err(|e| format!("body: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"service":"queue","sdk":"x","interactions":1,"flags":["lease"]}"#;
    const LINE: &str = concat!(
        r#"{"n":0,"op":"PUT queue ","error":"","#,
        r#""request":{"method":"PUT","url":"https://account.queue.core.windows.net/q","#,
        r#""headers":{"X-Ms-Version":"2018-03-28"},"#,
        r#""body_b64":""},"#,
        r#""response":{"status":201,"#,
        r#""headers":{"Date":"Thu, 09 May 2019 00:57:59 GMT"},"#,
        r#""body_b64":"YWI="}}"#,
    );

    #[test]
    fn reads_header_and_interactions() {
        let recording = parse("a/b.jsonl", &format!("{HEADER}\n{LINE}\n")).unwrap();
        assert_eq!(recording.service, Service::Queue);
        assert!(recording.has_flag("lease"));
        let first = &recording.interactions[0];
        assert_eq!(first.operation, "PUT queue");
        assert_eq!(
            first.request.headers.get("x-ms-version"),
            Some("2018-03-28")
        );
        assert_eq!(&first.response.body[..], b"ab");
        assert_eq!(first.date.rfc1123(), "Thu, 09 May 2019 00:57:59 GMT");
    }

    /// A truncated, unordered or malformed recording is rejected with its file and line.
    #[test]
    fn rejects_incomplete_recordings() {
        let wrong_date = LINE.replace("09 May", "39 May");
        let skipped = LINE.replace("\"n\":0", "\"n\":1");
        for (text, expected) in [
            (
                HEADER.to_owned(),
                "f:1: found 0 interactions, but the header announces 1",
            ),
            (
                format!("{HEADER}\n{LINE}\n{LINE}"),
                "f:3: found interaction 0, expected 1",
            ),
            (
                format!("{HEADER}\n{skipped}"),
                "f:2: found interaction 1, expected 0",
            ),
            (
                format!("{HEADER}\n{wrong_date}"),
                "f:2: invalid date: Thu, 39 May 2019 00:57:59 GMT",
            ),
            (String::new(), "f:1: the file is empty"),
        ] {
            assert_eq!(parse("f", &text).unwrap_err().to_string(), expected);
        }
        assert!(
            parse("f", "{}")
                .unwrap_err()
                .to_string()
                .starts_with("f:1: missing field")
        );
    }
}
