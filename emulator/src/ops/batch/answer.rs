//! The response to a batch, as recorded: one part for each request, byte for byte.
//!
//! A part has its `Content-ID`, a status line with a reason (an error's message), the headers of
//! the response without those of the connection, and the document of an error. Without a document,
//! the line end before a boundary is the empty line after the headers.

use http::{HeaderMap, StatusCode};

/// Headers of every response, in the recorded order, after those of the operation.
const COMMON: [(&str, &str); 5] = [
    ("x-ms-request-id", "x-ms-request-id"),
    ("x-ms-version", "x-ms-version"),
    ("x-ms-client-request-id", "x-ms-client-request-id"),
    ("content-length", "Content-Length"),
    ("content-type", "Content-Type"),
];
/// Headers of the connection, or written otherwise.
const LEFT_OUT: [&str; 2] = ["date", "server"];
const SERVER: &str = "Windows-Azure-Blob/1.0";

/// Builds a response.
#[derive(Debug)]
pub struct Multipart {
    boundary: String,
    out: Vec<u8>,
}

/// The response to one request.
#[derive(Debug)]
pub struct Subresponse<'a> {
    /// `Content-ID` of the request.
    pub content_id: Option<&'a str>,
    /// The status code.
    pub status: StatusCode,
    /// The reason in the status line.
    pub reason: &'a str,
    /// Headers, including those of the connection.
    pub headers: &'a HeaderMap,
    /// The document of an error.
    pub document: &'a [u8],
}

impl Multipart {
    /// Starts a response without parts.
    pub fn new(boundary: String) -> Self {
        Multipart {
            boundary,
            out: Vec::new(),
        }
    }

    /// Returns the `Content-Type` of the response.
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// Adds a part.
    pub fn push(&mut self, part: &Subresponse<'_>) {
        self.line(&format!("--{}", self.boundary));
        self.line("Content-Type: application/http");
        if let Some(id) = part.content_id {
            self.line(&format!("Content-ID: {id}"));
        }
        self.line("");
        // The reason must be a single line.
        let reason = part.reason.lines().next().unwrap_or_default();
        self.line(&format!("HTTP/1.1 {} {reason}", part.status.as_u16()));
        for (name, value) in part.headers {
            let is_own = !COMMON.iter().any(|(common, _)| *common == name.as_str());
            if is_own && !LEFT_OUT.contains(&name.as_str()) {
                self.header(name.as_str(), value.as_bytes());
            }
        }
        for (name, shown) in COMMON {
            let has_none = name == "content-length" && part.document.is_empty();
            if let Some(value) = part.headers.get(name).filter(|_| !has_none) {
                self.header(shown, value.as_bytes());
            }
        }
        self.header("Server", SERVER.as_bytes());
        self.line("");
        if !part.document.is_empty() {
            self.out.extend_from_slice(part.document);
            self.line("");
        }
    }

    /// Returns the bytes of the response.
    pub fn finish(mut self) -> Vec<u8> {
        let end = format!("--{}--", self.boundary);
        self.out.extend_from_slice(end.as_bytes());
        self.out
    }

    fn header(&mut self, name: &str, value: &[u8]) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(value);
        self.line("");
    }

    fn line(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn parts_match_the_recordings() {
        let mut answer = Multipart::new("batchresponse_1".to_owned());
        let deleted = headers(&[
            ("x-ms-delete-type-permanent", "true"),
            ("content-length", "0"),
            ("date", "d"),
            ("server", "s"),
            ("x-ms-request-id", "r"),
            ("x-ms-version", "2020-06-12"),
            ("x-ms-client-request-id", "c"),
        ]);
        answer.push(&Subresponse {
            content_id: Some("0"),
            status: StatusCode::ACCEPTED,
            reason: "Accepted",
            headers: &deleted,
            document: b"",
        });
        let refused = headers(&[
            ("content-type", "application/xml"),
            ("x-ms-error-code", "BlobNotFound"),
            ("content-length", "7"),
            ("x-ms-request-id", "r"),
            ("x-ms-version", "2020-06-12"),
        ]);
        answer.push(&Subresponse {
            content_id: None,
            status: StatusCode::NOT_FOUND,
            reason: "There is none.\nReally.",
            headers: &refused,
            document: b"<Error>",
        });
        assert_eq!(
            String::from_utf8(answer.finish()).unwrap(),
            "--batchresponse_1\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
             HTTP/1.1 202 Accepted\r\nx-ms-delete-type-permanent: true\r\nx-ms-request-id: r\r\n\
             x-ms-version: 2020-06-12\r\nx-ms-client-request-id: c\r\n\
             Server: Windows-Azure-Blob/1.0\r\n\r\n\
             --batchresponse_1\r\nContent-Type: application/http\r\n\r\n\
             HTTP/1.1 404 There is none.\r\nx-ms-error-code: BlobNotFound\r\nx-ms-request-id: r\r\n\
             x-ms-version: 2020-06-12\r\nContent-Length: 7\r\nContent-Type: application/xml\r\n\
             Server: Windows-Azure-Blob/1.0\r\n\r\n<Error>\r\n--batchresponse_1--"
        );
    }
}
