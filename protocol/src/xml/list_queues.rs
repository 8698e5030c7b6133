//! The answer to List Queues.
//!
//! Source: *List Queues*; recordings for the order of elements.

use crate::metadata::Metadata;
use crate::xml::write::{ListHead, XmlWriter};

/// A listing of queues, written entry by entry.
#[derive(Debug)]
pub struct ListQueuesDocument {
    xml: XmlWriter,
    has_entries: bool,
    address: Option<String>,
}

impl ListQueuesDocument {
    /// Starts the document.
    pub fn new(head: &ListHead<'_>) -> Self {
        let mut xml = XmlWriter::new();
        xml.open_listing(head);
        ListQueuesDocument {
            xml,
            has_entries: false,
            address: head.address(),
        }
    }

    /// Writes one queue; pass its metadata only if the request includes it.
    pub fn push(&mut self, name: &str, metadata: Option<&Metadata>) {
        if !self.has_entries {
            self.xml.open("Queues");
            self.has_entries = true;
        }
        self.xml.open("Queue");
        self.xml.element("Name", name);
        if let Some(address) = &self.address {
            self.xml.element("Url", &format!("{address}{name}"));
        }
        push_metadata(&mut self.xml, metadata);
        self.xml.close("Queue");
    }

    /// Ends the document with the marker of the next page, or an empty one.
    pub fn finish(mut self, next_marker: &str) -> Vec<u8> {
        finish_list(&mut self.xml, "Queues", self.has_entries, next_marker);
        self.xml.finish()
    }
}

/// Writes `Metadata` with one element per name, if there is any.
pub(super) fn push_metadata(xml: &mut XmlWriter, metadata: Option<&Metadata>) {
    let Some(metadata) = metadata else { return };
    if metadata.is_empty() {
        return xml.empty("Metadata");
    }
    xml.open("Metadata");
    for (name, value) in metadata.iter() {
        xml.element(name, value);
    }
    xml.close("Metadata");
}

/// Ends a listing: closes its list, or writes an empty one, and writes the next marker.
pub(super) fn finish_list(xml: &mut XmlWriter, list: &str, has_entries: bool, next_marker: &str) {
    if has_entries {
        xml.close(list);
    } else {
        xml.empty(list);
    }
    xml.element("NextMarker", next_marker);
    xml.close("EnumerationResults");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::write::tests::body_of;

    #[test]
    fn renders_as_recorded() {
        let head = ListHead {
            service_endpoint: "https://acct.queue.core.windows.net/",
            prefix: Some("q"),
            max_results: Some(3),
            ..ListHead::default()
        };
        let mut list = ListQueuesDocument::new(&head);
        let metadata = Metadata::from_headers([("x-ms-meta-val1", "a<b")]).unwrap();
        list.push("q1", Some(&metadata));
        list.push("q2", Some(&Metadata::default()));
        list.push("q3", None);
        assert_eq!(
            body_of(list.finish("/acct/q4")),
            "<EnumerationResults ServiceEndpoint=\"https://acct.queue.core.windows.net/\">\
             <Prefix>q</Prefix><MaxResults>3</MaxResults><Queues><Queue><Name>q1</Name><Metadata>\
             <val1>a&lt;b</val1></Metadata></Queue><Queue><Name>q2</Name><Metadata /></Queue>\
             <Queue><Name>q3</Name></Queue></Queues><NextMarker>/acct/q4</NextMarker>\
             </EnumerationResults>"
        );
    }

    #[test]
    fn an_empty_list_is_an_empty_element() {
        let list = ListQueuesDocument::new(&ListHead::default());
        assert_eq!(
            body_of(list.finish("")),
            "<EnumerationResults ServiceEndpoint=\"\"><Queues /><NextMarker />\
             </EnumerationResults>"
        );
    }
}
