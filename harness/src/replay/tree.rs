//! Bodies as trees: XML, JSON, multipart answers of a batch, Avro files, or plain bytes.

use bytes::Bytes;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::avro;
use super::json;
use super::multipart;
use crate::wire::Headers;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A body, parsed as far as its order and names matter.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// An XML document: whether it starts with a byte order mark, its declaration, its root.
    Document(bool, Option<String>, Element),
    /// A JSON value.
    Json(json::Json),
    /// The parts of a multipart body, without the boundary, which the sender chooses.
    Parts(Vec<Part>),
    /// Any other body.
    Bytes(Bytes),
}

/// An XML element, without the white space between elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Element {
    /// Name with its prefix, as written.
    pub name: String,
    /// Names and values, in order.
    pub attributes: Vec<(String, String)>,
    /// Child elements, in order.
    pub children: Vec<Element>,
    /// All text directly in the element.
    pub text: String,
}

impl Element {
    /// Returns the child with this name, if there is exactly one.
    pub fn only(&self, name: &str) -> Option<&Element> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        found.next().filter(|_| found.next().is_none())
    }
}

/// One part of a multipart body: headers and a nested HTTP message, multipart body or bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Headers of the part itself.
    pub headers: Headers,
    /// First line of the nested HTTP message, if there is one.
    pub start_line: Option<String>,
    /// Headers of the nested message.
    pub message_headers: Headers,
    /// Body of the nested message, or of the part.
    pub body: Box<Tree>,
}

/// Parses a body by its media type. A malformed body stays bytes.
pub fn parse(media_type: Option<&str>, body: &Bytes) -> Tree {
    let media_type = media_type.unwrap_or_default().to_ascii_lowercase();
    if media_type.starts_with("multipart/")
        && let Some(parts) = multipart::parse(body)
    {
        return Tree::Parts(parts);
    }
    if media_type.starts_with("avro/")
        && let Some(file) = avro::unmarked(body)
    {
        return Tree::Bytes(file);
    }
    if media_type.contains("json")
        && let Some(value) = json::parse(body)
    {
        return Tree::Json(value);
    }
    if media_type.contains("xml")
        && let Some(document) = document(body)
    {
        return document;
    }
    Tree::Bytes(body.clone())
}

fn document(body: &[u8]) -> Option<Tree> {
    let marked = body.strip_prefix(BYTE_ORDER_MARK);
    let mut reader = Reader::from_str(std::str::from_utf8(marked.unwrap_or(body)).ok()?);
    let mut declaration = None;
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    loop {
        match reader.read_event().ok()? {
            Event::Decl(d) => declaration = Some(d.to_string()),
            Event::Start(start) => open.push(element(&start)?),
            Event::Empty(start) => close(element(&start)?, &mut open, &mut root),
            Event::End(_) => {
                let element = open.pop()?;
                close(element, &mut open, &mut root);
            }
            Event::Text(text) => {
                if let Some(parent) = open.last_mut() {
                    parent.text.push_str(&text);
                }
            }
            Event::GeneralRef(reference) => {
                let text = resolve(&reference)?;
                open.last_mut()?.text.push_str(&text);
            }
            Event::CData(text) => {
                open.last_mut()?.text.push_str(&text);
            }
            Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Eof => break,
        }
    }
    Some(Tree::Document(marked.is_some(), declaration, root?))
}

fn element(start: &BytesStart<'_>) -> Option<Element> {
    let mut element = Element {
        name: start.name().as_ref().to_owned(),
        ..Element::default()
    };
    for attribute in start.attributes() {
        let attribute = attribute.ok()?;
        let name = attribute.key.as_ref().to_owned();
        let value = quick_xml::escape::unescape(&attribute.value)
            .ok()?
            .into_owned();
        element.attributes.push((name, value));
    }
    Some(element)
}

fn close(mut element: Element, open: &mut [Element], root: &mut Option<Element>) {
    if !element.children.is_empty() && element.text.trim().is_empty() {
        element.text.clear();
    }
    if element.name == "Metadata" {
        // Metadata has the order of the request's headers, which recorders did not keep.
        element.children.sort_by(|a, b| a.name.cmp(&b.name));
    }
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

fn resolve(reference: &quick_xml::events::BytesRef<'_>) -> Option<String> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character.to_string());
    }
    quick_xml::escape::resolve_xml_entity(reference).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xml(text: &str) -> Tree {
        parse(Some("application/xml"), &Bytes::from(text.to_owned()))
    }

    #[test]
    fn white_space_does_not_change_the_tree() {
        let compact = xml("<?xml version=\"1.0\"?><A b=\"1\"><C>x &amp; y&#33;</C><D/></A>");
        assert_eq!(
            compact,
            xml("<?xml version=\"1.0\"?>\n<A b='1'>\n <C>x &amp; y!</C> <D></D></A>")
        );
        assert_ne!(
            compact,
            xml("<?xml version=\"1.0\"?><A b=\"1\"><D/><C>x &amp; y!</C></A>")
        );
        assert_ne!(
            compact,
            xml("\u{feff}<?xml version=\"1.0\"?><A b=\"1\"><C>x &amp; y!</C><D/></A>")
        );
        let Tree::Document(_, _, root) = compact else {
            panic!("not a document")
        };
        assert_eq!(root.children[0].text, "x & y!");
    }

    #[test]
    fn metadata_has_no_order() {
        let same = xml("<A><Metadata><x>1</x><y>2</y></Metadata></A>");
        assert_eq!(same, xml("<A><Metadata><y>2</y><x>1</x></Metadata></A>"));
        assert_ne!(same, xml("<A><Metadata><y>1</y><x>2</x></Metadata></A>"));
    }

    #[test]
    fn malformed_bodies_stay_bytes() {
        for text in ["<A>", "no xml", "<A></B>", "<A>&unknown;</A>"] {
            assert_eq!(
                xml(text),
                Tree::Bytes(Bytes::from(text.to_owned())),
                "{text}"
            );
        }
    }
}
