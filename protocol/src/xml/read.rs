//! A parser of request bodies: a small tree with positions, bounded in depth and size.
//!
//! Errors have line, position and reason as the service gives them. Its positions are those of a
//! .NET reader: an element's position is the first character of its name, and an invalid value is
//! reported at the node after the element, where the reader then is.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::attributes::{AttrError, Attribute};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::error::{ErrorCode, StorageError};
use crate::limits::XML_DEPTH_MAX;
use crate::xml::write::{is_plain, is_xml_char, printable};

/// Maximum attributes of an element: smalt's own limit, since checking for repeated names compares
/// all pairs.
const ATTRIBUTES_MAX: usize = 64;

/// Maximum elements of an ordinary document (service properties, policies, tags): smalt's own
/// limit, several times the need of any.
pub const ELEMENTS_MAX: usize = 1_000;

/// An element with its own text and its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The name as written.
    pub name: &'a str,
    /// The text without that of its children; entities are resolved, white space is kept.
    pub text: Cow<'a, str>,
    /// The children in order.
    pub children: Vec<Element<'a>>,
    /// The attributes in order, with names as written.
    pub attributes: Vec<(String, String)>,
    at: Position<'a>,
    end: Position<'a>,
    after: Position<'a>,
}

/// A position in a document: the text before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Position<'a>(&'a str);

impl<'a> Element<'a> {
    /// Returns the first child with this name.
    pub fn child(&self, name: &str) -> Option<&Element<'a>> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the value of an attribute by the local part of its name.
    pub fn attribute(&self, local: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(name, _)| local_name(name) == local)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the name without its prefix.
    pub fn local_name(&self) -> &'a str {
        local_name(self.name)
    }

    /// Returns a required child.
    ///
    /// # Errors
    /// 400 `InvalidXmlDocument`, at the end of this element, if the child is missing.
    pub fn required(&self, name: &str) -> Result<&Element<'a>, StorageError> {
        self.child(name)
            .ok_or_else(|| invalid(self.end, &format!("Element is missing: {name}.")))
    }

    /// Returns the error for this element's value, with the service's reason.
    pub fn refuse(&self, reason: &str) -> StorageError {
        invalid(self.after, reason)
    }

    /// Returns the error for a document that ends with this empty element but requires more, with
    /// the message of the service's reader.
    pub fn refuse_end(&self) -> StorageError {
        let problem = "'None' is an invalid XmlNodeType";
        invalid(self.after, &parsing_at(problem, self.after))
    }

    /// Returns the error for an element in the wrong place; without a reason, as in some
    /// recordings.
    pub fn unexpected(&self) -> StorageError {
        invalid_at(self.at)
    }

    /// Returns the text without surrounding white space.
    pub fn trimmed(&self) -> &str {
        self.text.trim()
    }

    fn push_text(&mut self, text: Cow<'a, str>) {
        if self.text.is_empty() {
            self.text = text;
        } else {
            self.text.to_mut().push_str(&text);
        }
    }
}

/// Parses a document of at most this many elements.
///
/// # Errors
/// 400 `InvalidXmlDocument` for anything but a well-formed document of UTF-8 text, for document
/// type definitions, unknown entities, and documents beyond the limits.
pub fn read_document(body: &[u8], elements_max: usize) -> Result<Element<'_>, StorageError> {
    let start = Position::default();
    let text = std::str::from_utf8(body).map_err(|_| invalid(start, &parsing("not UTF-8")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    let mut tree = Tree {
        text,
        open: Vec::new(),
        root: None,
        elements: 0,
        elements_max,
    };
    loop {
        let at = offset(reader.buffer_position(), text);
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let at = Position(before(text, offset(reader.error_position(), text)));
                return Err(invalid(at, &parsing_at(&error.to_string(), at)));
            }
        };
        let until = offset(reader.buffer_position(), text);
        if let Some(root) = tree.take(event, at, until)? {
            return Ok(root);
        }
    }
}

/// Returns whether a body is empty except for a byte order mark and white space.
pub fn is_blank(body: &[u8]) -> bool {
    body.strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(body)
        .trim_ascii()
        .is_empty()
}

/// The tree parsed so far.
struct Tree<'a> {
    text: &'a str,
    open: Vec<Element<'a>>,
    root: Option<Element<'a>>,
    elements: usize,
    elements_max: usize,
}

impl<'a> Tree<'a> {
    /// Processes the event between two offsets; returns the root at the end of the document.
    fn take(
        &mut self,
        event: Event<'a>,
        at: usize,
        until: usize,
    ) -> Result<Option<Element<'a>>, StorageError> {
        self.check_characters(at, until)?;
        let here = self.position(at);
        match event {
            Event::Start(tag) => {
                self.start(&tag, at)?;
            }
            Event::Empty(tag) => {
                self.start(&tag, at)?;
                self.end(self.position(at + 1));
            }
            Event::End(_) => {
                let name = self.position(at + 2);
                self.pass(name);
                self.end(name);
            }
            Event::Text(text) => self.characters(text.xml10_content(), here)?,
            Event::CData(data) => self.characters(data.xml10_content(), here)?,
            Event::GeneralRef(reference) => {
                let text = resolve(&reference).ok_or_else(|| self.error(here, "unknown entity"))?;
                self.characters(Cow::Owned(text), here)?;
            }
            Event::DocType(_) => {
                return Err(self.error(here, "a document type definition is prohibited"));
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => return self.eof(here).map(Some),
        }
        Ok(None)
    }

    fn start(&mut self, tag: &BytesStart<'a>, at: usize) -> Result<(), StorageError> {
        let name = self.position(at + 1);
        self.pass(name);
        self.elements += 1;
        if self.elements > self.elements_max || self.open.len() >= XML_DEPTH_MAX {
            return Err(self.error(name, "the document is too large or too deep"));
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(self.error(name, "there are multiple root elements"));
        }
        let attributes =
            attributes(tag).ok_or_else(|| self.error(name, "an attribute is malformed"))?;
        let length = tag.name().as_ref().len();
        let written = self.text.get(at + 1..at + 1 + length).unwrap_or_default();
        if !is_name(written) {
            return Err(self.error(name, "an element has no valid name"));
        }
        let (text, children, after) = (Cow::Borrowed(""), Vec::new(), Position::default());
        self.open.push(Element {
            name: written,
            text,
            children,
            attributes,
            at: name,
            end: name,
            after,
        });
        Ok(())
    }

    fn end(&mut self, end: Position<'a>) {
        let Some(mut element) = self.open.pop() else {
            return;
        };
        element.end = end;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    /// Records that the reader reached a node, which follows the element that was closed last.
    fn pass(&mut self, node: Position<'a>) {
        let closed = match self.open.last_mut() {
            Some(parent) => parent.children.last_mut(),
            None => self.root.as_mut(),
        };
        if let Some(closed) = closed.filter(|element| element.after == Position::default()) {
            closed.after = node;
        }
    }

    fn characters(&mut self, text: Cow<'a, str>, at: Position<'a>) -> Result<(), StorageError> {
        match self.open.last_mut() {
            Some(element) => element.push_text(text),
            None if text.trim_ascii().is_empty() => {}
            None => return Err(self.error(at, "data at the root level is invalid")),
        }
        Ok(())
    }

    fn eof(&mut self, here: Position<'a>) -> Result<Element<'a>, StorageError> {
        self.pass(here);
        if !self.open.is_empty() {
            return Err(self.error(here, "unexpected end of file"));
        }
        self.root
            .take()
            .ok_or_else(|| self.error(here, "root element is missing"))
    }

    /// Rejects characters that XML does not allow, wherever they are.
    fn check_characters(&self, at: usize, until: usize) -> Result<(), StorageError> {
        let span = self.text.get(at..until).unwrap_or_default();
        if is_plain(span) {
            return Ok(());
        }
        let Some((index, bad)) = span.char_indices().find(|(_, c)| !is_xml_char(*c)) else {
            return Ok(());
        };
        let shown = format!(
            "'.', hexadecimal value 0x{:02X}, is an invalid character",
            bad as u32
        );
        Err(self.error(self.position(at + index), &shown))
    }

    fn error(&self, at: Position<'_>, problem: &str) -> StorageError {
        invalid(at, &parsing_at(problem, at))
    }

    fn position(&self, at: usize) -> Position<'a> {
        Position(before(self.text, at))
    }
}

/// Returns names and values, with the five entities of XML resolved; `None` for a malformed
/// attribute and for too many.
fn attributes(tag: &BytesStart<'_>) -> Option<Vec<(String, String)>> {
    let read = |attribute: Result<Attribute<'_>, AttrError>| {
        let attribute = attribute.ok()?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
        Some((attribute.key.as_ref().to_owned(), value.into_owned()))
    };
    let attributes: Vec<_> = tag
        .attributes()
        .take(ATTRIBUTES_MAX + 1)
        .map(read)
        .collect::<Option<_>>()?;
    (attributes.len() <= ATTRIBUTES_MAX).then_some(attributes)
}

fn local_name(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

/// Resolves the five entities of XML and character references to characters that XML allows.
fn resolve(reference: &BytesRef<'_>) -> Option<String> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return is_xml_char(character).then(|| character.to_string());
    }
    resolve_predefined_entity(&reference.xml10_content()).map(str::to_owned)
}

fn is_name(name: &str) -> bool {
    let first = name
        .chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_' || c == ':');
    first
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "_:-.\u{b7}".contains(c))
}

fn offset(position: u64, text: &str) -> usize {
    usize::try_from(position).unwrap_or(text.len())
}

/// Returns the text before an offset, which may lie inside a character or beyond the end.
fn before(text: &str, at: usize) -> &str {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    &text[..at]
}

impl Position<'_> {
    /// Returns line and column, both from 1; columns count UTF-16 units.
    fn line_and_position(self) -> (usize, usize) {
        let line = self.0.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let last = self.0.rsplit('\n').next().unwrap_or("");
        (line, last.encode_utf16().count() + 1)
    }
}

fn invalid(at: Position<'_>, reason: &str) -> StorageError {
    invalid_at(at).with_element("Reason", &printable(reason))
}

fn invalid_at(at: Position<'_>) -> StorageError {
    let (line, position) = at.line_and_position();
    StorageError::new(ErrorCode::InvalidXmlDocument)
        .with_element("LineNumber", &line.to_string())
        .with_element("LinePosition", &position.to_string())
}

fn parsing(problem: &str) -> String {
    format!("Error parsing Xml content: {problem}.")
}

fn parsing_at(problem: &str, at: Position<'_>) -> String {
    let (line, position) = at.line_and_position();
    format!("{} Line {line}, position {position}.", parsing(problem))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
