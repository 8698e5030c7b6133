//! A writer of documents in the service's style: byte order mark, one line, `<Empty />`.
//!
//! Source: recordings, for all of it. Only this module escapes text.

use std::borrow::Cow;

use crate::uri;

/// The start of every document: byte order mark and declaration.
const START: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// The same without the mark, for the documents of the Table service.
const START_WITHOUT_MARK: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// A document under construction. The caller closes every element that it opens.
#[derive(Clone, Debug)]
pub struct XmlWriter {
    out: Vec<u8>,
}

/// The start of a listing, which echoes those parameters that the request has.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListHead<'a> {
    /// Base URL of the service, with a trailing slash.
    pub service_endpoint: &'a str,
    /// The container, in a listing of blobs.
    pub container_name: Option<&'a str>,
    /// `prefix`.
    pub prefix: Option<&'a str>,
    /// `marker`.
    pub marker: Option<&'a str>,
    /// `maxresults`.
    pub max_results: Option<u32>,
    /// `delimiter`, in a listing of blobs.
    pub delimiter: Option<&'a str>,
    /// Whether the listing has the form before 2013-08-15, with addresses of the account, the
    /// container and each entry.
    pub has_addresses: bool,
}

impl ListHead<'_> {
    /// Returns the prefix of the entries' addresses, if the listing has addresses.
    pub(crate) fn address(&self) -> Option<String> {
        let endpoint = self.service_endpoint;
        let address = match self.container_name {
            Some(container) => format!("{endpoint}{container}/"),
            None => endpoint.to_owned(),
        };
        self.has_addresses.then_some(address)
    }
}

impl Default for XmlWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl XmlWriter {
    /// Starts a document with its declaration.
    pub fn new() -> Self {
        XmlWriter {
            out: START.as_bytes().to_vec(),
        }
    }

    /// Starts a document with its declaration and without a byte order mark.
    pub fn without_mark() -> Self {
        XmlWriter {
            out: START_WITHOUT_MARK.as_bytes().to_vec(),
        }
    }

    /// Writes `<name>`.
    pub fn open(&mut self, name: &str) {
        self.put(&["<", name, ">"]);
    }

    /// Writes `<name attribute="value">`.
    pub fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.put(&[">"]);
    }

    /// Writes `<name attribute="value" />`.
    pub fn empty_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.put(&[" />"]);
    }

    fn start(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.put(&["<", name]);
        for (attribute, value) in attributes {
            self.put(&[" ", attribute, "=\""]);
            self.escape(value, true);
            self.put(&["\""]);
        }
    }

    /// Writes `</name>`.
    pub fn close(&mut self, name: &str) {
        self.put(&["</", name, ">"]);
    }

    /// Writes `<name />`.
    pub fn empty(&mut self, name: &str) {
        self.put(&["<", name, " />"]);
    }

    /// Writes `<name>text</name>`, or `<name />` for an empty string.
    pub fn element(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return self.empty(name);
        }
        self.open(name);
        self.escape(text, false);
        self.close(name);
    }

    /// Writes the element unless `text` is `None`.
    pub fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.element(name, text);
        }
    }

    /// Writes `<name>true</name>` or `<name>false</name>`.
    pub fn boolean(&mut self, name: &str, value: bool) {
        self.element(name, if value { "true" } else { "false" });
    }

    /// Writes a blob's name or prefix. A name with characters that XML cannot represent is
    /// percent-encoded and marked, as recorded: `<Name Encoded="true">dir%EF%BF%BF%2F</Name>`.
    pub fn name_element(&mut self, name: &str, text: &str) {
        if is_plain(text) || text.chars().all(is_xml_char) {
            return self.element(name, text);
        }
        self.open_with(name, &[("Encoded", "true")]);
        self.put(&[&uri::encode_query(text)]);
        self.close(name);
    }

    /// Writes escaped text inside the open element.
    pub fn text(&mut self, text: &str) {
        self.escape(text, false);
    }

    /// Opens `EnumerationResults` with its attributes and echoed parameters.
    pub fn open_listing(&mut self, head: &ListHead<'_>) {
        let endpoint = ("ServiceEndpoint", head.service_endpoint);
        match head.container_name {
            Some(name) if head.has_addresses => {
                let address = format!("{}{name}", head.service_endpoint);
                self.open_with("EnumerationResults", &[("ContainerName", &address)]);
            }
            None if head.has_addresses => {
                let account = ("AccountName", head.service_endpoint);
                self.open_with("EnumerationResults", &[account]);
            }
            Some(name) => {
                self.open_with("EnumerationResults", &[endpoint, ("ContainerName", name)]);
            }
            None => self.open_with("EnumerationResults", &[endpoint]),
        }
        self.optional("Prefix", head.prefix);
        self.optional("Marker", head.marker);
        self.optional(
            "MaxResults",
            head.max_results.map(|most| most.to_string()).as_deref(),
        );
        self.optional("Delimiter", head.delimiter);
    }

    /// Returns the document.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    fn put(&mut self, parts: &[&str]) {
        for part in parts {
            self.out.extend_from_slice(part.as_bytes());
        }
    }

    /// Writes text with markup escaped. Characters that XML cannot represent become U+FFFD. A
    /// carriage return becomes a character reference, since parsers would turn it into a line feed.
    fn escape(&mut self, text: &str, in_attribute: bool) {
        let stays = |byte| matches!(byte, b' '..=0x7f) & !matches!(byte, b'<' | b'>' | b'&' | b'"');
        if has_only(text, stays) {
            return self.put(&[text]);
        }
        let mut written = 0;
        for (at, byte) in text.bytes().enumerate() {
            let replacement = match byte {
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'&' => "&amp;",
                b'"' if in_attribute => "&quot;",
                b'\n' if in_attribute => "&#xA;",
                b'\t' if in_attribute => "&#x9;",
                b'\r' => "&#xD;",
                0..=0x1f if byte != b'\n' && byte != b'\t' => "\u{fffd}",
                // U+FFFE and U+FFFF. After the first byte of a character two more always follow.
                0xef if matches!(
                    text.as_bytes().get(at + 1..at + 3),
                    Some([0xbf, 0xbe | 0xbf])
                ) =>
                {
                    self.put(&[&text[written..at], "\u{fffd}"]);
                    written = at + 3;
                    continue;
                }
                _ => continue,
            };
            self.put(&[&text[written..at], replacement]);
            written = at + 1;
        }
        self.put(&[&text[written..]]);
    }
}

/// Returns whether XML 1.0 can represent the character.
pub fn is_xml_char(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Returns whether a text is ASCII that XML represents as it is, which most texts are.
pub fn is_plain(text: &str) -> bool {
    has_only(text, |byte| {
        matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=0x7f)
    })
}

/// Looks at every byte instead of stopping at the first wrong one, so that the compiler makes it
/// check many at once.
fn has_only(text: &str, is_right: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |all, byte| all & is_right(byte))
}

/// Replaces characters that XML cannot represent with dots, for messages.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_xml_char) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| if is_xml_char(c) { c } else { '.' })
            .collect(),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::xml::read::read_document;
    use proptest::prelude::*;

    /// Checks and removes the byte order mark and declaration.
    pub(crate) fn body_of(document: Vec<u8>) -> String {
        let text = String::from_utf8(document).unwrap();
        assert!(
            !text.contains('\n') || text.contains("RequestId"),
            "one line"
        );
        text.strip_prefix(START).unwrap().to_owned()
    }

    #[test]
    fn writes_in_the_service_s_style() {
        let mut xml = XmlWriter::new();
        xml.open_with("A", &[("b", "<\"c\">\n")]);
        xml.element("Etag", "\"0x1\"");
        xml.element("Empty", "");
        xml.optional("No", None);
        xml.boolean("Yes", true);
        xml.element("T", "a<b>&'c'\r\u{1}\u{ffff}ü\t");
        xml.name_element("Name", "dir\u{ffff}/x y");
        xml.name_element("Name", "a/ü");
        xml.close("A");
        assert_eq!(
            body_of(xml.finish()).as_str(),
            "<A b=\"&lt;&quot;c&quot;&gt;&#xA;\"><Etag>\"0x1\"</Etag><Empty /><Yes>true</Yes>\
             <T>a&lt;b&gt;&amp;'c'&#xD;\u{fffd}\u{fffd}ü\t</T>\
             <Name Encoded=\"true\">dir%EF%BF%BF%2Fx%20y</Name><Name>a/ü</Name></A>"
        );
    }

    proptest! {
        #[test]
        fn any_text_parses_back(text in "(.|[\\x00-\\x1f<>&\"']|\u{fffe}|\u{ffff}|\r\n){0,40}") {
            let mut xml = XmlWriter::new();
            xml.element("T", &text);
            let document = xml.finish();
            let read = read_document(&document, 1).unwrap();
            let expected: String =
                text.chars().map(|c| if is_xml_char(c) { c } else { '\u{fffd}' }).collect();
            prop_assert_eq!(read.text.as_ref(), expected);
        }
    }
}
