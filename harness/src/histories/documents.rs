//! Parses the bodies of answers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use smalt_model::vocabulary::Metadata;
use smalt_protocol::xml::{Element, read_document};
use smalt_protocol::{ETag, Timestamp};

use crate::wire::Answer;

/// Maximum number of elements in a document.
const ELEMENTS_MAX: usize = 100_000;
/// The expiry time of a message that never expires.
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A blob or snapshot.
    Blob(Blob),
    /// A prefix.
    Prefix(String),
    /// An entry of Path - List.
    Path(PathEntry),
    /// A container or queue, with its metadata.
    Resource(String, Metadata),
}

/// An entry of Path - List.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathEntry {
    /// Name, with the directories above it.
    pub name: String,
    /// `true` for a directory.
    pub is_directory: String,
    /// ETag, without quotes.
    pub etag: String,
    /// Length in bytes.
    pub content_length: String,
}

impl PathEntry {
    /// Returns the ETag in quotes.
    pub fn tag(&self) -> Option<String> {
        ETag::parse(&self.etag).map(ETag::quoted)
    }
}

/// A blob or snapshot of List Blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob {
    /// `Name`.
    pub name: String,
    /// `Snapshot`.
    pub snapshot: Option<String>,
    /// `Etag`, in quotes.
    pub tag: Option<String>,
    /// `Content-Length`.
    pub length: u64,
    /// `Deleted`.
    pub deleted: bool,
    /// `BlobType`.
    pub kind: String,
    /// `Metadata`.
    pub metadata: Metadata,
    /// `Tags`.
    pub tags: Metadata,
}

/// A message in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `MessageId`.
    pub id: String,
    /// `PopReceipt`.
    pub receipt: Option<String>,
    /// `MessageText`.
    pub text: Option<String>,
    /// `DequeueCount`.
    pub dequeue_count: Option<u32>,
    /// `InsertionTime`, in seconds of the Unix epoch.
    pub inserted_s: Option<u64>,
    /// `ExpirationTime`, in seconds of the Unix epoch; `None` for never.
    pub expires_s: Option<u64>,
    /// `TimeNextVisible`, in seconds of the Unix epoch.
    pub visible_s: Option<u64>,
}

fn root(body: &[u8]) -> Result<Element<'_>, String> {
    read_document(body, ELEMENTS_MAX).map_err(|error| error.message().to_owned())
}

fn text(parent: &Element<'_>, name: &str) -> Option<String> {
    parent
        .child(name)
        .map(|child| child.text.clone().into_owned())
}

fn seconds(parent: &Element<'_>, name: &str) -> Option<u64> {
    let date = text(parent, name).filter(|date| date != NEVER)?;
    Timestamp::parse_rfc1123(&date).map(Timestamp::unix_s)
}

/// Parses the entries of a page, of either interface, and the marker of the next one.
pub fn page(answer: &Answer) -> Result<(Vec<Entry>, String), String> {
    #[derive(serde::Deserialize)]
    struct Document {
        paths: Vec<PathEntry>,
    }
    if !answer.body.starts_with(b"{") {
        return listing(&answer.body);
    }
    let document = serde_json::from_slice::<Document>(&answer.body);
    let document = document.map_err(|error| error.to_string())?;
    let marker = answer.header("x-ms-continuation").unwrap_or_default();
    let entries = document.paths.into_iter().map(Entry::Path);
    Ok((entries.collect(), marker.to_owned()))
}

/// Parses the entries of a listing and the marker of the next page.
pub fn listing(body: &[u8]) -> Result<(Vec<Entry>, String), String> {
    let root = root(body)?;
    let found = ["Blobs", "Containers", "Queues"].iter();
    let list = found.filter_map(|name| root.child(name)).next();
    let list = list.ok_or("a listing without a list")?;
    let entry = |element: &Element<'_>| {
        let name = text(element, "Name").unwrap_or_default();
        match element.name {
            "BlobPrefix" => Entry::Prefix(name),
            "Blob" => match text(element, "ContainerName") {
                // A search across containers shows only names and tags.
                Some(container) => {
                    let blob = blob(element, name);
                    Entry::Resource(format!("{container}/{}", blob.name), blob.tags)
                }
                None => Entry::Blob(blob(element, name)),
            },
            _ => Entry::Resource(name, metadata(element)),
        }
    };
    let entries = list.children.iter().map(entry).collect();
    Ok((entries, text(&root, "NextMarker").unwrap_or_default()))
}

fn blob(element: &Element<'_>, name: String) -> Blob {
    let properties = element.child("Properties");
    let property = |name| properties.and_then(|properties| text(properties, name));
    let tag = property("Etag").and_then(|text| ETag::parse(&text));
    let length = property("Content-Length").and_then(|length| length.parse().ok());
    let tags = element.child("Tags").and_then(|tags| tags.child("TagSet"));
    Blob {
        name,
        snapshot: text(element, "Snapshot"),
        tag: tag.map(ETag::quoted),
        length: length.unwrap_or_default(),
        deleted: text(element, "Deleted").as_deref() == Some("true"),
        kind: property("BlobType").unwrap_or_default(),
        metadata: metadata(element),
        tags: tags.map(tag_set).unwrap_or_default(),
    }
}

fn metadata(element: &Element<'_>) -> Metadata {
    let pairs = element
        .child("Metadata")
        .into_iter()
        .flat_map(|m| &m.children);
    pairs
        .map(|pair| (pair.name.to_string(), pair.text.to_string()))
        .collect()
}

fn tag_set(set: &Element<'_>) -> Metadata {
    let tag = |tag: &Element<'_>| {
        let (key, value) = (text(tag, "Key"), text(tag, "Value"));
        (key.unwrap_or_default(), value.unwrap_or_default())
    };
    set.children.iter().map(tag).collect()
}

/// Parses the first and last byte of each page range.
pub fn ranges(body: &[u8]) -> Result<Vec<(u64, u64)>, String> {
    let root = root(body)?;
    let ranges = root
        .children
        .iter()
        .filter(|child| child.name == "PageRange");
    let range = |range: &Element<'_>| {
        let number = |name| text(range, name).and_then(|text| text.parse().ok());
        let ends = number("Start").zip(number("End"));
        ends.ok_or_else(|| "a page range without its ends".to_owned())
    };
    ranges.map(range).collect()
}

type Blocks = Vec<(Vec<u8>, u64)>;

/// Parses committed and uncommitted blocks.
pub fn blocks(body: &[u8]) -> Result<(Blocks, Blocks), String> {
    let root = root(body)?;
    let list = |name: &str| -> Result<Blocks, String> {
        let Some(list) = root.child(name) else {
            return Ok(Vec::new());
        };
        let block = |block: &Element<'_>| {
            let id = text(block, "Name").and_then(|id| BASE64.decode(id).ok());
            let size = text(block, "Size").and_then(|size| size.parse().ok());
            id.zip(size)
                .ok_or_else(|| "a block without id or size".to_owned())
        };
        list.children.iter().map(block).collect()
    };
    Ok((list("CommittedBlocks")?, list("UncommittedBlocks")?))
}

/// Parses index tags.
pub fn tags(body: &[u8]) -> Result<Metadata, String> {
    let root = root(body)?;
    let set = root.child("TagSet").ok_or("no <TagSet>")?;
    Ok(tag_set(set))
}

/// Parses messages.
pub fn messages(body: &[u8]) -> Result<Vec<Message>, String> {
    let root = root(body)?;
    let message = |message: &Element<'_>| Message {
        id: text(message, "MessageId").unwrap_or_default(),
        receipt: text(message, "PopReceipt"),
        text: text(message, "MessageText"),
        dequeue_count: text(message, "DequeueCount").and_then(|count| count.parse().ok()),
        inserted_s: seconds(message, "InsertionTime"),
        expires_s: seconds(message, "ExpirationTime"),
        visible_s: seconds(message, "TimeNextVisible"),
    };
    Ok(root.children.iter().map(message).collect())
}
