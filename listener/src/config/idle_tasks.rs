//! `idle_tasks`: how many tasks poll an empty queue, per listener or in the whole fleet.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The setting as written: a number, or `"sentinel"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "IdleTasksValue", into = "IdleTasksValue")]
pub enum IdleTasks {
    /// This number of tasks in each listener.
    Each(u32),
    /// One task in the whole fleet.
    Sentinel,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "`idle_tasks` must be a number or \"sentinel\"")]
enum IdleTasksValue {
    Number(u32),
    Word(String),
}

impl TryFrom<IdleTasksValue> for IdleTasks {
    type Error = String;

    fn try_from(written: IdleTasksValue) -> Result<Self, String> {
        match written {
            IdleTasksValue::Number(tasks) => Ok(IdleTasks::Each(tasks)),
            IdleTasksValue::Word(word) => word.parse(),
        }
    }
}

impl From<IdleTasks> for IdleTasksValue {
    fn from(tasks: IdleTasks) -> Self {
        match tasks {
            IdleTasks::Each(tasks) => IdleTasksValue::Number(tasks),
            IdleTasks::Sentinel => IdleTasksValue::Word("sentinel".to_owned()),
        }
    }
}

impl FromStr for IdleTasks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(tasks) => Ok(IdleTasks::Each(tasks)),
            Err(_) if text == "sentinel" => Ok(IdleTasks::Sentinel),
            Err(_) => Err(format!("`{text}` is neither a number nor `sentinel`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_the_word() {
        let of = |text: &str| {
            let table: toml::Table = text.parse().unwrap();
            let value = table.get("idle_tasks").unwrap().clone();
            value.try_into::<IdleTasks>().map_err(|e| e.to_string())
        };
        assert_eq!(of("idle_tasks = 2"), Ok(IdleTasks::Each(2)));
        assert_eq!(of("idle_tasks = \"sentinel\""), Ok(IdleTasks::Sentinel));
        assert!(of("idle_tasks = \"some\"").unwrap_err().contains("`some`"));
        assert!(of("idle_tasks = -1").unwrap_err().contains("sentinel"));
        assert_eq!("0".parse(), Ok(IdleTasks::Each(0)));
        assert!("-1".parse::<IdleTasks>().is_err());
    }
}
