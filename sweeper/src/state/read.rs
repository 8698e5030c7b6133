//! Parses the state document.

use smalt_protocol::Timestamp;

use super::xml::{self, Element, Node};
use super::{
    Container, DOCUMENT_BYTES_MAX, Document, Extra, Page, StateError, Status, Tally, VERSION_NEWEST,
};
use crate::budget::Spent;

/// Parses a document of version 1 or 2.
pub fn read(text: &str) -> Result<Document, StateError> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(StateError::TooLarge);
    }
    let root = xml::read(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    if root.name != "Containers" {
        let name = root.name;
        return Err(StateError::Broken(format!(
            "<{name}> where <Containers> belongs"
        )));
    }
    let mut attributes = Attributes(root.attributes);
    let version = attributes.number("version")?.unwrap_or(1);
    if version > VERSION_NEWEST || version == 0 {
        return Err(StateError::TooNew(version));
    }
    let mut document = Document {
        version,
        cycle: attributes.number("cycle")?.unwrap_or(0),
        fence: attributes.number("fence")?.unwrap_or(0),
        writer: attributes.text("writer"),
        timestamp: attributes.text("timestamp"),
        next_due: attributes.time("nextDue")?,
        purged: attributes.number("purged")?.unwrap_or(0),
        spent: spent(&mut attributes)?,
        ..Document::default()
    };
    document.extra.attributes = attributes.0;
    for node in root.nodes {
        match node {
            Node::Element(element) if element.name == "Container" => {
                document.containers.push(container(element, version)?);
            }
            other => document.extra.nodes.push(other),
        }
    }
    Ok(document)
}

/// Reads the day's calls; a day without a number has none.
fn spent(attributes: &mut Attributes) -> Result<Option<Spent>, StateError> {
    let calls = attributes.number("spentCalls")?.unwrap_or(0);
    let day = attributes.time("spentDay")?;
    Ok(day.map(|day| Spent { day, calls }))
}

fn container(element: Element, version: u32) -> Result<Container, StateError> {
    let mut attributes = Attributes(element.attributes);
    let mut container = Container {
        name: attributes.text("name"),
        status: attributes.status()?,
        prefix: attributes.text("prefix"),
        uri: attributes.take("uri"),
        credential: attributes.take("credential"),
        container: attributes.take("container"),
        token: attributes.text("token"),
        order: attributes.number("order")?.unwrap_or(0),
        failures: attributes.number("failures")?.unwrap_or(0),
        retry_at: attributes.time("retryAt")?,
        last_error: attributes.take("lastError"),
        last_token: attributes.text("lastToken"),
        tally: Tally {
            seen: attributes.number("seen")?.unwrap_or(0),
            deleted: attributes.number("deleted")?.unwrap_or(0),
            moved: attributes.number("moved")?.unwrap_or(0),
            skipped: attributes.number("skipped")?.unwrap_or(0),
            failed: attributes.number("failed")?.unwrap_or(0),
            bytes: attributes.number("bytes")?.unwrap_or(0),
        },
        ..Container::default()
    };
    let uri = container.uri.as_deref().unwrap_or_default();
    if version >= 2 && uri.to_ascii_lowercase().contains("sig=") {
        return Err(StateError::Secret(container.name));
    }
    container.extra.attributes = attributes.0;
    for node in element.nodes {
        match node {
            Node::Element(element) if element.name == "Page" => {
                container.pages.push(page(element)?);
            }
            other => container.extra.nodes.push(other),
        }
    }
    Ok(container)
}

fn page(element: Element) -> Result<Page, StateError> {
    let mut attributes = Attributes(element.attributes);
    let page = Page {
        id: attributes.text("id"),
        start: attributes.text("start"),
        end: attributes.text("end"),
        first: unescape_name(&attributes.text("first")),
        last: unescape_name(&attributes.text("last")),
        owner: attributes.text("owner"),
        fence: attributes.number("fence")?.unwrap_or(0),
        claimed: attributes.time("claimed")?,
        deadline: attributes.time("deadline")?,
        attempt: attributes.number("attempt")?.unwrap_or(0),
        due: attributes.number("due")?.unwrap_or(0),
        extra: Extra {
            attributes: attributes.0,
            nodes: element.nodes,
        },
    };
    Ok(page)
}

/// Decodes characters of blob names that XML cannot represent; [`super::write`] encodes them as
/// `%`, the hexadecimal code point, and `;`.
fn unescape_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        name.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let code = tail.split_once(';').and_then(|(hex, after)| {
            let char = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)?;
            Some((char, after))
        });
        match code {
            Some((char, after)) => {
                name.push(char);
                rest = after;
            }
            None => {
                name.push('%');
                rest = tail;
            }
        }
    }
    name.push_str(rest);
    name
}

/// Attributes not read yet. Names are compared case-insensitively, because version 1 was written by
/// hand.
struct Attributes(Vec<(String, String)>);

impl Attributes {
    fn take(&mut self, name: &str) -> Option<String> {
        let at = self
            .0
            .iter()
            .position(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(self.0.remove(at).1)
    }

    fn text(&mut self, name: &str) -> String {
        self.take(name).unwrap_or_default()
    }

    /// Reads a number; an empty attribute counts as missing.
    fn number<T: std::str::FromStr>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, StateError> {
        self.parsed(name, |value| value.parse().ok())
    }

    fn time(&mut self, name: &'static str) -> Result<Option<Timestamp>, StateError> {
        self.parsed(name, Timestamp::parse_iso)
    }

    /// Reads the status; a missing one means `Init`, as people expect who edit the document.
    fn status(&mut self) -> Result<Status, StateError> {
        let known = |value: &str| {
            Status::ALL
                .into_iter()
                .find(|status| status.name().eq_ignore_ascii_case(value))
        };
        Ok(self.parsed("status", known)?.unwrap_or_default())
    }

    fn parsed<T>(
        &mut self,
        attribute: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, StateError> {
        match self.take(attribute) {
            Some(value) if !value.trim().is_empty() => match parse(value.trim()) {
                Some(read) => Ok(Some(read)),
                None => Err(StateError::Attribute { attribute, value }),
            },
            _ => Ok(None),
        }
    }
}
