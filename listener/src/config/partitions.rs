//! `partitions`: the settings of a partitioned queue in the file.

use serde::{Deserialize, Serialize};
use smalt_worker::span::Span;

use super::ConfigError;
use crate::partition::PartitionSettings;

const CONTAINER: &str = "listener-partitions";

/// `partitions = 4`, or `partitions = { count, container, max_age }`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(from = "PartitionsValue")]
pub struct PartitionsLayer {
    /// Number of queues in the first map.
    pub count: Option<u32>,
    /// Container of the map's blob.
    pub container: Option<String>,
    /// Longest time for which a sender may trust the map.
    pub max_age: Option<Span>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`partitions` must be a number, or a table of count, container and max_age"
)]
enum PartitionsValue {
    Number(u32),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    count: Option<u32>,
    container: Option<String>,
    max_age: Option<Span>,
}

impl From<PartitionsValue> for PartitionsLayer {
    fn from(written: PartitionsValue) -> Self {
        match written {
            PartitionsValue::Number(count) => PartitionsLayer {
                count: Some(count),
                ..PartitionsLayer::default()
            },
            PartitionsValue::Table(table) => PartitionsLayer {
                count: table.count,
                container: table.container,
                max_age: table.max_age,
            },
        }
    }
}

impl PartitionsLayer {
    /// Returns all problems with the settings of the queue `name`.
    pub fn faults(&self, name: &str) -> Vec<ConfigError> {
        match self.unchecked(name) {
            Ok(settings) => settings.map_or_else(Vec::new, |settings| settings.faults()),
            Err(fault) => vec![fault],
        }
    }

    /// Returns the checked settings of the queue `name`, or `None` if it is not partitioned.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn settings(&self, name: &str) -> Result<Option<PartitionSettings>, ConfigError> {
        let settings = self.unchecked(name)?;
        settings.iter().try_for_each(PartitionSettings::check)?;
        Ok(settings)
    }

    fn unchecked(&self, name: &str) -> Result<Option<PartitionSettings>, ConfigError> {
        let Some(count) = self.count else {
            if self.container.is_some() || self.max_age.is_some() {
                let problem = "set the number of queues, for example count = 4";
                return Err(ConfigError::value("partitions.count", problem));
            }
            return Ok(None);
        };
        let container = self.container.as_deref().unwrap_or(CONTAINER);
        let mut settings = PartitionSettings::new(name, count, container);
        settings.max_age = self.max_age.map_or(settings.max_age, |Span(age)| age);
        Ok(Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<PartitionSettings>, String> {
        let table: toml::Table = text.parse().unwrap();
        let value = table.get("partitions").unwrap().clone();
        let layer = value.try_into::<PartitionsLayer>();
        let layer = layer.map_err(|error| error.to_string())?;
        layer.settings("orders").map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_or_a_table() {
        let settings = of("partitions = 4").unwrap().unwrap();
        assert_eq!((settings.partitions, settings.name.as_str()), (4, "orders"));
        assert_eq!(settings.container, "listener-partitions");
        let table = r#"partitions = { count = 2, container = "ops", max_age = "30s" }"#;
        let settings = of(table).unwrap().unwrap();
        assert_eq!(
            (settings.partitions, settings.container.as_str()),
            (2, "ops")
        );
        assert_eq!(settings.max_age.as_secs(), 30);
    }

    /// Each problem gets one line.
    #[test]
    fn each_problem_is_one_line() {
        for (text, problem) in [
            ("partitions = 0", "partitions: 0 is not between 1 and 100"),
            (
                "partitions = 101",
                "partitions: 101 is not between 1 and 100",
            ),
            ("partitions = \"4\"", "a number, or a table"),
            ("partitions = -1", "a number, or a table"),
            (
                "partitions = { cuont = 4 }",
                "a table of count, container and max_age",
            ),
            (
                "partitions = { container = \"ops\" }",
                "partitions.count: set the number",
            ),
            (
                "partitions = { count = 2, container = \"Ops\" }",
                "`Ops` is not a container",
            ),
            ("partitions = { count = 2, max_age = \"2h\" }", "1s to 1h"),
            (
                "partitions = { count = 2, max_age = \"1500ms\" }",
                "whole seconds",
            ),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(!error.trim_end().contains('\n'), "{text}: {error}");
        }
        let long = PartitionsLayer {
            count: Some(1),
            ..PartitionsLayer::default()
        };
        assert!(
            long.settings(&"q".repeat(61)).is_err(),
            "no room for a number"
        );
    }
}
