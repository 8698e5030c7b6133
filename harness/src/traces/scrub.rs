//! Prepares exchanges for a trace: removes secrets, renames the account, and uses host-style URLs.
//!
//! Contents of blobs and messages stay unchanged: record only data that may be published.

use bytes::Bytes;
use smalt_protocol::Service;

use super::body::Body;
use super::format::{Exchange, FORMAT, Header, Request, Response, Trace};
use crate::replay::creation::new_table;
use crate::replay::multipart;
use crate::wire::url::Url;

/// Replacement of a secret.
pub const REDACTED: &str = "REDACTED";
/// Name of accounts in a trace; a second one is `account2`.
pub const ACCOUNT: &str = "account";
/// Domain of Azure's host names.
const DOMAIN: &str = "core.windows.net";

/// Headers whose value is a secret.
const SECRET: &[&str] = &[
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
    "x-ms-copy-source-authorization",
    "x-ms-encryption-key",
    "x-ms-source-encryption-key",
];
/// Headers about the connection or the client's machine, which are left out.
const UNTOLD: &[&str] = &[
    "connection",
    "host",
    "keep-alive",
    "traceparent",
    "tracestate",
    "user-agent",
];
/// Elements of answers that contain a secret, or quote one.
const SECRET_ELEMENTS: &[&str] = &["AuthenticationErrorDetail", "Value"];

/// An exchange as the proxy saw it, with header names in lower case.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Milliseconds since the start of the recording.
    pub t: u64,
    /// Host in the client's request.
    pub host: String,
    /// HTTP method.
    pub method: String,
    /// Path and query of the request line.
    pub target: String,
    /// Headers in their original order.
    pub request_headers: Vec<(String, String)>,
    /// The complete body.
    pub request_body: Bytes,
    /// HTTP status code.
    pub status: u16,
    /// Headers in their original order.
    pub response_headers: Vec<(String, String)>,
    /// The complete body.
    pub response_body: Bytes,
}

/// Information about a recording besides its exchanges.
#[derive(Clone, Debug)]
pub struct About {
    /// The service that received the requests.
    pub service: Service,
    /// Name of the recorded service.
    pub target: String,
    /// Start of the recording.
    pub recorded_at: String,
    /// Host and port of the recorded service.
    pub authority: String,
    /// Seed of the client.
    pub seed: Option<u64>,
}

/// Returns the account in one of Azure's host names: `name.blob.core.windows.net`.
pub fn account_of_host(authority: &str) -> Option<&str> {
    let host = authority.split(':').next()?;
    let (account, rest) = host.split_once('.')?;
    rest.ends_with(DOMAIN).then_some(account)
}

/// Returns the trace of a recording.
pub fn trace(about: &About, seen: &[Seen]) -> Trace {
    let mut scrubber = Scrubber {
        about,
        hosted: account_of_host(&about.authority),
        accounts: Vec::new(),
    };
    for one in seen {
        scrubber.know(one);
    }
    let exchanges: Vec<Exchange> = seen.iter().map(|one| scrubber.exchange(one)).collect();
    let versions = exchanges.iter().flat_map(|e| &e.request.headers);
    let version = versions.clone().find(|(name, _)| name == "x-ms-version");
    Trace {
        header: Header {
            format: FORMAT.to_owned(),
            recorded_at: about.recorded_at.clone(),
            target: about.target.clone(),
            api_version: version.map(|(_, value)| value.clone()).unwrap_or_default(),
            seed: about.seed,
            account: ACCOUNT.to_owned(),
            service: about.service,
            uncreated: uncreated(about.service, &exchanges),
            notes: Vec::new(),
        },
        exchanges,
    }
}

struct Scrubber<'a> {
    about: &'a About,
    /// The account, if the host names it.
    hosted: Option<&'a str>,
    /// Real names of accounts, in the order of first occurrence.
    accounts: Vec<String>,
}

impl Scrubber<'_> {
    /// Splits a path into the account and the rest.
    fn split<'t>(&self, host: &str, target: &'t str) -> (String, &'t str) {
        if let Some(account) = account_of_host(host).or(self.hosted) {
            return (account.to_owned(), target);
        }
        let rest = target.trim_start_matches('/');
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        (rest[..end].to_owned(), &rest[end..])
    }

    fn know(&mut self, seen: &Seen) {
        let (account, _) = self.split(&seen.host, &seen.target);
        let source = header(&seen.request_headers, "x-ms-copy-source").and_then(Url::parse);
        let source = source.and_then(|url| account_of_host(&url.authority).map(str::to_owned));
        for account in [account].into_iter().chain(source) {
            if !account.is_empty() && !self.accounts.contains(&account) {
                self.accounts.push(account);
            }
        }
    }

    /// Returns the name of an account in the trace.
    fn name(&self, real: &str) -> String {
        match self.accounts.iter().position(|known| known == real) {
            None | Some(0) => ACCOUNT.to_owned(),
            Some(n) => format!("{ACCOUNT}{}", n + 1),
        }
    }

    fn exchange(&self, seen: &Seen) -> Exchange {
        let (account, rest) = self.split(&seen.host, &seen.target);
        let service = self.about.service.as_str();
        let rest = redact_signatures(rest);
        let url = format!("https://{}.{service}.{DOMAIN}{rest}", self.name(&account));
        let request_body = self.request_body(seen);
        let response_body = self.response_body(seen);
        Exchange {
            t: seen.t,
            request: Request {
                method: seen.method.clone(),
                url,
                headers: self.headers(seen, &seen.request_headers, request_body.len()),
                body: Body::of(&request_body),
            },
            response: Response {
                status: seen.status,
                headers: self.headers(seen, &seen.response_headers, response_body.len()),
                body: Body::of(&response_body),
            },
        }
    }

    fn headers(
        &self,
        seen: &Seen,
        headers: &[(String, String)],
        length: usize,
    ) -> Vec<(String, String)> {
        let told = headers
            .iter()
            .filter(|(n, _)| !UNTOLD.contains(&n.as_str()));
        told.map(|(name, value)| {
            let value = if SECRET.contains(&name.as_str()) {
                REDACTED.to_owned()
            } else if name == "content-length" && length > 0 {
                length.to_string()
            } else {
                self.text(seen, value)
            };
            (name.clone(), value)
        })
        .collect()
    }

    /// Renames accounts in a string and removes signatures.
    fn text(&self, seen: &Seen, text: &str) -> String {
        let mut text = redact_signatures(text);
        let service = self.about.service.as_str();
        for real in &self.accounts {
            let name = self.name(real);
            if self.hosted.is_none() {
                for host in [&seen.host, &self.about.authority] {
                    for scheme in ["http", "https"] {
                        let base = format!("{scheme}://{host}/{real}");
                        let renamed = format!("https://{name}.{service}.{DOMAIN}");
                        text = text.replace(&base, &renamed);
                    }
                }
            }
            text = replace_word(&text, real, &name);
        }
        text
    }

    /// Returns the client's body; only batches change, because they contain signed requests.
    fn request_body(&self, seen: &Seen) -> Bytes {
        let media_type = header(&seen.request_headers, "content-type").unwrap_or_default();
        if !media_type.starts_with("multipart/mixed") {
            return seen.request_body.clone();
        }
        let rewritten = multipart::rewrite(&seen.request_body, |inner| {
            if !inner.target.contains("://") {
                inner.target = self.split(&seen.host, &inner.target).1.to_owned();
            }
            inner.target = self.text(seen, &inner.target);
            for (name, value) in inner.headers.iter_mut() {
                *value = if SECRET.contains(&name) {
                    REDACTED.to_owned()
                } else {
                    self.text(seen, value)
                };
            }
        });
        // A batch that cannot be parsed may contain signatures anywhere.
        rewritten.unwrap_or_default()
    }

    /// Returns the service's body; documents are scrubbed, contents of blobs are not.
    fn response_body(&self, seen: &Seen) -> Bytes {
        let of = |name| header(&seen.response_headers, name).unwrap_or_default();
        let media_type = of("content-type");
        let is_document = ["xml", "json", "multipart"]
            .iter()
            .any(|kind| media_type.contains(kind));
        let is_content = seen.status < 300 && !of("x-ms-blob-type").is_empty();
        let text = std::str::from_utf8(&seen.response_body).ok();
        let Some(text) = text.filter(|_| is_document && !is_content) else {
            return seen.response_body.clone();
        };
        let mut text = self.text(seen, text);
        for element in SECRET_ELEMENTS {
            let is_key = *element == "Value" && !text.contains("<UserDelegationKey>");
            if !is_key {
                text = redact_element(&text, element);
            }
        }
        Bytes::from(text)
    }
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let found = headers.iter().find(|(n, _)| n == name);
    found.map(|(_, value)| value.as_str())
}

/// Removes the values of all `sig` parameters, in URLs, lists of parameters and XML.
fn redact_signatures(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find("sig=") {
        let (before, after) = rest.split_at(at + "sig=".len());
        out.push_str(before);
        let starts = rest[..at].chars().next_back();
        if starts.is_none_or(|c| "?&;".contains(c)) {
            let end = after.find(|c: char| "&\"'<# ,".contains(c) || c.is_whitespace());
            out.push_str(REDACTED);
            rest = &after[end.unwrap_or(after.len())..];
        } else {
            rest = after;
        }
    }
    out + rest
}

fn redact_element(text: &str, element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let Some((before, rest)) = text.split_once(&open) else {
        return text.to_owned();
    };
    match rest.split_once(&close) {
        Some((_, after)) => format!("{before}{open}{REDACTED}{close}{after}"),
        None => text.to_owned(),
    }
}

/// Replaces a word that has no letter or digit beside it.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        if is_part(text[..at].chars().next_back()) || is_part(text[end..].chars().next()) {
            continue;
        }
        out.push_str(&text[done..at]);
        out.push_str(by);
        done = end;
    }
    out + &text[done..]
}

/// Whether a name exists without being created: the service itself, `$logs`, `$root`.
fn is_given(name: &str) -> bool {
    name.is_empty() || name.starts_with('$')
}

/// Returns the table of a request, and whether the request creates it. `Tables` itself and
/// transactions have none.
fn table_of(exchange: &Exchange, segment: &str) -> Option<(String, bool)> {
    if segment == "Tables" {
        let body = exchange.request.body.as_ref()?.bytes().ok()?;
        return Some((new_table(&body)?, true));
    }
    let named = segment.strip_prefix("Tables('");
    let named = named.and_then(|rest| rest.strip_suffix("')"));
    let name = named.unwrap_or_else(|| segment.split('(').next().unwrap_or(segment));
    Some((name.to_owned(), false))
}

/// Returns containers, queues or tables that were successfully used before they were created.
fn uncreated(service: Service, exchanges: &[Exchange]) -> Vec<String> {
    let mut created: Vec<String> = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for exchange in exchanges.iter().filter(|e| e.response.status < 300) {
        let Some(url) = Url::parse(&exchange.request.url) else {
            continue;
        };
        let segments = url.segments();
        let Some(name) = segments.first().filter(|name| !is_given(name)) else {
            continue;
        };
        let makes = exchange.request.method == "PUT"
            && segments.len() == 1
            && !url.has_param("comp")
            && (service == Service::Queue || url.has_param("restype"));
        let about = match service {
            Service::Table => table_of(exchange, name),
            Service::Blob | Service::Queue => Some((name.clone(), makes)),
        };
        let Some((name, makes)) = about else {
            continue;
        };
        // Names of tables ignore case; the other names have no capitals.
        let is_in = |names: &[String]| names.iter().any(|one| one.eq_ignore_ascii_case(&name));
        let is_known = is_in(&created) || is_in(&missing);
        if makes {
            created.push(name);
        } else if !is_known {
            missing.push(name);
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [&str; 4] = ["s3cret", "real1", "127.0.0.1", "c0ffee"];

    fn about(authority: &str) -> About {
        About {
            service: Service::Blob,
            target: "smalt".to_owned(),
            recorded_at: "2026-11-21T11:00:00.0000000Z".to_owned(),
            authority: authority.to_owned(),
            seed: None,
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(n, v): &(&str, &str)| ((*n).to_owned(), (*v).to_owned());
        pairs.iter().map(own).collect()
    }

    fn seen(target: &str, request: &[(&str, &str)], body: &str, answer: &str) -> Seen {
        Seen {
            t: 1,
            host: "127.0.0.1:9".to_owned(),
            method: "POST".to_owned(),
            target: target.to_owned(),
            request_headers: pairs(request),
            request_body: Bytes::from(body.to_owned()),
            status: 200,
            response_headers: pairs(&[
                ("content-type", "application/xml"),
                ("content-length", &answer.len().to_string()),
            ]),
            response_body: Bytes::from(answer.to_owned()),
        }
    }

    /// The file contains no secret, wherever it was in the traffic.
    #[test]
    fn no_secret_is_written() {
        let batch = "--b\r\nContent-Type: application/http\r\n\r\n\
            DELETE /real1/c/b?sig=s3cret HTTP/1.1\r\nAuthorization: SharedKey real1:s3cret\r\n\
            \r\n--b--\r\n";
        let request = [
            ("authorization", "SharedKey real1:s3cret"),
            ("x-ms-encryption-key", "s3cret"),
            (
                "x-ms-copy-source",
                "http://127.0.0.1:9/real1/c/b?se=1&sig=s3cret&sp=r",
            ),
            ("user-agent", "c0ffee"),
            ("content-type", "multipart/mixed; boundary=b"),
        ];
        let answer = "<E a=\"http://127.0.0.1:10000/real1/\"><UserDelegationKey>\
            <Value>s3cret</Value></UserDelegationKey>real1 ?sv=1&amp;sig=s3cret<x/>\
            <AuthenticationErrorDetail>s3cret</AuthenticationErrorDetail></E>";
        let target = "/real1/c?comp=batch&SIG=s3cret";
        let trace = trace(
            &about("127.0.0.1:10000"),
            &[seen(target, &request, batch, answer)],
        );
        let text = trace.write().unwrap();
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        let exchange = &trace.exchanges[0];
        let url = "https://account.blob.core.windows.net/c?comp=batch&SIG=REDACTED";
        assert_eq!(exchange.request.url, url);
        let body = exchange.request.body.as_ref().unwrap().bytes().unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("DELETE /c/b?sig=REDACTED HTTP/1.1"), "{body}");
        let length = header(&exchange.response.headers, "content-length").unwrap();
        let answer = exchange.response.body.as_ref().unwrap().bytes().unwrap();
        assert_eq!(length, answer.len().to_string());
    }

    #[test]
    fn azure_hosts_name_the_account() {
        let authority = "real1.blob.core.windows.net";
        let one = seen("/c/real1.txt?x=1", &[], "", "<a>real12 real1</a>");
        let trace = trace(&about(authority), &[one]);
        let exchange = &trace.exchanges[0];
        let url = "https://account.blob.core.windows.net/c/real1.txt?x=1";
        assert_eq!(exchange.request.url, url);
        let body = exchange.response.body.as_ref().unwrap();
        assert_eq!(*body, Body::Text("<a>real12 account</a>".to_owned()));
        assert_eq!(trace.header.uncreated, ["c"]);
    }

    #[test]
    fn only_whole_words_are_replaced() {
        assert_eq!(replace_word("a ab a-b a", "a", "x"), "x ab x-b x");
        assert_eq!(redact_signatures("design=1&sig=2"), "design=1&sig=REDACTED");
    }

    #[test]
    fn tables_are_created_by_a_document() {
        let exchange = |method: &str, path: &str, body: &str| Exchange {
            t: 0,
            request: Request {
                method: method.to_owned(),
                url: format!("https://account.table.core.windows.net/{path}"),
                headers: Vec::new(),
                body: Body::of(body.as_bytes()),
            },
            response: Response {
                status: 200,
                headers: Vec::new(),
                body: None,
            },
        };
        let exchanges = [
            exchange("POST", "Tables", "{\"TableName\": \"made\"}"),
            exchange("GET", "Tables", ""),
            exchange("POST", "made", "{}"),
            exchange("GET", "Made()?$top=1", ""),
            exchange("POST", "$batch", "--b--"),
            exchange("GET", "found(PartitionKey='a',RowKey='b')", ""),
            exchange("DELETE", "Tables('gone')", ""),
        ];
        assert_eq!(uncreated(Service::Table, &exchanges), ["found", "gone"]);
    }
}
