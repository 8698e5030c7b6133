//! The history of a run: every exchange in the order of execution, and the acts of the handlers.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::ser::SerializeMap as _;
use smalt_protocol::Timestamp;
use smalt_protocol::uri::{lookup, parse_query, percent_decode};

use super::faults::{AWAY, CUT, GARBLED};
use super::listen::Seen;

/// Headers that differ between two equal runs and mean nothing: they contain the machine's name and
/// version.
const HEADERS_LEFT_OUT: [&str; 1] = ["user-agent"];

/// Least error of a clock of which the direction counts.
const OFF: Duration = Duration::from_secs(60);

/// An event of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Time on the service's clock.
    pub at: Timestamp,
    /// Name of the actor.
    pub actor: String,
    /// What happened.
    pub what: Happening,
}

/// The kinds of event.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A request that reached the service or that the service dropped.
    Exchange(Box<Exchange>),
    /// The late answer of an earlier exchange arrived.
    Delivered {
        /// Index of that exchange in the history.
        number: usize,
    },
    /// A worker died.
    Crashed,
    /// A worker was asked to stop.
    ToldToStop,
    /// A worker ended, with its error if it had one.
    Ended(Option<String>),
    /// The point after which no fault happens.
    Calm,
    /// A state or decision of a listener, or something that was done to it.
    Listener(Seen),
    /// A handler began.
    Started {
        /// Message id.
        id: String,
        /// Number of the attempt, as the listener counts it.
        count: u32,
        /// The body that the handler got.
        body: String,
    },
    /// A handler ended with this verdict: `ok`, `retry` or `reject`.
    Handled {
        /// Message id.
        id: String,
        /// Number of the attempt, as the listener counts it.
        count: u32,
        /// The verdict.
        verdict: &'static str,
    },
}

/// One request and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// When it was sent; the event's time is that of its execution.
    pub sent: Timestamp,
    /// HTTP method.
    pub method: String,
    /// Path as sent.
    pub path: String,
    /// Query parameters, decoded.
    pub query: Vec<(String, String)>,
    /// Headers, sorted.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Bytes,
    /// The answer, or the reason why there is none.
    pub fate: Fate,
    /// Whether the answer reached the sender at once.
    pub delivered: bool,
    /// Kind of the planned fault that happened to it, if any.
    pub fault: Option<&'static str>,
}

/// Result of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// The service answered.
    Answered(Answer),
    /// The service did not execute it, or the answer broke off.
    NoAnswer(String),
}

/// An answer of the service.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Headers, sorted.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Bytes,
}

impl Exchange {
    /// Creates an exchange from a request, without an answer.
    pub fn of(request: &http::Request<Bytes>, sent: Timestamp) -> Self {
        let query = request.uri().query().unwrap_or_default();
        Exchange {
            sent,
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            query: parse_query(query).unwrap_or_default(),
            headers: sorted(request.headers()),
            body: request.body().clone(),
            fate: Fate::NoAnswer(String::new()),
            delivered: false,
            fault: None,
        }
    }

    /// Sets the kind of its fault, and whether its answer arrives at once.
    #[must_use]
    pub fn with(mut self, fault: Option<&'static str>, delivered: bool) -> Self {
        (self.fault, self.delivered) = (fault, delivered);
        self
    }

    /// Whether the service executed it and the sender got no answer.
    pub fn is_answer_lost(&self) -> bool {
        let lost = ["answer lost", CUT, AWAY, "crash after"];
        self.done().is_some() && self.fault.is_some_and(|fault| lost.contains(&fault))
    }

    /// Whether the sender learned the result from the answer at once; a garbled answer does not
    /// tell it.
    pub fn is_told(&self) -> bool {
        self.delivered && self.fault != Some(GARBLED)
    }

    /// Returns the answer, when the request succeeded.
    pub fn done(&self) -> Option<&Answer> {
        match &self.fate {
            Fate::Answered(answer) if (200..300).contains(&answer.status) => Some(answer),
            _ => None,
        }
    }

    /// Returns a request header.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Returns a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        lookup(&self.query, name)
    }

    /// Returns the parts of the path, decoded: the account, the container or queue, and the rest.
    pub fn segments(&self) -> (String, String, String) {
        let mut parts = self.path.trim_start_matches('/').splitn(3, '/');
        let mut next = || {
            let part = parts.next().unwrap_or_default();
            percent_decode(part).unwrap_or_else(|_| part.to_owned())
        };
        (next(), next(), next())
    }
}

/// The clocks of all lives, as their requests show them.
#[derive(Debug, Default)]
pub struct Clocks {
    /// Whether the clock of each life was ahead when it was last off by more than [`OFF`].
    ahead: BTreeMap<String, bool>,
}

impl Clocks {
    /// Records the clock of a request's sender. Returns by how much it is off, and whether it has
    /// drifted past the service's.
    pub fn seen(&mut self, event: &Event, exchange: &Exchange) -> (Duration, bool) {
        let date = exchange.header("x-ms-date");
        let Some(date) = date.and_then(Timestamp::parse_rfc1123) else {
            return (Duration::ZERO, false);
        };
        let off = date.since(exchange.sent).max(exchange.sent.since(date));
        let ahead = date > exchange.sent;
        let past = off > OFF && self.ahead.insert(event.actor.clone(), ahead) == Some(!ahead);
        (off, past)
    }
}

impl Answer {
    /// Takes status, headers and body of a response.
    pub fn of(response: &http::Response<Bytes>) -> Self {
        Answer {
            status: response.status().as_u16(),
            headers: sorted(response.headers()),
            body: response.body().clone(),
        }
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

fn sorted(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut sorted: Vec<_> = headers
        .iter()
        .filter(|(name, _)| !HEADERS_LEFT_OUT.contains(&name.as_str()))
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect();
    sorted.sort();
    sorted
}

/// Returns the texts of all `<name>` elements without attributes.
pub fn elements<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = xml;
    while let Some(at) = rest.find(&open) {
        rest = &rest[at + open.len()..];
        let Some(end) = rest.find(&close) else { break };
        found.push(&rest[..end]);
        rest = &rest[end + close.len()..];
    }
    found
}

/// Returns the text of the first `<name>` element without attributes.
pub fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    elements(xml, name).into_iter().next()
}

/// Formats the history as NDJSON: one event per line, with sorted headers and masked secrets.
pub fn ndjson(history: &[Event]) -> String {
    history.iter().map(|event| line(event) + "\n").collect()
}

fn line(event: &Event) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    // Strings and numbers always serialise.
    let _ = write_line(event, &mut serializer);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn write_line<S: serde::Serializer>(event: &Event, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("at", &event.at.iso_ticks())?;
    map.serialize_entry("actor", &event.actor)?;
    match &event.what {
        Happening::Exchange(exchange) => {
            map.serialize_entry("request", &Request(exchange))?;
            match &exchange.fate {
                Fate::Answered(answer) => map.serialize_entry("response", &Response(answer))?,
                Fate::NoAnswer(why) => map.serialize_entry("no_answer", why)?,
            }
            map.serialize_entry("delivered", &exchange.delivered)?;
            if let Some(fault) = exchange.fault {
                map.serialize_entry("fault", fault)?;
            }
        }
        Happening::Delivered { number } => map.serialize_entry("delivered_late", number)?,
        Happening::Crashed => map.serialize_entry("crashed", &true)?,
        Happening::ToldToStop => map.serialize_entry("told_to_stop", &true)?,
        Happening::Ended(why) => map.serialize_entry("ended", why)?,
        Happening::Calm => map.serialize_entry("calm", &true)?,
        Happening::Listener(seen) => map.serialize_entry("listener", &format!("{seen:?}"))?,
        Happening::Started { id, count, body } => {
            map.serialize_entry("handler_started", id)?;
            map.serialize_entry("attempt", count)?;
            map.serialize_entry("body", body)?;
        }
        Happening::Handled { id, verdict, .. } => {
            map.serialize_entry("handler_ended", id)?;
            map.serialize_entry("verdict", verdict)?;
        }
    }
    map.end()
}

struct Request<'a>(&'a Exchange);
struct Response<'a>(&'a Answer);
struct Headers<'a>(&'a [(String, String)]);

impl serde::Serialize for Request<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sent", &self.0.sent.iso_ticks())?;
        map.serialize_entry("method", &self.0.method)?;
        map.serialize_entry("path", &self.0.path)?;
        map.serialize_entry("query", &Headers(&self.0.query))?;
        map.serialize_entry("headers", &Headers(&self.0.headers))?;
        map.serialize_entry("body", &String::from_utf8_lossy(&self.0.body))?;
        map.end()
    }
}

impl serde::Serialize for Response<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("status", &self.0.status)?;
        map.serialize_entry("headers", &Headers(&self.0.headers))?;
        map.serialize_entry("body", &self.0.text())?;
        map.end()
    }
}

impl serde::Serialize for Headers<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0 {
            let secret = matches!(name.as_str(), "authorization" | "sig");
            map.serialize_entry(name, if secret { "(masked)" } else { value })?;
        }
        map.end()
    }
}

/// Formats an event as one short line.
pub fn brief(number: usize, event: &Event) -> String {
    let at = event.at.iso_ticks();
    let head = format!("{number:>4} {} {:<12}", &at[5..at.len() - 5], event.actor);
    let rest = match &event.what {
        Happening::Exchange(e) => {
            let query: Vec<String> = e
                .query
                .iter()
                .filter(|(key, _)| key != "sig")
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            let fate = match &e.fate {
                Fate::Answered(answer) => {
                    let code = answer.header("x-ms-error-code").unwrap_or_default();
                    format!("{} {code}", answer.status)
                }
                Fate::NoAnswer(why) => format!("no answer ({why})"),
            };
            let lost = match e.fault {
                Some(fault) => format!(" ({fault})"),
                None if e.delivered => String::new(),
                None => " (not delivered)".to_owned(),
            };
            let matched = e.header("if-match").unwrap_or_default();
            let query = query.join("&");
            format!("{} {}?{query} {matched} -> {fate}{lost}", e.method, e.path)
        }
        other => format!("{other:?}"),
    };
    format!("{head} {rest}")
}
