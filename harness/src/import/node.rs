//! A document, JSON or YAML, in which every value knows its place.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use saphyr_parser::{Event, Parser, Tag};

use crate::replay::json::Json;

/// Most values in a document, those counted again that an alias repeats.
const NODES_MAX: usize = 1_000_000;
/// Deepest nesting: recordings are eight levels deep.
const DEPTH_MAX: usize = 64;

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct Wrong {
    /// `12:3` (line, column) or `Entries[3].RequestUri`.
    pub at: String,
    /// In words.
    pub problem: String,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// As in [`Wrong::at`].
    pub at: String,
    /// What stands there.
    pub value: Value,
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// As written.
    Number(String),
    /// Text.
    Text(String),
    /// `!!binary`.
    Bytes(Vec<u8>),
    /// In order.
    Seq(Vec<Node>),
    /// In order.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// That something is wrong here.
    pub fn wrong(&self, problem: impl Into<String>) -> Wrong {
        Wrong {
            at: self.at.clone(),
            problem: problem.into(),
        }
    }

    /// A member, where this is a map that has it and it is not null.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let Value::Map(members) = &self.value else {
            return None;
        };
        let found = members.iter().find(|(known, _)| known == name);
        found
            .map(|(_, node)| node)
            .filter(|node| node.value != Value::Null)
    }

    /// A member that must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn need(&self, name: &str) -> Result<&Node, Wrong> {
        self.get(name)
            .ok_or_else(|| self.wrong(format!("{name} is missing")))
    }

    /// Text, or a number as written.
    ///
    /// # Errors
    /// When it is neither.
    pub fn text(&self) -> Result<&str, Wrong> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Ok(text),
            _ => Err(self.wrong("this should be a text")),
        }
    }

    /// A list.
    ///
    /// # Errors
    /// When it is none.
    pub fn seq(&self) -> Result<&[Node], Wrong> {
        match &self.value {
            Value::Seq(nodes) => Ok(nodes),
            _ => Err(self.wrong("this should be a list")),
        }
    }

    /// A map.
    ///
    /// # Errors
    /// When it is none.
    pub fn map(&self) -> Result<&[(String, Node)], Wrong> {
        match &self.value {
            Value::Map(members) => Ok(members),
            _ => Err(self.wrong("this should be a map")),
        }
    }

    /// A status code.
    ///
    /// # Errors
    /// When it is none.
    pub fn status(&self) -> Result<u16, Wrong> {
        let status = self.text()?.parse().ok();
        status
            .filter(|status| (100..600).contains(status))
            .ok_or_else(|| self.wrong("this should be a status code"))
    }

    /// As JSON, written anew.
    pub fn json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(truth) => truth.to_string(),
            Value::Number(text) => text.clone(),
            Value::Text(text) => quoted(text),
            Value::Bytes(bytes) => quoted(&STANDARD.encode(bytes)),
            Value::Seq(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(Node::json).collect();
                format!("[{}]", nodes.join(","))
            }
            Value::Map(members) => {
                let member = |(name, node): &(String, Node)| quoted(name) + ":" + &node.json();
                let members: Vec<String> = members.iter().map(member).collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }

    /// Gives every value below its path.
    fn place(&mut self, path: &str) {
        path.clone_into(&mut self.at);
        match &mut self.value {
            Value::Seq(nodes) => {
                for (index, node) in nodes.iter_mut().enumerate() {
                    node.place(&format!("{path}[{index}]"));
                }
            }
            Value::Map(members) => {
                for (name, node) in members {
                    let dot = if path.is_empty() { "" } else { "." };
                    node.place(&format!("{path}{dot}{name}"));
                }
            }
            _ => {}
        }
    }
}

/// Reads JSON.
///
/// # Errors
/// With line and column of what is no JSON.
pub fn json(text: &str) -> Result<Node, Wrong> {
    let read: Result<Json, serde_json::Error> = serde_json::from_str(text);
    let mut node = read.map(of).map_err(|error| Wrong {
        at: format!("{}:{}", error.line(), error.column()),
        problem: "not JSON: ".to_owned() + &without_place(&error.to_string()),
    })?;
    node.place("");
    Ok(node)
}

/// serde_json ends its messages with the place.
fn without_place(message: &str) -> String {
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message[..end].to_owned()
}

/// A value of JSON, its place still to be given.
fn of(json: Json) -> Node {
    let value = match json {
        Json::Plain(text) => match text.as_str() {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Number(text),
        },
        Json::Text(text) => Value::Text(text),
        Json::Array(items) => Value::Seq(items.into_iter().map(of).collect()),
        Json::Object(members) => {
            let members = members.into_iter();
            Value::Map(members.map(|(name, json)| (name, of(json))).collect())
        }
    };
    Node {
        at: String::new(),
        value,
    }
}

/// A list or map that is not closed yet.
struct Open {
    node: Node,
    /// The name of the member that comes next.
    name: Option<String>,
    anchor: usize,
}

/// Reads YAML: one document. Tags other than `!!binary` say nothing here.
///
/// # Errors
/// With line and column of what is no YAML, or too much.
pub fn yaml(text: &str) -> Result<Node, Wrong> {
    let mut reader = Yaml::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Wrong {
            at: place(error.marker()),
            problem: format!("not YAML: {}", error.info()),
        })?;
        reader.event(event, place(&span.start))?;
    }
    reader.root.ok_or_else(|| Wrong {
        at: "1:1".to_owned(),
        problem: "the document is empty".to_owned(),
    })
}

fn place(marker: &saphyr_parser::Marker) -> String {
    format!("{}:{}", marker.line(), marker.col() + 1)
}

#[derive(Default)]
struct Yaml {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
}

impl Yaml {
    fn event(&mut self, event: Event<'_>, at: String) -> Result<(), Wrong> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == saphyr_parser::ScalarStyle::Plain;
                let value = scalar(&text, is_plain, tag.as_deref(), &at)?;
                self.add(Node { at, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(Value::Seq(Vec::new()), at, anchor),
            Event::MappingStart(anchor, _) => self.begin(Value::Map(Vec::new()), at, anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.add(open.node, open.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let node = known.ok_or_else(|| Wrong {
                    at,
                    problem: "an alias of what is not there".to_owned(),
                })?;
                self.nodes += size(&node);
                self.add(node, 0)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, value: Value, at: String, anchor: usize) -> Result<(), Wrong> {
        if self.open.len() >= DEPTH_MAX {
            let problem = format!("nested deeper than {DEPTH_MAX}");
            return Err(Wrong { at, problem });
        }
        self.open.push(Open {
            node: Node { at, value },
            name: None,
            anchor,
        });
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Wrong> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(node.wrong(format!("more than {NODES_MAX} values")));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        match (&mut open.node.value, open.name.take()) {
            (Value::Seq(nodes), _) => nodes.push(node),
            (Value::Map(members), Some(name)) => members.push((name, node)),
            (Value::Map(_), None) => open.name = Some(node.text()?.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

/// How many values a copy of this one adds.
fn size(node: &Node) -> usize {
    match &node.value {
        Value::Seq(nodes) => 1 + nodes.iter().map(size).sum::<usize>(),
        Value::Map(members) => 1 + members.iter().map(|(_, node)| size(node)).sum::<usize>(),
        _ => 1,
    }
}

fn scalar(text: &str, is_plain: bool, tag: Option<&Tag>, at: &str) -> Result<Value, Wrong> {
    if tag.is_some_and(|tag| tag.suffix == "binary") {
        let packed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let bytes = STANDARD.decode(packed).map_err(|error| Wrong {
            at: at.to_owned(),
            problem: format!("!!binary: {error}"),
        })?;
        return Ok(Value::Bytes(bytes));
    }
    let is_text = !is_plain || tag.is_some();
    Ok(match text {
        _ if is_text => Value::Text(text.to_owned()),
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => Value::Text(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_keeps_places_bytes_and_aliases() {
        let text = "a: &x\n- 'true'\n- !!binary |\n  AQID\nb: *x\nc: null\n";
        let node = yaml(text).unwrap();
        let list = node.get("b").unwrap().seq().unwrap();
        assert_eq!(list[0].value, Value::Text("true".to_owned()));
        assert_eq!(list[1].value, Value::Bytes(vec![1, 2, 3]));
        assert_eq!(list[0].at, "2:3");
        assert_eq!(node.get("c"), None);
        let wrong = node.need("d").unwrap_err();
        assert_eq!(wrong.to_string(), "1:1: d is missing");
    }

    #[test]
    fn json_keeps_order_and_paths() {
        let text = r#"{"z":[{"a":1,"A":"é"}],"b":true}"#;
        let node = json(text).unwrap();
        assert_eq!(node.json(), text);
        let inner = &node.get("z").unwrap().seq().unwrap()[0];
        assert_eq!(inner.get("A").unwrap().at, "z[0].A");
    }

    #[test]
    fn what_is_no_document_is_placed() {
        let wrong = |found: Result<Node, Wrong>| found.unwrap_err().to_string();
        assert!(wrong(json("{\n \"a\": }")).starts_with("2:7: not JSON"));
        assert!(wrong(yaml("a: [1,\nb: {")).contains("not YAML"));
        assert!(wrong(yaml("")).contains("empty"));
        assert!(wrong(yaml("a: !!binary \"?\"")).starts_with("1:4: !!binary"));
        let deep = "[".repeat(DEPTH_MAX + 1);
        assert!(wrong(yaml(&deep)).contains("nested deeper"));
        // Nine lists of nine of nine: an alias counts as what it repeats.
        let mut laughs = "a0: &a0 [x]\n".to_owned();
        for n in 1..9 {
            let inner = vec![format!("*a{}", n - 1); 9].join(", ");
            laughs += &format!("a{n}: &a{n} [{inner}]\n");
        }
        assert!(wrong(yaml(&laughs)).contains("more than"));
    }
}
