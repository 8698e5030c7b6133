//! Messages of a queue: the body of Put and Update Message, the answers of Put, Get and Peek.
//!
//! Source: *Put Message*, *Update Message*, *Get Messages*, *Peek Messages*; recordings for the
//! order of elements.

use crate::error::StorageError;
use crate::time::Timestamp;
use crate::version::ApiVersion;
use crate::xml::read::{ELEMENTS_MAX, read_document};
use crate::xml::write::XmlWriter;

/// Parses `<QueueMessage><MessageText>..</MessageText></QueueMessage>` and returns the text to
/// store. Unescaped markup inside the text is dropped, as documented.
///
/// # Errors
/// 400 `InvalidXmlDocument` with line, position and reason.
pub fn read_queue_message(body: &[u8]) -> Result<String, StorageError> {
    let root = read_document(body, ELEMENTS_MAX)?;
    if root.name != "QueueMessage" {
        return Err(root.unexpected());
    }
    Ok(root.required("MessageText")?.text.clone().into_owned())
}

/// One message of an answer. Fields that are `None` are omitted: Put Message returns pop receipt
/// and next visible time, Peek Messages dequeue count and text, Get Messages all.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageEntry<'a> {
    /// `MessageId`.
    pub id: &'a str,
    /// `InsertionTime`.
    pub insertion_time: Timestamp,
    /// `ExpirationTime`.
    pub expiration_time: Timestamp,
    /// `PopReceipt`.
    pub pop_receipt: Option<&'a str>,
    /// `TimeNextVisible`.
    pub time_next_visible: Option<Timestamp>,
    /// `DequeueCount`, since 2009-09-19.
    pub dequeue_count: Option<u32>,
    /// `MessageText`.
    pub text: Option<&'a str>,
}

/// The answer of Put, Get and Peek Messages, written message by message.
#[derive(Debug)]
pub struct QueueMessagesDocument {
    xml: XmlWriter,
    count_goes_first: bool,
    has_entries: bool,
}

impl QueueMessagesDocument {
    /// Starts the document. Recordings of 2014-02-14 have the dequeue count before the pop receipt,
    /// those of 2018-03-28 after the next visible time. The change is assumed at 2016-05-31, when
    /// Put Message began to return the message.
    pub fn new(version: ApiVersion) -> Self {
        let count_goes_first = version < ApiVersion::V2016_05_31;
        QueueMessagesDocument {
            xml: XmlWriter::new(),
            count_goes_first,
            has_entries: false,
        }
    }

    /// Writes one message.
    pub fn push(&mut self, entry: &MessageEntry<'_>) {
        let xml = &mut self.xml;
        if !self.has_entries {
            xml.open("QueueMessagesList");
            self.has_entries = true;
        }
        let count = entry.dequeue_count.map(|count| count.to_string());
        let next_visible = entry.time_next_visible.map(Timestamp::rfc1123);
        xml.open("QueueMessage");
        xml.element("MessageId", entry.id);
        xml.element("InsertionTime", &entry.insertion_time.rfc1123());
        xml.element("ExpirationTime", &entry.expiration_time.rfc1123());
        if self.count_goes_first {
            xml.optional("DequeueCount", count.as_deref());
        }
        xml.optional("PopReceipt", entry.pop_receipt);
        xml.optional("TimeNextVisible", next_visible.as_deref());
        if !self.count_goes_first {
            xml.optional("DequeueCount", count.as_deref());
        }
        xml.optional("MessageText", entry.text);
        xml.close("QueueMessage");
    }

    /// Returns the document.
    pub fn finish(mut self) -> Vec<u8> {
        if self.has_entries {
            self.xml.close("QueueMessagesList");
        } else {
            self.xml.empty("QueueMessagesList");
        }
        self.xml.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::xml::write::tests::body_of;
    use proptest::prelude::*;

    fn entry() -> MessageEntry<'static> {
        MessageEntry {
            id: "id",
            insertion_time: Timestamp::from_unix_s(1_557_363_479),
            expiration_time: Timestamp::MAX,
            pop_receipt: Some("AgAA="),
            time_next_visible: Some(Timestamp::from_unix_s(1_557_363_480)),
            dequeue_count: Some(1),
            text: Some("a<b"),
        }
    }

    fn render(version: ApiVersion, entries: &[MessageEntry<'_>]) -> String {
        let mut document = QueueMessagesDocument::new(version);
        entries.iter().for_each(|entry| document.push(entry));
        body_of(document.finish())
    }

    #[test]
    fn shapes_of_put_get_and_peek() {
        let head = "<QueueMessagesList><QueueMessage><MessageId>id</MessageId>\
                    <InsertionTime>Thu, 09 May 2019 00:57:59 GMT</InsertionTime>\
                    <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>";
        let receipt = "<PopReceipt>AgAA=</PopReceipt>\
                       <TimeNextVisible>Thu, 09 May 2019 00:58:00 GMT</TimeNextVisible>";
        let count = "<DequeueCount>1</DequeueCount>";
        let text = "<MessageText>a&lt;b</MessageText>";
        let tail = "</QueueMessage></QueueMessagesList>";
        let get = entry();
        let put = MessageEntry {
            dequeue_count: None,
            text: None,
            ..get
        };
        let peek = MessageEntry {
            pop_receipt: None,
            time_next_visible: None,
            ..get
        };
        let new = ApiVersion::V2018_03_28;
        let old = ApiVersion::V2014_02_14;
        for (version, entry, expected) in [
            (new, get, format!("{head}{receipt}{count}{text}{tail}")),
            (old, get, format!("{head}{count}{receipt}{text}{tail}")),
            (new, put, format!("{head}{receipt}{tail}")),
            (new, peek, format!("{head}{count}{text}{tail}")),
        ] {
            assert_eq!(render(version, &[entry]), expected);
        }
        assert_eq!(render(new, &[]), "<QueueMessagesList />");
        assert_eq!(
            render(new, &[get, get]).matches("<QueueMessage>").count(),
            2
        );
    }

    #[test]
    fn message_texts_are_parsed() {
        for (inner, expected) in [
            ("<MessageText>a&lt;b</MessageText>", Some("a<b")),
            ("<MessageText> a\n </MessageText>", Some(" a\n ")),
            ("<MessageText/>", Some("")),
            ("<MessageText>a<b>c</b>d</MessageText>", Some("ad")),
            ("\n  <MessageText>x</MessageText>\n", Some("x")),
            ("", None),
            ("<messagetext>x</messagetext>", None),
        ] {
            let body = format!("<?xml version=\"1.0\"?> <QueueMessage>{inner}</QueueMessage>");
            assert_eq!(
                read_queue_message(body.as_bytes()).ok().as_deref(),
                expected,
                "{inner}"
            );
        }
        for body in ["", "<Other><MessageText>x</MessageText></Other>", "{}"] {
            let error = read_queue_message(body.as_bytes()).unwrap_err();
            assert_eq!(
                (error.status(), error.code()),
                (400, ErrorCode::InvalidXmlDocument)
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_back(text in "[^\\x00-\\x1f\u{fffe}\u{ffff}]{0,40}") {
            let mut xml = XmlWriter::new();
            xml.open("QueueMessage");
            xml.element("MessageText", &text);
            xml.close("QueueMessage");
            prop_assert_eq!(read_queue_message(&xml.finish()).unwrap(), text);
        }
    }
}
