//! Path - List: the files and directories of a file system or directory, in pages.
//!
//! Source: "Path - List"; recordings for the members of an entry.
//!
//! ```http
//! GET /devstoreaccount1/lake?resource=filesystem&recursive=true&directory=2026
//!
//! 200 OK
//!
//! {"paths":[{"name":"2026/11","isDirectory":"true",..}]}
//! ```

use serde_json::{Map, Value, json};
use smalt_protocol::limits::LIST_RESULTS_MAX;
use smalt_protocol::{ApiVersion, StorageError, Timestamp};

use super::{flag, number};
use crate::call::Call;
use crate::keys::tree::{BLOCKED, MISSING};
use crate::operation::{Read, Weight};
use crate::ops::container::list_blobs::STARTS_FROM;
use crate::ops::container::list_blobs::marker::Position;
use crate::ops::container::list_blobs::tree::{Order, TreeWalk};
use crate::ops::container::list_blobs::walk::{Includes, Item, Range};
use crate::ops::lookup::{BlobName, ContainerName};
use crate::ops::tree;
use crate::records::BlobRecord;
use crate::reply::{Content, Reply};
use crate::store::{Store, View};

/// Since this version, creation and expiry are listed, as recorded.
const SHOWS_TIMES: ApiVersion = ApiVersion::V2020_06_12;
/// Parameter of the path, relative to the directory, that a listing starts with.
const BEGIN_FROM: &str = "beginFrom";
/// Header and parameter of the position of the next page.
pub const CONTINUATION: &str = "x-ms-continuation";

/// The Path - List operation.
pub struct ListPaths {
    name: ContainerName,
    directory: String,
    is_recursive: bool,
    most: usize,
    start: Option<Position>,
}

/// A page of paths.
#[derive(Default)]
pub struct Page {
    paths: Vec<(String, Box<BlobRecord>)>,
    next: Option<Position>,
}

impl Read for ListPaths {
    type Output = Page;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const RECURSIVE: &str = "recursive";
        let is_recursive = flag(call, RECURSIVE)?;
        // No directory service knows the names of users, so that both values do the same.
        flag(call, "upn")?;
        let most = match number(call, "maxResults")? {
            Some(0) => {
                let most = i64::from(LIST_RESULTS_MAX);
                return Err(StorageError::query_out_of_range("maxResults", "0", 1, most));
            }
            given => given.map_or(LIST_RESULTS_MAX as usize, |most| {
                usize::try_from(most).unwrap_or(usize::MAX)
            }),
        };
        let is_recursive = is_recursive.ok_or_else(|| StorageError::missing_query(RECURSIVE))?;
        let continuation = call.query("continuation").filter(|text| !text.is_empty());
        let directory = path_in(call, "directory").join("/");
        let begin = path_in(call, BEGIN_FROM);
        let start = match continuation {
            Some(marker) => Some(Position::parse(marker)?),
            None if begin.is_empty() || call.version < STARTS_FROM => None,
            // "Non-recursive listing supports only one entity level."
            None if begin.len() > 1 && !is_recursive => {
                let given = call.query(BEGIN_FROM).unwrap_or_default();
                return Err(StorageError::invalid_query(BEGIN_FROM, given, ""));
            }
            None => Some(Position {
                name: format!("{}{}", inside(&directory), begin.join("/")),
                time: Timestamp::MIN,
            }),
        };
        Ok(ListPaths {
            name: ContainerName::of(call)?,
            directory,
            is_recursive,
            most: most.min(LIST_RESULTS_MAX as usize),
            start,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Page, StorageError> {
        let root = self.name.find(view, now)?.generation;
        let prefix = inside(&self.directory);
        let inside = tree::folder(view, root, &format!("{prefix}x"), now)?;
        if inside == MISSING || inside == BLOCKED {
            // A file is listed itself, as the contract tests of Hadoop's ABFS expect.
            let name = BlobName {
                container: self.name.clone(),
                blob: self.directory.clone(),
            };
            let found = name.find(view, now)?;
            return Ok(Page {
                paths: vec![(name.blob, Box::new(found.blob))],
                next: None,
            });
        }
        let range = Range {
            generation: root,
            prefix,
            start: self.start.clone(),
            start_from: None,
            includes: Includes::default(),
        };
        let order = if self.is_recursive {
            Order::Directories
        } else {
            Order::Children
        };
        let mut walk = TreeWalk::new(view, &range, now, Some(self.most + 1), order)?;
        let mut page = Page::default();
        while let Some(position) = walk.peek()? {
            if page.paths.len() == self.most {
                page.next = Some(position);
                return Ok(page);
            }
            if let Some((position, Item::Blob(blob))) = walk.next()? {
                page.paths.push((position.name, blob));
            }
        }
        page.next = walk.stopped()?;
        Ok(page)
    }

    fn render(self, page: Page, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let paths = page.paths.iter();
        let paths = paths.map(|(name, blob)| entry(name, blob, call.version));
        let paths: Vec<Value> = paths.collect();
        let reply = json_reply(&json!({ "paths": paths }));
        Ok(reply.maybe(CONTINUATION, page.next.map(|next| next.marker())))
    }
}

/// Returns the segments of the path in a parameter.
fn path_in<'a>(call: &'a Call, name: &str) -> Vec<&'a str> {
    tree::segments(call.query(name).unwrap_or_default()).collect()
}

/// Returns what the paths in a directory begin with.
fn inside(directory: &str) -> String {
    match directory {
        "" => String::new(),
        directory => format!("{directory}/"),
    }
}

/// Returns a reply with a JSON document.
pub fn json_reply(document: &Value) -> Reply {
    Reply::new(200)
        .header("content-type", "application/json; charset=utf-8")
        .content(Content::Bytes(document.to_string().into()))
}

fn entry(name: &str, blob: &BlobRecord, version: ApiVersion) -> Value {
    let posix = blob.posix();
    let mut members = Map::new();
    let mut tell = |member: &str, text: String| {
        members.insert(member.to_owned(), Value::String(text));
    };
    // Recorded: earlier versions list no length of a directory.
    if blob.directory.is_none() || version >= SHOWS_TIMES {
        tell("contentLength", blob.length.to_string());
    }
    if version >= SHOWS_TIMES {
        tell("creationTime", blob.created.filetime().to_string());
    }
    if let Some(context) = &blob.encryption_context {
        tell("EncryptionContext", context.clone());
    }
    if let Some(encryption) = &blob.encryption
        && let Some(scope) = encryption.scope()
    {
        tell("EncryptionScope", scope.to_owned());
    }
    tell("etag", blob.etag.to_string());
    if blob.directory.is_none() && version >= SHOWS_TIMES {
        tell(
            "expiryTime",
            blob.expires.map_or(0, Timestamp::filetime).to_string(),
        );
    }
    tell("group", posix.group.clone());
    if blob.directory.is_some() {
        tell("isDirectory", "true".to_owned());
    }
    tell("lastModified", blob.last_modified.rfc1123());
    tell("name", name.to_owned());
    tell("owner", posix.owner.clone());
    tell("permissions", posix.permissions());
    Value::Object(members)
}
