//! Listings of an account that held more than the recording shows: compared as a superset.

use std::collections::BTreeSet;

use super::json::Json;
use super::tree::{Element, Tree};

/// Restricts a recorded listing to what the replay can know.
///
/// A live entry must be in the recorded page; of the recorded entries only those count that the
/// replay has too or that the recording itself made. A page in the middle of a longer listing
/// begins and ends where other things of the account decided: there only entries that both have
/// are compared.
pub struct Superset<'a> {
    /// Names that occur in the recording's own requests so far.
    pub own: &'a BTreeSet<String>,
    /// The recorded page continues another or is continued.
    pub partial: bool,
}

impl Superset<'_> {
    /// Takes out of both pages what is no evidence.
    pub fn restrict(&self, recorded: &mut Tree, live: &mut Tree) {
        let (r_names, l_names) = (names(recorded), names(live));
        let keep_recorded =
            |name: &str| l_names.contains(name) || (!self.partial && self.own.contains(name));
        let keep_live = |name: &str| !self.partial || r_names.contains(name);
        filter(recorded, &keep_recorded);
        filter(live, &keep_live);
    }
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
            // Whether the listing goes on depends on the other things of the account.
            for marker in root.children.iter_mut().filter(|c| c.name == "NextMarker") {
                marker.text.clear();
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

fn is_list(element: &Element) -> bool {
    matches!(element.name.as_str(), "Containers" | "Queues")
}

/// The name of a `Container`, a `Queue`, or an Atom `entry` of a table.
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
}
