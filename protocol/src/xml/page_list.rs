//! Page lists: the answer of Get Page Ranges.
//!
//! Source: *Get Page Ranges*. Ranges are in bytes; the document names the first and the last byte
//! of each.

use std::ops::Range;

use crate::xml::write::XmlWriter;

/// The answer of Get Page Ranges: written and cleared ranges, interleaved in the order of the blob.
#[derive(Debug)]
pub struct PageListDocument {
    xml: XmlWriter,
    is_empty: bool,
}

impl Default for PageListDocument {
    fn default() -> Self {
        Self::new()
    }
}

impl PageListDocument {
    /// Starts the document.
    pub fn new() -> Self {
        PageListDocument {
            xml: XmlWriter::new(),
            is_empty: true,
        }
    }

    /// Writes `PageRange`, written bytes. The end in the document is inclusive.
    pub fn page(&mut self, range: &Range<u64>) {
        self.range("PageRange", range);
    }

    /// Writes `ClearRange`, cleared bytes. The end in the document is inclusive.
    pub fn clear(&mut self, range: &Range<u64>) {
        self.range("ClearRange", range);
    }

    /// Writes `NextMarker`, which is empty at the end of the list. Must follow all ranges.
    pub fn next_marker(&mut self, marker: &str) {
        self.open();
        self.xml.element("NextMarker", marker);
    }

    /// Returns the document.
    pub fn finish(mut self) -> Vec<u8> {
        if self.is_empty {
            self.xml.empty("PageList");
        } else {
            self.xml.close("PageList");
        }
        self.xml.finish()
    }

    fn open(&mut self) {
        if self.is_empty {
            self.xml.open("PageList");
            self.is_empty = false;
        }
    }

    fn range(&mut self, name: &str, range: &Range<u64>) {
        self.open();
        self.xml.open(name);
        self.xml.element("Start", &range.start.to_string());
        let last = range.end.saturating_sub(1);
        self.xml.element("End", &last.to_string());
        self.xml.close(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::write::tests::body_of;

    #[test]
    fn range_ends_are_inclusive() {
        let mut list = PageListDocument::new();
        list.page(&(0..512));
        list.clear(&(512..1024));
        list.next_marker("");
        assert_eq!(
            body_of(list.finish()),
            "<PageList><PageRange><Start>0</Start><End>511</End></PageRange><ClearRange>\
             <Start>512</Start><End>1023</End></ClearRange><NextMarker /></PageList>"
        );
        assert_eq!(body_of(PageListDocument::new().finish()), "<PageList />");
    }
}
