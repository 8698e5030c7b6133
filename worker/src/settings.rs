//! Settings of several sources, merged, and the source of each value.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use toml::{Table, Value};

/// Sources of values, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A command-line flag.
    Flag,
    /// The environment variable with this name.
    Environment(String),
    /// The configuration file.
    File,
    /// The profile with this name.
    Profile(String),
    /// The built-in default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag => f.write_str("flag"),
            Source::Environment(name) => f.write_str(name),
            Source::File => f.write_str("file"),
            Source::Profile(name) => write!(f, "profile {name}"),
            Source::Default => f.write_str("default"),
        }
    }
}

/// An effective setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Path in the configuration file.
    pub key: String,
    /// Effective value, with secrets masked.
    pub value: String,
    /// Source of the value.
    pub source: Source,
}

/// Values of several sources, merged as tables of the configuration file's shape.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    whole: &'static str,
    merged: Table,
    sources: BTreeMap<String, Source>,
}

impl Layers {
    /// Creates layers without values. Each table in the table `whole` comes from one source only,
    /// as the settings of an account do.
    pub fn with_whole(whole: &'static str) -> Self {
        Layers {
            whole,
            ..Layers::default()
        }
    }

    /// Adds a table whose values win over the earlier ones.
    pub fn add_table(&mut self, table: Table, source: &Source) {
        let mut sources = BTreeMap::new();
        note(&table, "", source, &mut sources);
        self.over(table, sources);
    }

    /// Adds values by their paths; they win over the earlier ones.
    pub fn add<'a>(&mut self, values: impl IntoIterator<Item = (&'a str, Source, Value)>) {
        let (mut table, mut sources) = (Table::new(), BTreeMap::new());
        for (path, source, value) in values {
            put(&mut table, path, value);
            sources.insert(path.to_owned(), source);
        }
        self.over(table, sources);
    }

    fn over(&mut self, table: Table, sources: BTreeMap<String, Source>) {
        let given = table.get(self.whole).and_then(Value::as_table);
        for name in given.into_iter().flat_map(Table::keys) {
            self.remove(&format!("{}.{name}", self.whole));
        }
        overlay(&mut self.merged, table);
        self.sources.extend(sources);
    }

    /// Removes the value or the table at a path.
    pub fn remove(&mut self, path: &str) {
        let inside = format!("{path}.");
        (self.sources).retain(|known, _| known != path && !known.starts_with(&inside));
        let (tables, name) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = Some(&mut self.merged);
        for step in tables.split('.').filter(|step| !step.is_empty()) {
            table = table.and_then(|table| table.get_mut(step)?.as_table_mut());
        }
        table.and_then(|table| table.remove(name));
    }

    /// Returns the source of the value at a path.
    pub fn source(&self, path: &str) -> Source {
        self.sources.get(path).cloned().unwrap_or(Source::Default)
    }

    /// Returns the merged values.
    pub fn table(&self) -> &Table {
        &self.merged
    }
}

fn note(table: &Table, at: &str, source: &Source, sources: &mut BTreeMap<String, Source>) {
    for (name, value) in table {
        let path = match at {
            "" => name.clone(),
            _ => format!("{at}.{name}"),
        };
        if let Value::Table(inner) = value {
            note(inner, &path, source, sources);
        }
        sources.insert(path, source.clone());
    }
}

/// Merges `over` into `under`, table by table.
fn overlay(under: &mut Table, over: Table) {
    for (name, value) in over {
        match (under.get_mut(&name), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                under.insert(name, value);
            }
        }
    }
}

/// Puts a value at a dotted path.
pub fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = table
                .entry(head)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn later_layers_win_and_accounts_are_never_mixed() {
        let mut layers = Layers::with_whole("account");
        let file = "rate = 1\nidle = { min = 1, max = 2 }\n\
                    account = { a = { name = \"a\", key = \"k\" }, b = { name = \"b\" } }";
        layers.add_table(table(file), &Source::File);
        let by_variable = Source::Environment("RATE".to_owned());
        layers.add([
            ("idle.max", Source::Flag, Value::Integer(3)),
            ("account.a.sas", Source::Flag, Value::Integer(4)),
            ("rate", by_variable.clone(), Value::Integer(5)),
        ]);
        let wanted = "rate = 5\nidle = { min = 1, max = 3 }\n\
                      account = { a = { sas = 4 }, b = { name = \"b\" } }";
        assert_eq!(*layers.table(), table(wanted));
        for (path, source) in [
            ("rate", by_variable),
            ("idle.min", Source::File),
            ("idle.max", Source::Flag),
            ("account.a.sas", Source::Flag),
            ("account.a.key", Source::Default),
            ("account.b.name", Source::File),
            ("other", Source::Default),
        ] {
            assert_eq!(layers.source(path), source, "{path}");
        }
        layers.remove("idle.max");
        layers.remove("no.such.path");
        assert_eq!(layers.table()["idle"], Value::Table(table("min = 1")));
        assert_eq!(layers.source("idle.max"), Source::Default);
    }
}
