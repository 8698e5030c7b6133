//! Listings of an account that held more than the recording shows: compared as a superset.

use std::collections::BTreeSet;

use super::creation::new_table;
use super::json::Json;
use super::recording::{Interaction, Recording};
use super::tree::{self, Element, Tree};
use crate::wire::Request;
use crate::wire::url::Url;

/// Restricts a recorded listing to the entries that the replay can know.
///
/// A live entry must be in the recorded page. Of the recorded entries only those count that the
/// replay has too or that the recording itself created. In the middle of a longer listing, other
/// things in the account determine where a page begins and ends: there only entries that both sides
/// have are compared.
pub struct Superset<'a> {
    /// Names in the recording's own requests so far.
    pub own: &'a BTreeSet<String>,
    /// Whether the recorded page continues another or is continued.
    pub partial: bool,
}

impl Superset<'_> {
    /// Removes everything from both pages that proves nothing.
    pub fn restrict(&self, recorded: &mut Tree, live: &mut Tree) {
        // The other things in the account also determine whether the listing continues.
        let marker = |tree: &Tree| next_marker(tree).is_none_or(str::is_empty);
        if marker(recorded) != marker(live) {
            clear_marker(recorded);
            clear_marker(live);
        }
        let (r_names, l_names) = (names(recorded), names(live));
        let keep_recorded =
            |name: &str| l_names.contains(name) || (!self.partial && self.own.contains(name));
        let keep_live = |name: &str| !self.partial || r_names.contains(name);
        filter(recorded, &keep_recorded);
        filter(live, &keep_live);
        for tree in [recorded, live] {
            self.prune(tree);
        }
    }
}

impl Superset<'_> {
    /// Keeps only the names of other things: their properties are older than the recording.
    fn prune(&self, tree: &mut Tree) {
        let Tree::Document(_, _, root) = tree else {
            return;
        };
        for list in root.children.iter_mut().filter(|c| is_list(c)) {
            for entry in &mut list.children {
                if entry_name(entry).is_some_and(|name| !self.own.contains(&name)) {
                    entry.children.retain(|child| child.name == "Name");
                }
            }
        }
    }
}

/// Returns the names in a request: path segments, quoted names in them, a table to create.
pub fn names_in(request: &Request) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for segment in Url::parse(&request.url)
        .map(|url| url.segments())
        .unwrap_or_default()
    {
        // `Tables('name')` names a table as well.
        names.extend(segment.split('\'').nth(1).map(str::to_owned));
        names.insert(segment);
    }
    names.extend(new_table(&request.body));
    names
}

/// Returns the names of other things in the account that the recorded listings contain.
pub fn foreign_names(recording: &Recording) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut own = BTreeSet::new();
    for interaction in &recording.interactions {
        own.extend(names_in(&interaction.request));
        if lists_account(&interaction.request) {
            let response = &interaction.response;
            found.extend(names(&tree::parse(
                response.headers.get("content-type"),
                &response.body,
            )));
        }
    }
    // `$logs` and similar containers come with the account and cannot be created.
    found.retain(|name| !own.contains(name) && !name.starts_with('$'));
    found
}

/// Whether a request is List Containers, List Queues or Query Tables.
pub fn lists_account(request: &Request) -> bool {
    let Some(url) = Url::parse(&request.url) else {
        return false;
    };
    let root = matches!(url.path.as_str(), "" | "/");
    request.method == "GET"
        && ((root && url.param("comp").as_deref() == Some("list"))
            || url.path == "/Tables"
            || url.path == "/Tables()")
}

/// Whether a recorded page continues another or is continued.
pub fn is_partial(interaction: &Interaction) -> bool {
    let continues = Url::parse(&interaction.request.url).is_some_and(|url| {
        ["marker", "NextTableName"]
            .iter()
            .any(|n| url.param(n).is_some_and(|v| !v.is_empty()))
    });
    let response = &interaction.response;
    let text = std::str::from_utf8(&response.body).unwrap_or_default();
    continues
        || response.headers.has("x-ms-continuation-nexttablename")
        || text
            .split_once("<NextMarker>")
            .is_some_and(|(_, rest)| !rest.starts_with("</"))
}

fn names(tree: &Tree) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    match tree {
        Tree::Document(_, _, root) => {
            let lists = root
                .children
                .iter()
                .filter(|c| is_list(c))
                .flat_map(|c| &c.children);
            names.extend(lists.chain(&root.children).filter_map(entry_name));
        }
        Tree::Json(Json::Object(members)) => {
            for (_, value) in members {
                let Json::Array(items) = value else { continue };
                names.extend(items.iter().filter_map(table_name));
            }
        }
        _ => {}
    }
    names
}

fn filter(tree: &mut Tree, keep: &dyn Fn(&str) -> bool) {
    let stays = |element: &Element| entry_name(element).is_none_or(|name| keep(&name));
    match tree {
        Tree::Document(_, _, root) => {
            root.children.retain(stays);
            for list in root.children.iter_mut().filter(|c| is_list(c)) {
                list.children.retain(stays);
            }
        }
        Tree::Json(Json::Object(members)) => {
            for (_, value) in members {
                let Json::Array(items) = value else { continue };
                items.retain(|item| table_name(item).is_none_or(|name| keep(&name)));
            }
        }
        _ => {}
    }
}

fn next_marker(tree: &Tree) -> Option<&str> {
    let Tree::Document(_, _, root) = tree else {
        return None;
    };
    root.children
        .iter()
        .find(|c| c.name == "NextMarker")
        .map(|c| c.text.as_str())
}

fn clear_marker(tree: &mut Tree) {
    if let Tree::Document(_, _, root) = tree {
        root.children
            .iter_mut()
            .filter(|c| c.name == "NextMarker")
            .for_each(|c| c.text.clear());
    }
}

fn is_list(element: &Element) -> bool {
    matches!(element.name.as_str(), "Containers" | "Queues")
}

/// Returns the name of a `Container`, a `Queue`, or an Atom `entry` of a table.
fn entry_name(element: &Element) -> Option<String> {
    let wanted = match element.name.as_str() {
        "Container" | "Queue" => "Name",
        "entry" => "d:TableName",
        _ => return None,
    };
    descendant(element, wanted)
}

fn descendant(element: &Element, name: &str) -> Option<String> {
    if element.name == name {
        return Some(element.text.clone());
    }
    element
        .children
        .iter()
        .find_map(|child| descendant(child, name))
}

fn table_name(item: &Json) -> Option<String> {
    let Json::Object(members) = item else {
        return None;
    };
    members.iter().find_map(|(name, value)| match value {
        Json::Text(text) if name == "TableName" => Some(text.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::tree;
    use super::*;

    fn page(names: &[&str], marker: &str) -> Tree {
        let queues: String = names
            .iter()
            .map(|n| format!("<Queue><Name>{n}</Name></Queue>"))
            .collect();
        let text = format!("<E><Queues>{queues}</Queues><NextMarker>{marker}</NextMarker></E>");
        tree::parse(Some("application/xml"), &Bytes::from(text))
    }

    fn json(names: &[&str]) -> Tree {
        let items: Vec<String> = names
            .iter()
            .map(|n| format!(r#"{{"TableName":"{n}"}}"#))
            .collect();
        tree::parse(
            Some("application/json"),
            &format!(r#"{{"value":[{}]}}"#, items.join(",")).into(),
        )
    }

    fn restricted(partial: bool, mut recorded: Tree, mut live: Tree) -> bool {
        let own = BTreeSet::from(["mine".to_owned()]);
        Superset { own: &own, partial }.restrict(&mut recorded, &mut live);
        recorded == live
    }

    #[test]
    fn other_things_are_left_out_and_nothing_else() {
        assert!(restricted(
            false,
            page(&["a", "mine", "z"], "m"),
            page(&["mine"], "")
        ));
        assert!(!restricted(false, page(&["a", "mine"], ""), page(&[], "")));
        assert!(!restricted(
            false,
            page(&["mine"], ""),
            page(&["extra", "mine"], "")
        ));
        assert!(restricted(
            true,
            page(&["a", "z"], "m"),
            page(&["mine"], "")
        ));
        assert!(restricted(false, json(&["a", "mine"]), json(&["mine"])));
        assert!(!restricted(
            false,
            json(&["mine", "b"]),
            json(&["b", "mine"])
        ));
    }

    #[test]
    fn other_things_are_compared_by_name_only() {
        let queue = |name: &str, metadata: &str| {
            format!("<Queue><Name>{name}</Name><Metadata>{metadata}</Metadata></Queue>")
        };
        let page = |foreign: &str, mine: &str| {
            let queues = [queue("a", foreign), queue("mine", mine)].concat();
            let text = format!("<E><Queues>{queues}</Queues><NextMarker/></E>");
            tree::parse(Some("application/xml"), &Bytes::from(text))
        };
        assert!(restricted(
            false,
            page("<k>1</k>", "<k>2</k>"),
            page("", "<k>2</k>")
        ));
        assert!(!restricted(false, page("", "<k>2</k>"), page("", "")));
    }

    #[test]
    fn other_things_are_found_in_recorded_listings() {
        let body = |text: &str| {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(text)
        };
        let line = |n: usize, method: &str, url: &str, request: &str, response: &str| {
            serde_json::json!({
                "n": n, "op": "x",
                "request": {
                    "method": method, "url": url, "headers": {}, "body_b64": body(request),
                },
                "response": { "status": 200, "body_b64": body(response), "headers": {
                    "Date": "Thu, 09 May 2019 00:57:59 GMT", "Content-Type": "application/json",
                } },
            })
            .to_string()
        };
        let url = "https://account.table.core.windows.net/Tables";
        let tables = r#"{"value":[{"TableName":"mine"},{"TableName":"other"}]}"#;
        let text = [
            r#"{"service":"table","sdk":"x","interactions":2}"#.to_owned(),
            line(0, "POST", url, r#"{"TableName":"mine"}"#, ""),
            line(1, "GET", url, "", tables),
        ];
        let recording = crate::replay::recording::parse("f", &text.join("\n")).unwrap();
        assert_eq!(
            foreign_names(&recording),
            BTreeSet::from(["other".to_owned()])
        );
    }
}
