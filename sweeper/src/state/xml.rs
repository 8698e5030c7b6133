//! A small XML tree with bounded parsing and writing, which preserves unknown parts of the
//! document.

use quick_xml::XmlVersion;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::StateError;

/// Maximum nesting depth. The document itself needs three.
pub(crate) const DEPTH_MAX: usize = 16;
/// Maximum number of elements.
pub(crate) const ELEMENTS_MAX: usize = 20_000;

/// An element with its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Tag name as written.
    pub name: String,
    /// Attributes in order, unescaped.
    pub attributes: Vec<(String, String)>,
    /// Content in order.
    pub nodes: Vec<Node>,
}

/// Content of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// An element.
    Element(Element),
    /// Text, trimmed and unescaped.
    Text(String),
    /// A comment, as written.
    Comment(String),
}

/// Parses one document. Document types are rejected, so no entity can expand.
pub(crate) fn read(text: &str) -> Result<Element, StateError> {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut root: Option<Element> = None;
    let mut elements = 0;
    loop {
        let event = reader.read_event().map_err(broken)?;
        let closed = match event {
            Event::Start(start) => {
                open.push(element(&start)?);
                None
            }
            Event::Empty(start) => Some(element(&start)?),
            Event::End(_) => open.pop(),
            Event::Eof => break,
            other => {
                inner(other, &mut open)?;
                None
            }
        };
        elements += usize::from(closed.is_some());
        if open.len() > DEPTH_MAX || elements > ELEMENTS_MAX {
            return Err(StateError::Broken(
                "too deep or too many elements".to_owned(),
            ));
        }
        let Some(closed) = closed else { continue };
        match open.last_mut() {
            Some(parent) => parent.nodes.push(Node::Element(closed)),
            None if root.is_none() => root = Some(closed),
            None => return Err(StateError::Broken("two root elements".to_owned())),
        }
    }
    match root {
        Some(root) if open.is_empty() => Ok(root),
        _ => Err(StateError::Broken("the document ends too early".to_owned())),
    }
}

fn broken(error: impl std::fmt::Display) -> StateError {
    StateError::Broken(error.to_string())
}

fn element(start: &BytesStart<'_>) -> Result<Element, StateError> {
    let mut read = Element {
        name: start.name().as_ref().to_owned(),
        ..Element::default()
    };
    for attribute in start.attributes() {
        let attribute = attribute.map_err(broken)?;
        let value = attribute
            .normalized_value(XmlVersion::Explicit1_0)
            .map_err(broken)?;
        read.attributes
            .push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(read)
}

/// Handles text, comments, and other content between elements.
fn inner(event: Event<'_>, open: &mut [Element]) -> Result<(), StateError> {
    let text = match event {
        Event::Text(text) => text.trim().to_owned(),
        Event::CData(text) => text.trim().to_owned(),
        Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(broken)? {
            Some(char) => char.to_string(),
            None => resolve_predefined_entity(&reference)
                .ok_or_else(|| broken("an entity that XML does not define"))?
                .to_owned(),
        },
        Event::Comment(comment) => {
            if let Some(parent) = open.last_mut() {
                parent.nodes.push(Node::Comment(comment.to_string()));
            }
            return Ok(());
        }
        Event::DocType(_) => return Err(broken("a document type is not allowed")),
        _ => return Ok(()),
    };
    match open.last_mut() {
        _ if text.is_empty() => {}
        Some(parent) => match parent.nodes.last_mut() {
            // References split a text into several events.
            Some(Node::Text(before)) => before.push_str(&text),
            _ => parent.nodes.push(Node::Text(text)),
        },
        None if text == "\u{feff}" => {}
        None => return Err(broken("text outside the root element")),
    }
    Ok(())
}

/// Writes a document, indented, with one attribute list per line.
pub(crate) fn write(root: &Element) -> Result<String, StateError> {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    write_element(root, 0, &mut text)?;
    text.push('\n');
    Ok(text)
}

fn write_element(element: &Element, depth: usize, to: &mut String) -> Result<(), StateError> {
    let indent = "  ".repeat(depth);
    to.push_str(&format!("{indent}<{}", element.name));
    for (name, value) in &element.attributes {
        to.push_str(&format!(" {name}=\"{}\"", escaped(value)?));
    }
    if element.nodes.is_empty() {
        to.push_str("/>");
        return Ok(());
    }
    to.push('>');
    // White space around text would become part of it.
    let mixed = element.nodes.iter().any(|n| matches!(n, Node::Text(_)));
    for node in &element.nodes {
        if !mixed {
            to.push('\n');
        }
        match node {
            Node::Element(inner) => write_element(inner, if mixed { 0 } else { depth + 1 }, to)?,
            Node::Text(text) => to.push_str(&escaped(text)?),
            Node::Comment(comment) if mixed => to.push_str(&format!("<!--{comment}-->")),
            Node::Comment(comment) => to.push_str(&format!("{indent}  <!--{comment}-->")),
        }
    }
    if !mixed {
        to.push_str(&format!("\n{indent}"));
    }
    to.push_str(&format!("</{}>", element.name));
    Ok(())
}

/// Escapes attribute values and text. White space other than spaces becomes references, because
/// parsers normalize it to spaces. Characters outside XML 1.0 are an error.
fn escaped(value: &str) -> Result<String, StateError> {
    if let Some(bad) = value.chars().find(|c| !is_xml_char(*c)) {
        return Err(StateError::Unwritable(bad));
    }
    let escaped = escape(value);
    Ok(escaped
        .replace('\t', "&#9;")
        .replace('\n', "&#10;")
        .replace('\r', "&#13;"))
}

/// `Char` of XML 1.0 section 2.2.
pub(crate) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
