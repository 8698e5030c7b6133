//! The body of a batch: requests between boundary lines.
//!
//! Source: "Blob Batch", request body. Lines end with CR LF. Each part has its own head,
//! `Content-Type: application/http` and optionally a `Content-ID`; after an empty line follows a
//! request without a body whose URL is a path.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

const LINE_END: &str = "\r\n";

/// One request of a batch.
#[derive(Debug)]
pub struct Subrequest {
    /// `Content-ID`, which the response repeats.
    pub content_id: Option<String>,
    /// The request. Its URI has only a path and a query.
    pub request: Request<()>,
}

/// Parses the boundary of a `Content-Type`; `None` if it is not that of a batch.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (media_type, parameters) = content_type.split_once(';')?;
    if !media_type.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let named = |parameter: &'_ str| {
        let (name, _) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then_some(())
    };
    let parameter = parameters.split(';').find(|p| named(p).is_some())?;
    let (_, value) = parameter.split_once('=')?;
    let value = value.trim();
    let unquoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Some(unquoted.unwrap_or(value)).filter(|boundary| !boundary.is_empty())
}

/// Parses the requests of a batch, up to one more than `most`; `None` for a malformed batch.
pub fn read(body: &str, boundary: &str, most: usize) -> Option<Vec<Subrequest>> {
    let mut requests = Vec::new();
    for section in sections(body, boundary)?.into_iter().take(most + 1) {
        requests.push(subrequest(section)?);
    }
    Some(requests)
}

/// Splits a body at its boundary lines; `None` if the last one is missing.
fn sections<'a>(body: &'a str, boundary: &str) -> Option<Vec<&'a str>> {
    let opening = format!("--{boundary}");
    let delimiter = format!("{LINE_END}{opening}");
    let mut rest = body.trim_start_matches(LINE_END).strip_prefix(&opening)?;
    let mut sections = Vec::new();
    loop {
        if rest.starts_with("--") {
            return Some(sections);
        }
        // Keep the line end after the boundary: a section without a head starts with an empty line.
        let (section, behind) = rest.split_once(&delimiter)?;
        sections.push(section.strip_prefix(LINE_END)?);
        rest = behind;
    }
}

fn subrequest(section: &str) -> Option<Subrequest> {
    let (head, message) = section.split_once("\r\n\r\n")?;
    let head = headers(head)?;
    let text = |name| head.get(name).and_then(|value| value.to_str().ok());
    if !text("content-type")?.eq_ignore_ascii_case("application/http") {
        return None;
    }
    let message = message.trim_start_matches(LINE_END);
    let (message, nested) = message
        .split_once("\r\n\r\n")
        .unwrap_or((message.trim_end_matches(LINE_END), ""));
    // "A nested request body isn't supported": same page.
    if !nested.trim_matches(['\r', '\n']).is_empty() {
        return None;
    }
    let (line, message_head) = message.split_once(LINE_END).unwrap_or((message, ""));
    let mut request = Request::new(());
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    *request.method_mut() = Method::from_bytes(words.next()?.as_bytes()).ok()?;
    *request.uri_mut() = path(words.next()?)?;
    if !words.next()?.starts_with("HTTP/") || words.next().is_some() {
        return None;
    }
    *request.headers_mut() = headers(message_head)?;
    Some(Subrequest {
        content_id: text("content-id").map(str::to_owned),
        request,
    })
}

fn path(target: &str) -> Option<Uri> {
    let uri = if target.starts_with('/') {
        Uri::try_from(target)
    } else {
        Uri::try_from(format!("/{target}"))
    };
    uri.ok()
}

fn headers(lines: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in lines.split(LINE_END).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).ok()?;
        headers.try_append(name, value).ok()?;
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PART: &str = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
                        Content-ID: 7\r\n\r\nDELETE /c/b?snapshot=x HTTP/1.1\r\nx-ms-date: d\r\n";

    #[test]
    fn boundaries_are_found() {
        for (text, expected) in [
            ("multipart/mixed; boundary=b", Some("b")),
            ("Multipart/Mixed;BOUNDARY=\"a b\"", Some("a b")),
            (
                "multipart/mixed; boundary================21==",
                Some("===============21=="),
            ),
            ("multipart/mixed; charset=x; boundary=b", Some("b")),
            ("multipart/mixed; boundary=", None),
            ("multipart/mixed", None),
            ("multipart/form-data; boundary=b", None),
            ("", None),
        ] {
            assert_eq!(boundary(text), expected, "{text}");
        }
    }

    #[test]
    fn line_ends_of_all_clients_are_accepted() {
        for (start, end) in [("", "\r\n\r\n"), ("\r\n", "\r\n"), ("", "")] {
            let body = format!("{start}--b\r\n{PART}{end}\r\n--b\r\n{PART}{end}\r\n--b--\r\n");
            let read = read(&body, "b", 9).unwrap();
            assert_eq!(read.len(), 2);
            assert_eq!(read[1].content_id.as_deref(), Some("7"));
            let request = &read[0].request;
            assert_eq!(request.method(), Method::DELETE);
            assert_eq!(request.uri(), "/c/b?snapshot=x");
            assert_eq!(request.headers()["x-ms-date"], "d");
        }
    }

    #[test]
    fn an_empty_batch_has_no_requests() {
        assert_eq!(read("--b--", "b", 9).unwrap().len(), 0);
    }

    #[test]
    fn malformed_batches_are_rejected() {
        let part = |text: &str| format!("--b\r\n{text}\r\n--b--");
        for body in [
            String::new(),
            "--c--".to_owned(),
            // No closing boundary.
            format!("--b\r\n{PART}\r\n"),
            // LF instead of CR LF.
            part(PART).replace('\r', ""),
            part("DELETE /c/b HTTP/1.1\r\n"),
            part("Content-Type: text/plain\r\n\r\nDELETE /c/b HTTP/1.1\r\n"),
            part("Content-Type: application/http\r\n\r\nDELETE /c/b\r\n"),
            part("Content-Type: application/http\r\n\r\nDELETE  HTTP/1.1\r\n"),
            part("Content-Type: application/http\r\n\r\nDELETE /c/b HTTP/1.1\r\nnone\r\n"),
            part("Content-Type: application/http\r\n\r\nPUT /c/b HTTP/1.1\r\n\r\nbody"),
        ] {
            assert!(read(&body, "b", 9).is_none(), "{body}");
        }
    }

    #[test]
    fn parsing_stops_after_the_requested_number() {
        let body = format!("{}--b--", format!("--b\r\n{PART}\r\n").repeat(20));
        assert_eq!(read(&body, "b", 3).unwrap().len(), 4);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(
            text in "(--b|\r\n|Content-Type: application/http|[a-z /:]){0,40}",
        ) {
            let _ = read(&text, "b", 9);
        }
    }
}
