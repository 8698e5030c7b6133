//! Converts a trace to the recording that a replay plays.

use smalt_protocol::{Service, Timestamp};

use super::body::Body;
use super::format::{Exchange, Trace};
use crate::replay::hosts::DATA_LAKE;
use crate::replay::recording::{Interaction, LoadError, Recording};
use crate::wire::url::Url;
use crate::wire::{Answer, Headers, Request};

/// Number of header lines before the first exchange.
const LINES_BEFORE: usize = 2;

/// Prefix of the note for an answer with an unknown body; the index of the exchange follows.
pub const MISSING_BODY: &str = "missing_body:";

/// Parses a trace and converts it to a recording.
pub fn recording(name: &str, text: &str) -> Result<Recording, LoadError> {
    of_trace(name, Trace::parse(name, text)?)
}

/// Converts a trace to a recording.
pub fn of_trace(name: &str, trace: Trace) -> Result<Recording, LoadError> {
    let service = trace.header.service;
    let mut interactions = Vec::with_capacity(trace.exchanges.len());
    for (n, exchange) in trace.exchanges.iter().enumerate() {
        let read = interaction(n, service, exchange).map_err(|problem| LoadError {
            file: name.to_owned(),
            line: n + LINES_BEFORE,
            problem,
        })?;
        interactions.push(read);
    }
    let lost = trace
        .exchanges
        .iter()
        .enumerate()
        .filter(|(_, exchange)| matches!(exchange.response.body, Some(Body::Missing { .. })));
    let notes = lost.map(|(n, _)| format!("{MISSING_BODY}{n}")).collect();
    let versioned = interactions
        .iter()
        .any(|one| one.response.headers.has("x-ms-version-id"));
    let flags = versioned.then(|| "account_versioning_on".to_owned());
    Ok(Recording {
        name: name.to_owned(),
        service,
        sdk: trace.header.target,
        flags: flags.into_iter().collect(),
        notes,
        uncreated: trace.header.uncreated,
        interactions,
    })
}

fn interaction(n: usize, service: Service, exchange: &Exchange) -> Result<Interaction, String> {
    let (request, response) = (&exchange.request, &exchange.response);
    let url = Url::parse(&request.url).ok_or_else(|| format!("not a URL: {}", request.url))?;
    let bytes = |body: &Option<Body>| {
        let bytes = body.as_ref().map(Body::bytes).transpose();
        bytes
            .map(Option::unwrap_or_default)
            .map_err(|e| e.to_string())
    };
    let request = Request {
        method: request.method.clone(),
        url: request.url.clone(),
        headers: headers(&request.headers),
        body: bytes(&request.body)?,
    };
    let response = Answer {
        status: response.status,
        headers: headers(&response.headers),
        body: bytes(&response.body)?,
    };
    let date = response.headers.get("date");
    let date = date.ok_or("the response has no Date")?;
    let date = Timestamp::parse_rfc1123(date).ok_or_else(|| format!("invalid date: {date}"))?;
    Ok(Interaction {
        n,
        operation: operation(service, &request, &url),
        request,
        response,
        date,
    })
}

fn headers(pairs: &[(String, String)]) -> Headers {
    pairs.iter().map(|(n, v)| (n, v.as_str())).collect()
}

/// Returns what a request does, from its request line: `PUT blob comp=block`.
pub fn operation(service: Service, request: &Request, url: &Url) -> String {
    let is_of_lake = matches!(url.account_and_service(), Some((_, DATA_LAKE)));
    let place = match (service, url.segments().as_slice()) {
        (_, []) => "service",
        (_, [root]) if root.is_empty() => "service",
        (_, [_]) if is_of_lake => "filesystem",
        _ if is_of_lake => "path",
        (Service::Blob, [_]) if url.has_param("restype") => "container",
        (Service::Blob, _) => "blob",
        (Service::Queue, [_]) => "queue",
        (Service::Queue, [_, _]) => "messages",
        (Service::Queue, _) => "message",
        (Service::Table, [one]) if one == "$batch" => "transaction",
        (Service::Table, [one]) if one == "Tables" || one.starts_with("Tables(") => "tables",
        (Service::Table, [one]) if one.contains("PartitionKey=") => "entity",
        (Service::Table, [_]) if url.has_param("comp") => "table",
        (Service::Table, _) => "entities",
    };
    let mut text = format!("{} {place}", request.method);
    let named = match is_of_lake {
        true => ["resource", "action", "mode"].as_slice(),
        false => &["comp"],
    };
    for name in named {
        if let Some(value) = url.param(name) {
            text += &format!(" {name}={value}");
        }
    }
    for name in ["x-ms-lease-action", "x-ms-blob-type", "x-ms-page-write"] {
        if let Some(value) = request.headers.get(name) {
            text += &format!(" {value}");
        }
    }
    for (header, word) in [
        ("x-ms-copy-source", " copy"),
        ("x-ms-rename-source", " rename"),
    ] {
        if request.headers.has(header) {
            text += word;
        }
    }
    text
}
