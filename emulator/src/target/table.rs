//! What the path of a request to the Table service names.
//!
//! ```text
//! (nothing)  Tables  Tables('name')  $batch  name  name()  name(PartitionKey='p',RowKey='r')
//! ```
//!
//! Source: *Addressing Table service resources*. A quote in a key is doubled.

/// A resource of the Table service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableAddress {
    /// The service itself.
    Service,
    /// The list of tables.
    Tables,
    /// A table in the list of tables.
    Named(String),
    /// Where entity group transactions go.
    Batch,
    /// A table, for its entities or its access policies.
    Table(String),
    /// An entity.
    Entity {
        /// Table.
        table: String,
        /// Its partition key.
        partition_key: String,
        /// Its row key.
        row_key: String,
    },
    /// A path that no resource has.
    Malformed,
}

const TABLES: &str = "Tables";
const BATCH: &str = "$batch";
const PARTITION_KEY: &str = "PartitionKey";
const ROW_KEY: &str = "RowKey";

impl TableAddress {
    /// Reads the decoded path behind the account.
    pub fn parse(path: &str) -> Self {
        let path = path.strip_suffix('/').unwrap_or(path);
        let Some((name, rest)) = path.split_once('(') else {
            return match path {
                "" => TableAddress::Service,
                TABLES => TableAddress::Tables,
                BATCH => TableAddress::Batch,
                _ => TableAddress::Table(path.to_owned()),
            };
        };
        let Some(arguments) = rest.strip_suffix(')') else {
            return TableAddress::Malformed;
        };
        let found = match (name, arguments.trim()) {
            (TABLES, "") => Some(TableAddress::Tables),
            (TABLES, name) => only_literal(name).map(TableAddress::Named),
            (_, "") => Some(TableAddress::Table(name.to_owned())),
            (_, keys) => entity(name, keys),
        };
        found.unwrap_or(TableAddress::Malformed)
    }

    /// The table named, as written; empty where there is none.
    pub fn table(&self) -> &str {
        match self {
            TableAddress::Named(table)
            | TableAddress::Table(table)
            | TableAddress::Entity { table, .. } => table,
            _ => "",
        }
    }
}

/// `PartitionKey='p',RowKey='r'`, in either order.
fn entity(table: &str, keys: &str) -> Option<TableAddress> {
    let (first, rest) = assignment(keys)?;
    let (second, rest) = assignment(rest.trim_start().strip_prefix(',')?)?;
    if !rest.trim().is_empty() {
        return None;
    }
    let (partition_key, row_key) = match (first.0, second.0) {
        (PARTITION_KEY, ROW_KEY) => (first.1, second.1),
        (ROW_KEY, PARTITION_KEY) => (second.1, first.1),
        _ => return None,
    };
    Some(TableAddress::Entity {
        table: table.to_owned(),
        partition_key,
        row_key,
    })
}

/// `name='value'` and what follows.
fn assignment(text: &str) -> Option<((&str, String), &str)> {
    let (name, rest) = text.split_once('=')?;
    let (value, rest) = literal(rest.trim_start())?;
    Some(((name.trim(), value), rest))
}

fn only_literal(text: &str) -> Option<String> {
    literal(text)
        .filter(|(_, rest)| rest.is_empty())
        .map(|(value, _)| value)
}

/// A quoted text, and what follows.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (part, behind) = rest.split_once('\'')?;
        value.push_str(part);
        match behind.strip_prefix('\'') {
            Some(behind) => {
                value.push('\'');
                rest = behind;
            }
            None => return Some((value, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entity(table: &str, partition_key: &str, row_key: &str) -> TableAddress {
        TableAddress::Entity {
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
        }
    }

    #[test]
    fn paths_name_resources() {
        let table = || TableAddress::Table("tab".to_owned());
        for (path, expected) in [
            ("", TableAddress::Service),
            ("/", TableAddress::Service),
            ("Tables", TableAddress::Tables),
            ("Tables()", TableAddress::Tables),
            ("Tables('tab')", TableAddress::Named("tab".to_owned())),
            ("$batch", TableAddress::Batch),
            ("tab", table()),
            ("tab()", table()),
            ("tab/", table()),
            ("tab(PartitionKey='a',RowKey='b')", entity("tab", "a", "b")),
            ("tab(RowKey='b', PartitionKey='a')", entity("tab", "a", "b")),
            ("tab(PartitionKey='',RowKey='')", entity("tab", "", "")),
            (
                "tab(PartitionKey='O''Neil',RowKey=''',''')",
                entity("tab", "O'Neil", "','"),
            ),
        ] {
            assert_eq!(TableAddress::parse(path), expected, "{path}");
        }
        for path in [
            "tab(",
            "tab(PartitionKey='a')",
            "tab('a','b')",
            "tab(PartitionKey='a',PartitionKey='b')",
            "tab(PartitionKey='a',RowKey='b',X='c')",
            "tab(PartitionKey='a,RowKey='b')",
            "tab(PartitionKey=a,RowKey='b')",
            "Tables(tab)",
            "Tables('tab'x)",
            "tab()x",
        ] {
            assert_eq!(
                TableAddress::parse(path),
                TableAddress::Malformed,
                "{path}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_key_reads_back(partition_key in ".{0,20}", row_key in ".{0,20}") {
            let quoted = |key: &str| key.replace('\'', "''");
            let path = format!(
                "tab(PartitionKey='{}',RowKey='{}')",
                quoted(&partition_key),
                quoted(&row_key)
            );
            let expected = entity("tab", &partition_key, &row_key);
            prop_assert_eq!(TableAddress::parse(&path), expected);
        }

        #[test]
        fn any_path_is_read(path in "[a-zT'(),= ]{0,30}") {
            let _ = TableAddress::parse(&path);
        }
    }
}
