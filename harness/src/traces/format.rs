//! The lines of a trace: a header, one line for each exchange, a checksum of all of them.

use serde::{Deserialize, Serialize};
use smalt_protocol::Service;

use super::body::{Body, sha256_hex};
use crate::replay::recording::LoadError;

/// The format in every header. Other formats are rejected.
pub const FORMAT: &str = "smalt-trace/1";

/// Information about a whole trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// Start of the recording: `2026-11-21T11:00:00.0000000Z`.
    pub recorded_at: String,
    /// The recorded service: `smalt`, `azurite`, `azure`.
    pub target: String,
    /// First `x-ms-version` in a request.
    pub api_version: String,
    /// Seed of the client, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Name of the account in the trace.
    pub account: String,
    /// The service that received the requests.
    pub service: Service,
    /// Containers or queues that were used but not created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncreated: Vec<String>,
    /// Differences between an imported trace and the original traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A difference from the original traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Index of the exchange, from 0; `None` for all exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<usize>,
    /// Description.
    pub text: String,
}

/// A request with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Milliseconds from `recorded_at` to the request.
    pub t: u64,
    /// The request, without secrets.
    pub request: Request,
    /// The answer, without secrets.
    pub response: Response,
}

/// A request, with headers as pairs in their original order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// HTTP method.
    pub method: String,
    /// Absolute URL in host style.
    pub url: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body; `None` when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

/// An answer, with headers as pairs in their original order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// HTTP status code.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body; `None` when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

/// A whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The first line.
    pub header: Header,
    /// The following lines.
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

/// Whether the text begins like a trace; otherwise it is a recording of the corpus.
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
    /// Renders the file.
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

    /// Parses a file. Rejects files that were edited by hand, cut short, or have another version.
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
            return Err(fail(count, format!("{found} exchanges instead of {due}")));
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

        /// A rendered trace is parsed back unchanged, including bodies.
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

        /// Every changed byte and every lost line is detected.
        #[test]
        fn edits_are_detected(trace in trace(), at in any::<prop::sample::Index>()) {
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
    fn other_version_is_rejected() {
        let header = r#"{"format":"smalt-trace/2"}"#;
        let text = format!("{header}\n");
        let sum = sha256_hex(text.as_bytes());
        let text = format!("{text}{{\"exchanges\":0,\"checksum\":\"{sum}\"}}\n");
        assert!(is_trace(&text));
        assert!(Trace::parse("f", &text).is_err());
        assert!(!is_trace(r#"{"service":"blob","interactions":0}"#));
    }
}
