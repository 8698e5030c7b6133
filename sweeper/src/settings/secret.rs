//! Values of the configuration that must not be shown.

use std::fmt;

use serde::{Deserialize, Deserializer};

/// A value that must not be shown, or where it stands.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The value itself.
    Inline(String),
    /// In this environment variable.
    Env(String),
    /// In this file, white space around it ignored.
    File(String),
}

impl Secret {
    /// Reads `env:NAME`, `file:/path` or the value itself.
    pub fn parse(text: &str) -> Self {
        if let Some(name) = text.strip_prefix("env:") {
            Secret::Env(name.to_owned())
        } else if let Some(path) = text.strip_prefix("file:") {
            Secret::File(path.to_owned())
        } else {
            Secret::Inline(text.to_owned())
        }
    }

    /// Whether the text itself is secret. The development account's key is public.
    pub(super) fn is_inline_secret(&self) -> bool {
        let Secret::Inline(text) = self else {
            return false;
        };
        let lower = text.to_ascii_lowercase();
        let public = lower.starts_with("usedevelopmentstorage=true");
        !text.is_empty() && (!public || lower.contains("key=") || lower.contains("sig="))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Inline(_) => f.write_str("***"),
            Secret::Env(name) => write!(f, "env:{name}"),
            Secret::File(path) => write!(f, "file:{path}"),
        }
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Secret::parse(&String::deserialize(from)?))
    }
}
