//! Parses a page of a listing in one pass, extracting only what the port uses.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use smalt_protocol::Timestamp;

use super::answer::{copy_status, kind, lease, time};
use crate::error::PortError;
use crate::policy::Call;
use crate::port::{
    BlobItem, BlobKind, BlobProperties, CopyState, LeaseState, Metadata, PortResult, Tag,
};
use crate::redact::redact;

/// Parses a page: its blobs, and the marker of the next one.
pub(super) fn read(call: &Call, body: &[u8]) -> PortResult<(Vec<BlobItem>, Option<String>)> {
    let text =
        std::str::from_utf8(body).map_err(|_| call.unreadable("a page that is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut page = Page {
        call,
        reader: Reader::from_str(text),
    };
    let (mut blobs, mut marker) = (Vec::new(), None);
    page.root()?;
    while let Some(element) = page.child()? {
        match element.name() {
            "Blobs" => page.blobs(&element, &mut blobs)?,
            "NextMarker" => marker = Some(page.text(&element)?.into_owned()),
            _ => page.skip(&element)?,
        }
    }
    Ok((blobs, marker.filter(|marker| !marker.is_empty())))
}

/// The parser's position in the page.
struct Page<'a> {
    call: &'a Call,
    reader: Reader<&'a [u8]>,
}

/// An element that was opened, or is empty.
struct Element<'a> {
    start: BytesStart<'a>,
    is_empty: bool,
}

impl Element<'_> {
    fn name(&self) -> &str {
        self.start.name().into_inner()
    }
}

/// A blob that is only partly parsed.
#[derive(Default)]
struct PartialBlob {
    etag: Option<Tag>,
    last_modified: Option<Timestamp>,
    length: Option<u64>,
    kind: Option<BlobKind>,
    lease: Option<LeaseState>,
    content_md5: Option<String>,
    content_type: Option<String>,
    access_tier: Option<String>,
    tag_count: u32,
    copy_id: Option<String>,
    copy_status: Option<String>,
    copy_source: Option<String>,
    copy_description: Option<String>,
}

impl<'a> Page<'a> {
    fn broken(&self, why: impl std::fmt::Display) -> PortError {
        self.call.unreadable(&format!("malformed page: {why}"))
    }

    fn event(&mut self) -> PortResult<Event<'a>> {
        let event = self.reader.read_event();
        event.map_err(|error| self.broken(error))
    }

    fn root(&mut self) -> PortResult<()> {
        loop {
            match self.event()? {
                Event::Start(start) if start.name().into_inner() == "EnumerationResults" => {
                    return Ok(());
                }
                Event::Decl(_) | Event::Comment(_) | Event::Text(_) => {}
                _ => return Err(self.broken("no EnumerationResults")),
            }
        }
    }

    /// Returns the next child of the open element; `None` at its end.
    fn child(&mut self) -> PortResult<Option<Element<'a>>> {
        loop {
            match self.event()? {
                Event::Start(start) => {
                    let is_empty = false;
                    return Ok(Some(Element { start, is_empty }));
                }
                Event::Empty(start) => {
                    let is_empty = true;
                    return Ok(Some(Element { start, is_empty }));
                }
                Event::End(_) => return Ok(None),
                Event::Eof => return Err(self.broken("it ends too early")),
                // White space between elements.
                _ => {}
            }
        }
    }

    fn skip(&mut self, element: &Element<'a>) -> PortResult<()> {
        if !element.is_empty {
            let end = self.reader.read_to_end(element.start.name());
            end.map_err(|error| self.broken(error))?;
        }
        Ok(())
    }

    /// Returns the text of an element without children.
    fn text(&mut self, element: &Element<'a>) -> PortResult<Cow<'a, str>> {
        let mut text = Cow::Borrowed("");
        if element.is_empty {
            return Ok(text);
        }
        loop {
            let part = match self.event()? {
                Event::Text(part) => part.xml10_content(),
                Event::CData(part) => part.xml10_content(),
                Event::GeneralRef(part) => Cow::Owned(self.referred(&part)?),
                Event::End(_) => return Ok(text),
                Event::Comment(_) => continue,
                _ => return Err(self.broken("an element where text belongs")),
            };
            match text.is_empty() {
                true => text = part,
                false => text.to_mut().push_str(&part),
            }
        }
    }

    fn referred(&self, part: &BytesRef<'_>) -> PortResult<String> {
        let char = part
            .resolve_char_ref()
            .map_err(|error| self.broken(error))?;
        match char {
            Some(char) => Ok(char.to_string()),
            None => resolve_predefined_entity(part)
                .map(str::to_owned)
                .ok_or_else(|| self.broken("an unknown entity")),
        }
    }

    fn blobs(&mut self, element: &Element<'a>, blobs: &mut Vec<BlobItem>) -> PortResult<()> {
        if element.is_empty {
            return Ok(());
        }
        while let Some(element) = self.child()? {
            match element.name() {
                "Blob" if !element.is_empty => blobs.push(self.blob()?),
                _ => self.skip(&element)?,
            }
        }
        Ok(())
    }

    fn blob(&mut self) -> PortResult<BlobItem> {
        let (mut name, mut properties, mut metadata) = (None, None, Metadata::new());
        let mut tags = None;
        while let Some(element) = self.child()? {
            match element.name() {
                "Name" => name = Some(self.name(&element)?),
                "Properties" => properties = Some(self.properties(&element)?),
                "Metadata" => metadata = self.metadata(&element)?,
                "Tags" => tags = Some(self.tags(&element)?),
                _ => self.skip(&element)?,
            }
        }
        let missing = |what: &str| self.call.unreadable(&format!("a blob without {what}"));
        let found: PartialBlob = properties.ok_or_else(|| missing("properties"))?;
        let copy = match (found.copy_id, found.copy_status) {
            (Some(id), Some(status)) => Some(CopyState {
                id,
                status: copy_status(self.call, &status)?,
                source: found.copy_source.as_deref().map(redact),
                description: found.copy_description,
            }),
            _ => None,
        };
        Ok(BlobItem {
            name: name.ok_or_else(|| missing("name"))?,
            properties: BlobProperties {
                etag: found.etag.ok_or_else(|| missing("ETag"))?,
                last_modified: found
                    .last_modified
                    .ok_or_else(|| missing("Last-Modified"))?,
                length: found.length.ok_or_else(|| missing("length"))?,
                content_md5: found.content_md5,
                content_type: found.content_type,
                metadata,
                lease: found.lease.unwrap_or(LeaseState::Unlocked),
                kind: found.kind.ok_or_else(|| missing("known type"))?,
                copy,
                access_tier: found.access_tier,
                tag_count: found.tag_count,
                tags,
            },
        })
    }

    /// Reads a name; one with characters that XML cannot represent is marked as percent-encoded.
    fn name(&mut self, element: &Element<'a>) -> PortResult<String> {
        let encoded = element.start.try_get_attribute("Encoded");
        let encoded = encoded.map_err(|error| self.broken(error))?;
        let text = self.text(element)?;
        if encoded.is_none_or(|attribute| attribute.value.as_ref() != "true") {
            return Ok(text.into_owned());
        }
        let decoded = percent_decode_str(&text).decode_utf8();
        let decoded = decoded.map_err(|error| self.broken(error))?;
        Ok(decoded.into_owned())
    }

    fn metadata(&mut self, element: &Element<'a>) -> PortResult<Metadata> {
        let mut metadata = Metadata::new();
        if element.is_empty {
            return Ok(metadata);
        }
        while let Some(element) = self.child()? {
            let value = self.text(&element)?.into_owned();
            metadata.insert(element.name().to_owned(), value);
        }
        Ok(metadata)
    }

    /// Reads `TagSet`, with a `Tag` of `Key` and `Value` for each.
    fn tags(&mut self, element: &Element<'a>) -> PortResult<Metadata> {
        let mut tags = Metadata::new();
        if element.is_empty {
            return Ok(tags);
        }
        while let Some(set) = self.child()? {
            if set.name() != "TagSet" || set.is_empty {
                self.skip(&set)?;
                continue;
            }
            while let Some(tag) = self.child()? {
                let (mut key, mut value) = (String::new(), String::new());
                while !tag.is_empty
                    && let Some(part) = self.child()?
                {
                    match part.name() {
                        "Key" => key = self.text(&part)?.into_owned(),
                        "Value" => value = self.text(&part)?.into_owned(),
                        _ => self.skip(&part)?,
                    }
                }
                tags.insert(key, value);
            }
        }
        Ok(tags)
    }

    fn properties(&mut self, element: &Element<'a>) -> PortResult<PartialBlob> {
        let mut found = PartialBlob::default();
        if element.is_empty {
            return Ok(found);
        }
        while let Some(element) = self.child()? {
            self.property(&element, &mut found)?;
        }
        Ok(found)
    }

    fn property(&mut self, element: &Element<'a>, found: &mut PartialBlob) -> PortResult<()> {
        let place = match element.name() {
            "Etag" => {
                found.etag = Some(Tag::from_text(&self.text(element)?));
                return Ok(());
            }
            "Last-Modified" => {
                let text = self.text(element)?;
                found.last_modified = Some(time(self.call, "Last-Modified", Some(&text))?);
                return Ok(());
            }
            "Content-Length" => {
                found.length = self.text(element)?.trim().parse().ok();
                return Ok(());
            }
            "BlobType" => {
                found.kind = kind(Some(&self.text(element)?));
                return Ok(());
            }
            "LeaseStatus" => {
                found.lease = Some(lease(Some(&self.text(element)?)));
                return Ok(());
            }
            "TagCount" => {
                found.tag_count = self.text(element)?.trim().parse().unwrap_or(0);
                return Ok(());
            }
            "Content-MD5" => &mut found.content_md5,
            "Content-Type" => &mut found.content_type,
            "AccessTier" => &mut found.access_tier,
            "CopyId" => &mut found.copy_id,
            "CopyStatus" => &mut found.copy_status,
            "CopySource" => &mut found.copy_source,
            "CopyStatusDescription" => &mut found.copy_description,
            _ => return self.skip(element),
        };
        // Listings contain an empty element for a missing value.
        let text = self.text(element)?;
        *place = Some(text.into_owned()).filter(|text| !text.is_empty());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::policy::Repeat;
    use proptest::prelude::*;

    fn call() -> Call {
        Call::new("List Blobs", "acct/cont".to_owned(), Repeat::Read, None)
    }

    fn page(blobs: &str) -> String {
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults \
             ServiceEndpoint=\"https://a/\"><Prefix>a</Prefix><Blobs>{blobs}</Blobs><NextMarker/>\
             </EnumerationResults>"
        )
    }

    fn blob(more: &str) -> String {
        page(&format!(
            "<Blob><Name>a</Name><Properties><Last-Modified>Sat, 21 Nov 2026 10:00:00 GMT\
             </Last-Modified><Etag>0x1</Etag><Content-Length>7</Content-Length>\
             <BlobType>BlockBlob</BlobType></Properties>{more}</Blob>"
        ))
    }

    fn read_one(text: &str) -> BlobItem {
        let (mut blobs, marker) = read(&call(), text.as_bytes()).unwrap();
        assert_eq!((blobs.len(), marker), (1, None));
        blobs.remove(0)
    }

    /// Metadata names are chosen by the owner and may equal the listing's own element names.
    #[test]
    fn metadata_may_have_any_name() {
        let metadata = "<Metadata><Name>n</Name><Properties>p</Properties><Etag/>\
            <Note>a &lt;b&gt; &#x41;&amp; c </Note></Metadata>";
        let item = read_one(&blob(metadata));
        assert_eq!(item.name, "a");
        assert_eq!(item.properties.etag, Tag("\"0x1\"".to_owned()));
        let metadata: Vec<_> = item.properties.metadata.into_iter().collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("Etag", ""),
            pair("Name", "n"),
            pair("Note", "a <b> A& c "),
            pair("Properties", "p"),
        ];
        assert_eq!(metadata, expected);
    }

    /// Unknown elements are skipped with all their content.
    #[test]
    fn unknown_elements_are_skipped() {
        let more = "<Snapshot>x</Snapshot><Tags><TagSet><Tag><Key>Name</Key><Value>v</Value></Tag>\
            </TagSet></Tags><OrMetadata><Name>y</Name></OrMetadata>";
        assert_eq!(read_one(&blob(more)).name, "a");
        let prefix = page("<BlobPrefix><Name>dir/</Name></BlobPrefix>");
        assert!(read(&call(), prefix.as_bytes()).unwrap().0.is_empty());
    }

    #[test]
    fn malformed_page_is_unreadable() {
        let whole = blob("");
        for text in [
            "",
            "<Error/>",
            "<EnumerationResults>",
            &whole.replace("<Name>a</Name>", ""),
            &whole.replace("<Name>", "<Name Encoded=\"true\">%FF"),
            &whole.replace("<Etag>0x1</Etag>", ""),
            &whole.replace("BlockBlob", "Blob"),
            &whole.replace("Content-Length>7", "Content-Length>many"),
            &whole.replace("21 Nov 2026", "yesterday"),
            &whole.replace("0x1", "<b/>"),
            &whole.replace("0x1", "&unknown;"),
            &whole.replace("</Name>", "</Nam>"),
        ] {
            let error = read(&call(), text.as_bytes()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Refused, "{text}");
        }
        assert!(read(&call(), b"\xff").is_err());
    }

    proptest! {
        /// A truncated page is unreadable, never a shorter page.
        #[test]
        fn truncated_page_is_unreadable(at in 0_usize..400) {
            let whole = blob("<Metadata><TimeToLive>P1D</TimeToLive></Metadata>");
            let end = whole.len() - "</EnumerationResults>".len();
            let at = at.min(end);
            prop_assume!(whole.is_char_boundary(at));
            prop_assert!(read(&call(), &whole.as_bytes()[..at]).is_err());
        }

        #[test]
        fn any_text_never_panics(text in "(<EnumerationResults>)?[<>a-zB/=\"&;! -]{0,60}") {
            let _ = read(&call(), text.as_bytes());
        }
    }
}
