//! Exchanges of a recorder as traces: one for each service, nothing secret left, and a note for
//! everything that is not as it was on the wire.

use smalt_protocol::{Service, Timestamp};

use super::node::Wrong;
use super::raw::{Raw, header};
use crate::replay::rules::DROPPED_BY_RECORDERS;
use crate::traces::body::Body;
use crate::traces::format::{Exchange, Note, Trace};
use crate::traces::scrub::{self, About, Seen, account_of_host};
use crate::wire::url::Url;

/// Ports of emulators, by which an address in path style tells its service.
const PORTS: [(&str, Service); 3] = [
    (":10000", Service::Blob),
    (":10001", Service::Queue),
    (":10002", Service::Table),
];

/// Where a URL leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// `account.blob.core.windows.net`.
    Azure(Service),
    /// `127.0.0.1:10000/account`.
    Emulator(Service),
    /// The secondary of an account, whose state nobody knows.
    Secondary,
    /// Nothing that smalt stands for.
    Other,
}

impl Host {
    fn of(url: &Url) -> Host {
        if let Some(account) = account_of_host(&url.authority) {
            let service = url.account_and_service().map(|(_, service)| service);
            let service = Service::ALL
                .into_iter()
                .find(|s| Some(s.as_str()) == service);
            return match service {
                Some(_) if account.ends_with("-secondary") => Host::Secondary,
                Some(service) => Host::Azure(service),
                None => Host::Other,
            };
        }
        let port = PORTS.into_iter().find(|(p, _)| url.authority.ends_with(p));
        port.map_or(Host::Other, |(_, service)| Host::Emulator(service))
    }
}

/// The traces of one recording.
///
/// # Errors
/// With the place of an exchange that no trace can hold.
pub fn traces(exchanges: &[Raw]) -> Result<Vec<Trace>, Wrong> {
    let mut placed = Vec::with_capacity(exchanges.len());
    for raw in exchanges {
        let wrong = || Wrong {
            at: raw.at.clone(),
            problem: format!("not an absolute URL: {}", raw.url),
        };
        let url = Url::parse(&raw.url).ok_or_else(wrong)?;
        placed.push((raw, Host::of(&url), url));
    }
    let mut traces = Vec::new();
    for service in Service::ALL {
        let is_of = |host| host == Host::Azure(service) || host == Host::Emulator(service);
        let own = placed.iter().filter(|(_, host, _)| is_of(*host));
        let own: Vec<&(&Raw, Host, Url)> = own.collect();
        if !own.is_empty() {
            traces.push(trace(service, &own)?);
        }
    }
    let count = |of: Host| placed.iter().filter(|(_, host, _)| *host == of).count();
    for (host, what) in [
        (Host::Other, "exchanges with other services left out"),
        (Host::Secondary, "exchanges with a secondary left out"),
    ] {
        let left_out = count(host);
        if left_out > 0 {
            let note = Note {
                exchange: None,
                text: format!("{left_out} {what}"),
            };
            traces
                .iter_mut()
                .for_each(|t| t.header.notes.push(note.clone()));
        }
    }
    Ok(traces)
}

fn trace(service: Service, placed: &[&(&Raw, Host, Url)]) -> Result<Trace, Wrong> {
    let mut notes = Vec::new();
    let mut seen = Vec::with_capacity(placed.len());
    let (mut begun, mut now) = (None, None);
    for (n, (raw, _, url)) in placed.iter().enumerate() {
        let mut lacks = raw.lacks.clone();
        let mut response_headers = raw.response_headers.clone();
        let date = date(raw, now, &mut lacks)?;
        if !response_headers.iter().any(|(name, _)| name == "date") {
            response_headers.push(("date".to_owned(), date.rfc1123()));
        }
        now = Some(date);
        let begun = *begun.get_or_insert(date);
        let elapsed = if date > begun {
            date.since(begun).as_millis()
        } else {
            0
        };
        // The root of an account is the slash, which some recorders leave out.
        let target = match url.path.is_empty() {
            true => format!("/{}", url.path_and_query()),
            false => url.path_and_query(),
        };
        seen.push(Seen {
            t: u64::try_from(elapsed).unwrap_or(u64::MAX),
            host: url.authority.clone(),
            method: raw.method.clone(),
            target,
            request_headers: raw.request_headers.clone(),
            request_body: raw.request_body.clone(),
            status: raw.status,
            response_headers,
            response_body: raw.response_body.clone(),
        });
        lacks.extend(other_length(
            "request",
            &raw.request_headers,
            raw.request_body.len(),
        ));
        lacks.extend(other_length(
            "answer",
            &raw.response_headers,
            raw.response_body.len(),
        ));
        let exchange = Some(n);
        notes.extend(lacks.into_iter().map(|text| Note { exchange, text }));
    }
    let about = About {
        service,
        target: target(placed),
        recorded_at: begun.unwrap_or(Timestamp::UNIX_EPOCH).iso_ticks(),
        authority: seen.first().map(|s| s.host.clone()).unwrap_or_default(),
        seed: None,
    };
    let mut trace = scrub::trace(&about, &seen);
    for (n, exchange) in trace.exchanges.iter_mut().enumerate() {
        notes.extend(lost_bodies(n, exchange));
    }
    notes.sort_by_key(|note| note.exchange);
    notes.extend(dropped(&seen));
    trace.header.notes = notes;
    Ok(trace)
}

/// What answered: smalt and Azurite say so.
fn target(placed: &[&(&Raw, Host, Url)]) -> String {
    let mut servers = placed
        .iter()
        .map(|(raw, _, _)| header(&raw.response_headers, "server"));
    let is_azure = placed
        .iter()
        .all(|(_, host, _)| matches!(host, Host::Azure(_)));
    let name = match (is_azure, servers.any(|server| server.contains("Azurite"))) {
        (_, true) => "azurite",
        (true, false) => "azure",
        (false, false) => "emulator",
    };
    name.to_owned()
}

/// When an exchange took place: the answer's date, or the nearest thing that is known.
fn date(raw: &Raw, before: Option<Timestamp>, lacks: &mut Vec<String>) -> Result<Timestamp, Wrong> {
    let told = header(&raw.response_headers, "date");
    if !told.is_empty() {
        return Timestamp::parse_rfc1123(told).ok_or_else(|| Wrong {
            at: raw.at.clone(),
            problem: format!("the answer's Date is none: {told}"),
        });
    }
    let signed = ["x-ms-date", "date"]
        .iter()
        .find_map(|name| Timestamp::parse_rfc1123(header(&raw.request_headers, name)));
    let found = [
        (raw.began, "the recorder's time"),
        (signed, "that of the request"),
        (before, "that of the exchange before"),
    ];
    let found = found
        .into_iter()
        .find_map(|(time, what)| Some((time?, what)));
    let (time, what) = found.ok_or_else(|| Wrong {
        at: raw.at.clone(),
        problem: "nothing tells when this was: no Date, no x-ms-date".to_owned(),
    })?;
    lacks.push(format!("no Date in the answer: {what} in its place"));
    Ok(time)
}

/// Bodies that headers tell of and the recorder did not keep.
fn lost_bodies(n: usize, exchange: &mut Exchange) -> Vec<Note> {
    let length = |headers: &[(String, String)]| header(headers, "content-length").parse().ok();
    let mut notes = Vec::new();
    let mut note = |text: String| {
        let exchange = Some(n);
        notes.push(Note { exchange, text });
    };
    let (request, response) = (&mut exchange.request, &mut exchange.response);
    let sent = length(&request.headers).filter(|sent: &u64| *sent > 0);
    if let (Some(length), None) = (sent, &request.body) {
        note(format!(
            "the request's body of {length} bytes: zeroes in its place"
        ));
        request.body = Some(Body::Missing { length });
    }
    let bodiless = request.method == "HEAD" || matches!(response.status, 204 | 304);
    let received = length(&response.headers).filter(|got: &u64| *got > 0 && !bodiless);
    if let (Some(length), None) = (received, &response.body) {
        note(format!("the answer's body of {length} bytes: not compared"));
        response.body = Some(Body::Missing { length });
    }
    notes
}

/// A body that is there, but not as long as its header says: it was changed on the way.
fn other_length(what: &str, headers: &[(String, String)], length: usize) -> Option<String> {
    let told: usize = header(headers, "content-length").parse().ok()?;
    let differs = length > 0 && told != length;
    differs.then(|| format!("the {what}'s body has {length} bytes where its header says {told}"))
}

/// Headers that no answer has, though each answer of the service has them.
fn dropped(seen: &[Seen]) -> Vec<Note> {
    let told = |name: &&&str| {
        let mut answers = seen.iter();
        **name != "x-ms-copy-source"
            && !answers.any(|one| one.response_headers.iter().any(|(n, _)| n == **name))
    };
    let dropped = DROPPED_BY_RECORDERS.iter().filter(told);
    let note = |name: &&str| Note {
        exchange: None,
        text: format!("no answer has {name}: not compared"),
    };
    dropped.map(note).collect()
}
