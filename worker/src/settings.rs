//! An effective setting, and the source of its value.

use std::fmt;

use serde::Serialize;

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
