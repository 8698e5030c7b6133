//! A setting as it takes effect, and where its value comes from.

use std::fmt;

use serde::Serialize;

/// Where a value comes from, the strongest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A flag of the command line.
    Flag,
    /// This environment variable.
    Environment(String),
    /// The configuration file.
    File,
    /// The profile of this name.
    Profile(String),
    /// The default.
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

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its path in the file.
    pub key: String,
    /// Its value as it takes effect, secrets masked.
    pub value: String,
    /// Where the value comes from.
    pub source: Source,
}
