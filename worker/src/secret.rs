//! Secrets in settings: `env:NAME`, `file:/path`, or the value itself.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::process::Sources;

/// A secret value, or a reference to one. `Debug` masks the value.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The value itself.
    Inline(String),
    /// Name of the environment variable that holds the value.
    Env(String),
    /// Path of the file that holds the value; surrounding white space is ignored.
    File(String),
}

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is unset or empty.
    #[error("variable {0} is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl Secret {
    /// Parses `env:NAME`, `file:/path` or the value itself.
    pub fn parse(text: &str) -> Self {
        if let Some(name) = text.strip_prefix("env:") {
            Secret::Env(name.to_owned())
        } else if let Some(path) = text.strip_prefix("file:") {
            Secret::File(path.to_owned())
        } else {
            Secret::Inline(text.to_owned())
        }
    }

    /// Returns whether the text itself is secret. The key of the development account is public.
    pub fn is_inline_secret(&self) -> bool {
        let Secret::Inline(text) = self else {
            return false;
        };
        let lower = text.to_ascii_lowercase();
        let public = lower.starts_with("usedevelopmentstorage=true");
        !text.is_empty() && (!public || lower.contains("key=") || lower.contains("sig="))
    }

    /// Returns the value, read from its variable or file.
    ///
    /// # Errors
    /// [`SecretError`] names the variable or the file.
    pub fn reveal(&self, sources: &dyn Sources) -> Result<String, SecretError> {
        match self {
            Secret::Inline(text) => Ok(text.clone()),
            Secret::Env(name) => sources
                .variable(name)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| SecretError::Unset(name.clone())),
            Secret::File(path) => match sources.file(path) {
                Ok(text) => Ok(text.trim().to_owned()),
                Err(source) => Err(SecretError::Unreadable {
                    path: path.clone(),
                    source,
                }),
            },
        }
    }

    /// Returns the reference as written, with a secret value masked.
    pub fn shown(&self) -> String {
        match self {
            Secret::Inline(text) if !self.is_inline_secret() => text.clone(),
            other => format!("{other:?}"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl Sources for One {
        fn variable(&self, name: &str) -> Option<String> {
            match name {
                "KEY" => Some("a2V5".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            }
        }

        fn file(&self, path: &str) -> std::io::Result<String> {
            match path {
                "/run/key" => Ok("c2VjcmV0\n".to_owned()),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            }
        }
    }

    #[test]
    fn reference_is_resolved_and_missing_one_is_reported() {
        for (written, value) in [
            ("env:KEY", Ok("a2V5")),
            ("file:/run/key", Ok("c2VjcmV0")),
            ("plain", Ok("plain")),
            ("env:EMPTY", Err("variable EMPTY is not set")),
            ("env:NONE", Err("variable NONE is not set")),
            ("file:/none", Err("cannot read /none: entity not found")),
        ] {
            let found = Secret::parse(written).reveal(&One);
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), value, "{written}");
        }
    }

    #[test]
    fn only_references_and_public_values_are_shown() {
        for (written, shown) in [
            ("env:KEY", "env:KEY"),
            ("file:/run/key", "file:/run/key"),
            ("AccountKey=a2V5", "***"),
            ("UseDevelopmentStorage=true", "UseDevelopmentStorage=true"),
            ("UseDevelopmentStorage=true;AccountKey=x", "***"),
            ("", ""),
        ] {
            assert_eq!(Secret::parse(written).shown(), shown, "{written}");
        }
    }
}
