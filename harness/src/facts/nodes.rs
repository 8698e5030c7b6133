//! An answer as a tree of named values, each reduced to its form.

use std::collections::{BTreeMap, BTreeSet};

use super::form::{self, TEXT};
use crate::replay::json::Json;
use crate::replay::rules::{self, How, Place};
use crate::replay::tree::{self, Element, Part, Tree};
use crate::wire::{Answer, Headers};

/// The node of the answer itself, which holds headers and the kind of the body.
pub const ANSWER: &str = "answer";
/// Name of everything that a client has named.
const ANY: &str = "*";
/// Prefixes of headers that clients name.
const NAMED_BY_CLIENTS: [&str; 2] = ["x-ms-meta-", "x-ms-or-"];
/// Elements whose children clients name.
const METADATA: [&str; 2] = ["Metadata", "OrMetadata"];
/// Members of JSON documents that clients do not name, by the node that holds them.
const MEMBERS: &[(&str, &str)] = &[
    (JSON, ENTITY),
    ("value", ENTITY),
    ("odata.error", "code message"),
    ("error", "code message"),
    ("message", "lang value"),
    ("paths", PATH),
    ("failedEntries", "name type errorMessage"),
];
/// Members of a path in a listing.
const PATH: &str = "name etag lastModified contentLength creationTime isDirectory owner group \
    permissions";
/// Members of a whole document and of an entity.
const ENTITY: &str = "\
    PartitionKey RowKey Timestamp TableName value error paths directoriesSuccessful \
    filesSuccessful failureCount failedEntries";
/// The node of a JSON document.
const JSON: &str = "json";
/// Roots of the service's own documents; anything else is the content of a blob.
const ROOTS: &str = "\
    EnumerationResults Error error m:error StorageServiceProperties StorageServiceStats \
    SignedIdentifiers BlockList PageList Tags QueueMessagesList UserDelegationKey feed entry";

/// One node of an answer: the answer, an element, an object, a part of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Path of its names.
    pub at: String,
    /// The names in it, with the forms of their values.
    pub holds: BTreeMap<String, BTreeSet<String>>,
}

impl Node {
    fn at(at: impl Into<String>) -> Node {
        Node {
            at: at.into(),
            ..Node::default()
        }
    }

    fn add(&mut self, name: impl Into<String>, form: impl Into<String>) {
        let forms = self.holds.entry(name.into()).or_default();
        forms.insert(form.into());
    }
}

/// Returns the nodes of an answer to a request with this method, the answer itself first.
pub fn of(method: &str, answer: &Answer) -> Vec<Node> {
    let code = answer.error_code();
    let mut walk = Walk {
        code: code.as_deref(),
        nodes: Vec::new(),
    };
    let mut node = Node::at(ANSWER);
    walk.headers(
        &mut node,
        &answer.headers,
        method == "HEAD" && answer.status < 300,
    );
    let media_type = answer.headers.get("content-type");
    walk.tree(node, "", &tree::parse(media_type, &answer.body));
    walk.nodes
}

struct Walk<'a> {
    code: Option<&'a str>,
    nodes: Vec<Node>,
}

impl Walk<'_> {
    fn headers(&self, node: &mut Node, headers: &Headers, has_length: bool) {
        for (name, value) in headers.iter() {
            let how = rules::find(Place::Header, "", name).map(|(_, how)| how);
            if how == Some(How::Ignore) || (how == Some(How::Length) && !has_length) {
                continue;
            }
            let named = NAMED_BY_CLIENTS.into_iter().find(|of| name.starts_with(of));
            match named {
                Some(prefix) => node.add(format!("{prefix}{ANY}"), TEXT),
                None => node.add(name, form::of(how, self.code, value)),
            }
        }
    }

    /// Adds the kind of a body to the node that has it, then the nodes of the body.
    fn tree(&mut self, mut node: Node, at: &str, tree: &Tree) {
        let kind = match tree {
            Tree::Bytes(bytes) if bytes.is_empty() => "empty",
            Tree::Document(.., root) if !form::is_in(ROOTS, &root.name) => "content",
            Tree::Document(true, ..) => "xml.marked",
            Tree::Document(false, ..) => "xml",
            Tree::Json(Json::Object(members)) if is_own(members) => "json",
            Tree::Parts(_) => "parts",
            Tree::Json(_) | Tree::Bytes(_) => "content",
        };
        node.add("body", kind);
        self.nodes.push(node);
        match tree {
            Tree::Document(.., root) if kind != "content" => {
                self.element(&format!("{at}{}", root.name), root);
            }
            Tree::Json(Json::Object(members)) if kind != "content" => {
                self.object(&format!("{at}{JSON}"), members);
            }
            Tree::Parts(parts) => parts.iter().for_each(|part| self.part(at, part)),
            _ => {}
        }
    }

    fn part(&mut self, above: &str, part: &Part) {
        let at = format!("{above}part");
        let mut node = Node::at(&at);
        self.headers(&mut node, &part.headers, false);
        if part.start_line.is_some() {
            node.add("line", "status");
        }
        self.headers(&mut node, &part.message_headers, false);
        self.tree(node, &format!("{at}/"), &part.body);
    }

    fn element(&mut self, at: &str, element: &Element) {
        let mut node = Node::at(at);
        for (name, value) in &element.attributes {
            let how = rules::find(Place::Attribute, &element.name, name).map(|(_, how)| how);
            node.add(format!("@{name}"), form::of(how, self.code, value));
        }
        let is_of_client = METADATA.contains(&element.name.as_str());
        let mut below = Vec::new();
        for child in &element.children {
            let property = child.name.strip_prefix("d:");
            let is_named = is_of_client || property.is_some_and(|name| !form::is_in(ENTITY, name));
            let name = if is_named { ANY } else { &child.name };
            let how = rules::find(Place::Element, &element.name, &child.name);
            let form = match child.children.is_empty() {
                true => form::of(how.map(|(_, how)| how), self.code, &child.text),
                false => "object".to_owned(),
            };
            node.add(name, if is_named { TEXT.to_owned() } else { form });
            if !child.children.is_empty() || !child.attributes.is_empty() {
                below.push((format!("{at}/{name}"), child));
            }
        }
        self.nodes.push(node);
        below.iter().for_each(|(at, child)| self.element(at, child));
    }

    fn object(&mut self, at: &str, members: &[(String, Json)]) {
        let mut node = Node::at(at);
        for (name, value) in members {
            let shown = shown(name_of(at), name);
            self.value(&mut node, at, &shown, name, value);
        }
        self.nodes.push(node);
    }

    fn value(&mut self, node: &mut Node, at: &str, shown: &str, name: &str, value: &Json) {
        let parent = name_of(at);
        let below = format!("{at}/{shown}");
        match value {
            _ if shown == ANY => node.add(shown, TEXT),
            Json::Text(text) => {
                let how = rules::find(Place::Member, parent, name).map(|(_, how)| how);
                node.add(shown, form::of(how, self.code, text));
            }
            Json::Plain(text) if text == "null" => node.add(shown, "null"),
            Json::Plain(text) => node.add(shown, form::of(None, None, text)),
            Json::Array(items) => {
                node.add(shown, "array");
                for item in items {
                    if let Json::Object(members) = item {
                        self.object(&below, members);
                    }
                }
            }
            Json::Object(members) => {
                node.add(shown, "object");
                self.object(&below, members);
            }
        }
    }
}

/// Whether an object is the service's own document and not the content of a blob.
fn is_own(members: &[(String, Json)]) -> bool {
    members.iter().any(|(name, _)| shown(JSON, name) != ANY)
}

/// Returns the last name of a path.
fn name_of(at: &str) -> &str {
    at.rsplit('/').next().unwrap_or_default()
}

/// Returns the name of a member in a node, without what a client has named.
fn shown(parent: &str, name: &str) -> String {
    let (property, annotation) = match name.split_once('@') {
        Some((property, annotation)) => (property, Some(annotation)),
        None => (name, None),
    };
    let known = MEMBERS.iter().find(|(of, _)| *of == parent);
    let is_known = known.is_some_and(|(_, names)| form::is_in(names, property));
    let property = match is_known || property.starts_with("odata.") {
        true => property,
        false => ANY,
    };
    match annotation {
        Some(annotation) => format!("{property}@{annotation}"),
        None => property.to_owned(),
    }
}
