//! Writes the state document.

use smalt_protocol::Timestamp;

use super::xml::{self, Element, Node};
use super::{Container, DOCUMENT_BYTES_MAX, Document, Extra, Page, StateError};

/// Serializes a document. Attributes unknown to version 1 are written only if they have a value, so
/// that a document without them keeps its author's form.
pub fn write(document: &Document) -> Result<String, StateError> {
    let mut root = Builder::new("Containers");
    if document.version > 1 {
        root.always("version", &document.version.to_string());
    }
    root.number("cycle", document.cycle);
    root.number("fence", document.fence);
    root.text("writer", &document.writer);
    root.text("timestamp", &document.timestamp);
    root.time("nextDue", document.next_due);
    root.number("purged", document.purged);
    root.time("spentDay", document.spent.map(|spent| spent.day));
    root.number("spentCalls", document.spent.map_or(0, |spent| spent.calls));
    let containers = document.containers.iter().map(container);
    let element = root.finish(&document.extra, containers);
    let text = xml::write(&element)?;
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(StateError::TooLarge);
    }
    Ok(text)
}

fn container(container: &Container) -> Element {
    let mut element = Builder::new("Container");
    element.always("name", &container.name);
    element.always("status", container.status.name());
    element.always("prefix", &container.prefix);
    element.optional("uri", container.uri.as_deref());
    element.optional("credential", container.credential.as_deref());
    element.optional("container", container.container.as_deref());
    element.always("token", &container.token);
    element.number("order", container.order);
    element.number("failures", u64::from(container.failures));
    element.time("retryAt", container.retry_at);
    element.optional("lastError", container.last_error.as_deref());
    element.text("lastToken", &container.last_token);
    element.number("seen", container.tally.seen);
    element.number("deleted", container.tally.deleted);
    element.number("moved", container.tally.moved);
    element.number("skipped", container.tally.skipped);
    element.number("failed", container.tally.failed);
    element.number("bytes", container.tally.bytes);
    element.finish(&container.extra, container.pages.iter().map(page))
}

fn page(page: &Page) -> Element {
    let mut element = Builder::new("Page");
    element.always("id", &page.id);
    element.always("start", &page.start);
    element.always("end", &page.end);
    element.text("first", &escape_name(&page.first));
    element.text("last", &escape_name(&page.last));
    element.always("owner", &page.owner);
    element.number("fence", page.fence);
    element.time("claimed", page.claimed);
    element.time("deadline", page.deadline);
    element.number("attempt", u64::from(page.attempt));
    element.number("due", page.due);
    element.finish(&page.extra, std::iter::empty())
}

/// Encodes characters of blob names that XML cannot represent as `%`, the code point, and `;`.
fn escape_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if c == '%' || !xml::is_xml_char(c) {
            text.push_str(&format!("%{:x};", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

struct Builder(Element);

impl Builder {
    fn new(name: &str) -> Self {
        Builder(Element {
            name: name.to_owned(),
            ..Element::default()
        })
    }

    fn always(&mut self, name: &str, value: &str) {
        self.0.attributes.push((name.to_owned(), value.to_owned()));
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.always(name, value);
        }
    }

    fn text(&mut self, name: &str, value: &str) {
        self.optional(name, (!value.is_empty()).then_some(value));
    }

    fn number(&mut self, name: &str, value: u64) {
        if value > 0 {
            self.always(name, &value.to_string());
        }
    }

    fn time(&mut self, name: &str, value: Option<Timestamp>) {
        let whole = |t: Timestamp| t == t.floor_s();
        if let Some(t) = value {
            self.always(name, &if whole(t) { t.iso_s() } else { t.iso_ticks() });
        }
    }

    fn finish(mut self, extra: &Extra, children: impl Iterator<Item = Element>) -> Element {
        self.0.attributes.extend(extra.attributes.iter().cloned());
        self.0.nodes.extend(extra.nodes.iter().cloned());
        self.0.nodes.extend(children.map(Node::Element));
        self.0
    }
}
