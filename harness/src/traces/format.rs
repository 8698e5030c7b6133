//! The lines of a trace: a header, one line for each exchange, a checksum over all of them.

use serde::{Deserialize, Serialize};
use smalt_protocol::Service;

use super::body::{Body, sha256_hex};
use crate::replay::recording::LoadError;

/// What the header of every trace says. A reader refuses any other.
pub const FORMAT: &str = "smalt-trace/1";

/// What is known of a trace as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// When the recording began, as `2026-11-21T11:00:00.0000000Z`.
    pub recorded_at: String,
    /// What answered: `smalt`, `azurite`, `azure`.
    pub target: String,
    /// `x-ms-version` of the first request that names one.
    pub api_version: String,
    /// The seed of the client, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the account is called in the trace.
    pub account: String,
    /// The service that was asked.
    pub service: Service,
    /// Containers or queues that were used and never created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncreated: Vec<String>,
    /// What an imported trace lacks of what was on the wire, or was given in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// What is not as it was on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The exchange, from 0; absent where the note is about all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<usize>,
    /// In words.
    pub text: String,
}

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Milliseconds from `recorded_at` to the request.
    pub t: u64,
    /// As sent, without secrets.
    pub request: Request,
    /// As answered, without secrets.
    pub response: Response,
}

/// A request. Headers are pairs in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `GET`, ...
    pub method: String,
    /// Absolute, host style.
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Absent when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

/// A response. Headers are pairs in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Absent when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

/// A whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The first line.
    pub header: Header,
    /// The lines that follow.
    pub exchanges: Vec<Exchange>,
}

/// The last line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    exchanges: usize,
    /// SHA-256 in hex of every byte before this line.
    checksum: String,
}

/// Whether a file's text begins as a trace does; what does not is a recording of the corpus.
pub fn is_trace(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        format: String,
    }
    let first = text.lines().next().unwrap_or_default();
    let probe: Result<Probe, _> = serde_json::from_str(first);
    probe.is_ok_and(|probe| probe.format.starts_with("smalt-trace/"))
}

impl Trace {
    /// The text of the file.
    ///
    /// # Errors
    /// When a value has no form in JSON; none of these types has such a value.
    pub fn write(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string(&self.header)? + "\n";
        for exchange in &self.exchanges {
            text += &serde_json::to_string(exchange)?;
            text.push('\n');
        }
        let footer = Footer {
            exchanges: self.exchanges.len(),
            checksum: sha256_hex(text.as_bytes()),
        };
        Ok(text + &serde_json::to_string(&footer)? + "\n")
    }

    /// Reads the text of a file. What was edited by hand, cut short or is of another version is
    /// refused.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Trace, LoadError> {
        let fail = |line: usize, problem: String| LoadError {
            file: name.to_owned(),
            line,
            problem,
        };
        let count = text.lines().count();
        let whole = text.strip_suffix('\n');
        let whole = whole.ok_or_else(|| fail(count, "the last line is cut".into()))?;
        let (covered, last) = whole
            .rfind('\n')
            .map(|at| whole.split_at(at + 1))
            .ok_or_else(|| fail(count, "no checksum follows the header".into()))?;
        let footer: Footer =
            serde_json::from_str(last).map_err(|e| fail(count, format!("no checksum: {e}")))?;
        let found = sha256_hex(covered.as_bytes());
        if found != footer.checksum {
            return Err(fail(count, format!("edited: the checksum is {found}")));
        }
        let mut lines = covered.lines().enumerate();
        let header: Header = match lines.next() {
            Some((_, line)) => serde_json::from_str(line).map_err(|e| fail(1, e.to_string()))?,
            None => return Err(fail(1, "the file is empty".into())),
        };
        if header.format != FORMAT {
            return Err(fail(1, format!("{} is not {FORMAT}", header.format)));
        }
        let mut exchanges = Vec::new();
        for (index, line) in lines {
            let read = serde_json::from_str(line);
            exchanges.push(read.map_err(|e| fail(index + 1, e.to_string()))?);
        }
        if exchanges.len() != footer.exchanges {
            let (found, due) = (exchanges.len(), footer.exchanges);
            return Err(fail(
                count,
                format!("{found} exchanges where {due} are due"),
            ));
        }
        Ok(Trace { header, exchanges })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
        proptest::collection::vec(("[a-z-]{1,12}", any::<String>()), 0..5)
    }

    fn body() -> impl Strategy<Value = Option<Body>> {
        let bytes = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            any::<String>().prop_map(String::into_bytes),
            (any::<u8>(), 4_096..9_000_usize).prop_map(|(byte, n)| vec![byte; n]),
        ];
        bytes.prop_map(|bytes| Body::of(&bytes))
    }

    fn exchange() -> impl Strategy<Value = Exchange> {
        let sent = ("[A-Z]{3,7}", any::<String>(), pairs(), body());
        let answered = (any::<u16>(), pairs(), body());
        (any::<u64>(), sent, answered).prop_map(|(t, sent, answered)| Exchange {
            t,
            request: Request {
                method: sent.0,
                url: sent.1,
                headers: sent.2,
                body: sent.3,
            },
            response: Response {
                status: answered.0,
                headers: answered.1,
                body: answered.2,
            },
        })
    }

    fn header() -> impl Strategy<Value = Header> {
        let texts = (any::<String>(), any::<String>(), any::<String>());
        let more = (
            any::<Option<u64>>(),
            proptest::collection::vec(any::<String>(), 0..3),
        );
        (texts, more).prop_map(
            |((target, api_version, account), (seed, uncreated))| Header {
                format: FORMAT.to_owned(),
                recorded_at: "2026-11-21T11:00:00.0000000Z".to_owned(),
                target,
                api_version,
                seed,
                account,
                service: Service::Queue,
                uncreated,
                notes: vec![Note {
                    exchange: seed.map(|_| 0),
                    text: "no request body".to_owned(),
                }],
            },
        )
    }

    fn trace() -> impl Strategy<Value = Trace> {
        let exchanges = proptest::collection::vec(exchange(), 0..4);
        (header(), exchanges).prop_map(|(header, exchanges)| Trace { header, exchanges })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What is written is read back as it was, bodies included.
        #[test]
        fn round_trips(trace in trace()) {
            let text = trace.write().unwrap();
            prop_assert!(is_trace(&text));
            let read = Trace::parse("f", &text).unwrap();
            for body in read.exchanges.iter().filter_map(|e| e.request.body.as_ref()) {
                prop_assert_eq!(&Body::of(&body.bytes().unwrap()).unwrap(), body);
            }
            prop_assert_eq!(read, trace);
        }

        /// Any one byte changed, or any line lost, is seen.
        #[test]
        fn edits_are_seen(trace in trace(), at in any::<prop::sample::Index>()) {
            let text = trace.write().unwrap();
            let mut bytes = text.clone().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            if let Ok(edited) = String::from_utf8(bytes) {
                prop_assert!(Trace::parse("f", &edited).is_err());
            }
            let lines: Vec<&str> = text.lines().collect();
            let line = at % lines.len();
            let rest: Vec<&str> = [&lines[..line], &lines[line + 1..]].concat();
            prop_assert!(Trace::parse("f", &(rest.join("\n") + "\n")).is_err());
        }
    }

    #[test]
    fn another_version_is_refused() {
        let header = r#"{"format":"smalt-trace/2"}"#;
        let text = format!("{header}\n");
        let sum = sha256_hex(text.as_bytes());
        let text = format!("{text}{{\"exchanges\":0,\"checksum\":\"{sum}\"}}\n");
        assert!(is_trace(&text));
        assert!(Trace::parse("f", &text).is_err());
        assert!(!is_trace(r#"{"service":"blob","interactions":0}"#));
    }
}
