//! The body of an error: `Error` with code, message and the details of the request.
//!
//! Source: *Status and error codes*; recordings for the lines in the message.

use crate::error::StorageError;
use crate::time::Timestamp;
use crate::xml::write::XmlWriter;

/// The document of one error response.
#[derive(Clone, Copy, Debug)]
pub struct ErrorDocument<'a> {
    /// The error to render.
    pub error: &'a StorageError,
    /// The request id, as in `x-ms-request-id`.
    pub request_id: &'a str,
    /// The time of the error.
    pub time: Timestamp,
}

impl ErrorDocument<'_> {
    /// Returns the message with its lines for request id and time, as JSON errors also have it.
    pub fn message(&self) -> String {
        let (message, id, time) = (self.error.message(), self.request_id, self.time.iso_ticks());
        format!("{message}\nRequestId:{id}\nTime:{time}")
    }

    /// Renders the document.
    pub fn render(&self) -> Vec<u8> {
        let mut xml = XmlWriter::new();
        xml.open("Error");
        xml.element("Code", self.error.code().as_str());
        xml.element("Message", &self.message());
        for (name, value) in self.error.elements() {
            xml.element(name, value);
        }
        xml.close("Error");
        xml.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_as_recorded() {
        let error = StorageError::invalid_header("x-ms-lease-id", "a<b\u{1}");
        let time = Timestamp::parse_iso("2021-04-13T15:57:49.0465551Z").unwrap();
        let document = ErrorDocument {
            error: &error,
            request_id: "2c9d",
            time,
        };
        assert_eq!(
            String::from_utf8(document.render()).unwrap(),
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>\
             <Code>InvalidHeaderValue</Code><Message>The value for one of the HTTP headers is not \
             in the correct format.\nRequestId:2c9d\nTime:2021-04-13T15:57:49.0465551Z</Message>\
             <HeaderName>x-ms-lease-id</HeaderName>\
             <HeaderValue>a&lt;b\u{fffd}</HeaderValue></Error>"
        );
    }
}
