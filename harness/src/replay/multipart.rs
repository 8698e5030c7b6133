//! Multipart bodies of batches: parsed for comparison, rewritten part by part for sending.

use bytes::Bytes;

use super::tree::{self, Part};
use crate::wire::Headers;

/// Parses a multipart body. The first line gives the boundary, because some recorders lost the
/// header. Returns `None` when the body is not multipart or never ends.
pub fn parse(body: &[u8]) -> Option<Vec<Part>> {
    sections(body)?.into_iter().map(part).collect()
}

/// Returns the raw parts between the boundary lines.
fn sections(body: &[u8]) -> Option<Vec<&[u8]>> {
    let line_end = find(body, b"\n")?;
    let boundary = body[..line_end].trim_ascii_end();
    if !boundary.starts_with(b"--") || boundary.len() < 3 {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = &body[line_end + 1..];
    loop {
        let at = find(rest, boundary)?;
        let before = &rest[..at];
        let trimmed = before.strip_suffix(b"\n").unwrap_or(before);
        parts.push(trimmed.strip_suffix(b"\r").unwrap_or(trimmed));
        rest = &rest[at + boundary.len()..];
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        let line_end = find(rest, b"\n")?;
        rest = &rest[line_end + 1..];
    }
}

fn part(raw: &[u8]) -> Option<Part> {
    let (headers, body) = head_and_body(raw)?;
    let headers = parse_headers(headers)?;
    let media_type = headers
        .get("content-type")
        .unwrap_or_default()
        .to_ascii_lowercase();
    if !media_type.starts_with("application/http") {
        let body = Box::new(tree::parse(
            Some(&media_type),
            &Bytes::copy_from_slice(body),
        ));
        return Some(Part {
            headers,
            start_line: None,
            message_headers: Headers::default(),
            body,
        });
    }
    let line_end = find(body, b"\n")?;
    let start_line = std::str::from_utf8(&body[..line_end])
        .ok()?
        .trim()
        .to_owned();
    let (head, inner) = head_and_body(&body[line_end + 1..])?;
    let message_headers = parse_headers(head)?;
    let inner = Bytes::copy_from_slice(inner.trim_ascii_end());
    let tree = tree::parse(message_headers.get("content-type"), &inner);
    Some(Part {
        headers,
        start_line: Some(start_line),
        message_headers,
        body: Box::new(tree),
    })
}

/// Splits at the first empty line; without one everything is the head.
fn head_and_body(raw: &[u8]) -> Option<(&str, &[u8])> {
    if let Some(body) = raw.strip_prefix(b"\r\n") {
        return Some(("", body));
    }
    let (head, body) = match find(raw, b"\r\n\r\n") {
        Some(at) => (&raw[..at], &raw[at + 4..]),
        None => match find(raw, b"\n\n") {
            Some(at) => (&raw[..at], &raw[at + 2..]),
            None => (raw, &raw[raw.len()..]),
        },
    };
    Some((std::str::from_utf8(head).ok()?, body))
}

fn parse_headers(head: &str) -> Option<Headers> {
    let lines = head.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| line.split_once(':').map(|(n, v)| (n.trim(), v.trim())))
        .collect()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// A nested request of a batch, which can be changed before it is sent.
pub struct Inner<'a> {
    /// HTTP method, such as `DELETE`.
    pub method: &'a str,
    /// Absolute URL, or the part from the path on.
    pub target: String,
    /// In order, with names in lower case.
    pub headers: Headers,
}

/// Rewrites every nested request line and its headers in a batch's body. All other bytes, in
/// particular the boundaries, stay. Returns `None` when the body is not UTF-8.
pub fn rewrite(body: &[u8], mut change: impl FnMut(&mut Inner<'_>)) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let mut out = String::with_capacity(text.len() + 256);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let Some((method, target)) = request_line(line) else {
            out.push_str(line);
            continue;
        };
        let mut headers = Headers::default();
        while let Some((name, value)) = lines.peek().and_then(|l| l.trim_end().split_once(':')) {
            headers.push(name.trim(), value.trim());
            lines.next();
        }
        let mut inner = Inner {
            method,
            target: target.to_owned(),
            headers,
        };
        change(&mut inner);
        out.push_str(&format!("{method} {} HTTP/1.1\r\n", inner.target));
        for (name, value) in inner.headers.iter() {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    Some(Bytes::from(out))
}

/// Splits `DELETE /container/blob HTTP/1.1` into method and target.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end().strip_suffix(" HTTP/1.1")?;
    let (method, target) = line.split_once(' ')?;
    let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    is_method.then_some((method, target))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    const ANSWER: &str = "--b_1\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
        HTTP/1.1 202 Accepted\r\nx-ms-version: 2018-11-09\r\n\r\n\
        --b_1\r\nContent-Type: application/http\r\n\r\n\
        HTTP/1.1 404 Not here\r\nContent-Type: application/xml\r\n\r\n\
        <Error><Code>C</Code></Error>\r\n\
        --b_1--";

    #[test]
    fn parses_a_batch_answer() {
        let parts = parse(ANSWER.as_bytes()).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].headers.get("content-id"), Some("0"));
        assert_eq!(
            parts[0].start_line.as_deref(),
            Some("HTTP/1.1 202 Accepted")
        );
        assert_eq!(
            parts[0].message_headers.get("x-ms-version"),
            Some("2018-11-09")
        );
        assert!(matches!(&*parts[1].body, Tree::Document(_, _, root) if root.name == "Error"));
        let other = ANSWER.replace("b_1", "another");
        assert_eq!(parse(other.as_bytes()).unwrap(), parts);
        assert_eq!(parse(&ANSWER.as_bytes()[..ANSWER.len() - 2]), None);
    }

    #[test]
    fn parses_a_change_set() {
        let inner = ANSWER.replace("b_1", "c_2");
        let text = format!(
            "--o\r\nContent-Type: multipart/mixed; boundary=c_2\r\n\r\n{inner}\r\n--o--\r\n"
        );
        let parts = parse(text.as_bytes()).unwrap();
        assert!(matches!(&*parts[0].body, Tree::Parts(inner) if inner.len() == 2));
    }

    #[test]
    fn rewrites_nested_requests_only() {
        let body = "--b\r\nContent-Type: application/http\r\n\r\n\
            PUT /c/b?comp=tier HTTP/1.1\r\nAuthorization: old\r\n\
            x-ms-date: d\r\n\r\nbody: 1\r\n--b--\r\n";
        let new = rewrite(body.as_bytes(), |inner| {
            assert_eq!(
                (inner.method, inner.target.as_str()),
                ("PUT", "/c/b?comp=tier")
            );
            inner.target = "/account/c/b".into();
            inner.headers.set("authorization", "new");
        });
        let expected = "--b\r\nContent-Type: application/http\r\n\r\n\
            PUT /account/c/b HTTP/1.1\r\n\
            x-ms-date: d\r\nauthorization: new\r\n\r\nbody: 1\r\n--b--\r\n";
        assert_eq!(new.unwrap(), expected);
    }
}
