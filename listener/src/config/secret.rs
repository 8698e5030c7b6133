//! Where secrets are kept: `env:NAME`, `file:/path`, or, where that is allowed, the value itself.

use super::ConfigError;

/// What may be read to find a secret. Injected, so that the rule can be tried without either.
pub trait Sources {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of a file.
    fn file(&self, path: &str) -> std::io::Result<String>;
}

/// The process's environment and files.
#[derive(Clone, Copy, Debug)]
pub struct Process;

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the listener reads configuration and secret files"
)]
impl Sources for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// Finds the secret that `written` names. A plain value is taken only when `inline` allows it.
pub fn resolve(
    setting: &'static str,
    written: &str,
    inline: bool,
    sources: &dyn Sources,
) -> Result<String, ConfigError> {
    if let Some(name) = written.strip_prefix("env:") {
        return sources
            .variable(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| ConfigError::value(setting, format!("variable {name} is not set")));
    }
    if let Some(path) = written.strip_prefix("file:") {
        return match sources.file(path) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(source) => Err(ConfigError::Read {
                path: path.to_owned(),
                source,
            }),
        };
    }
    if inline {
        return Ok(written.to_owned());
    }
    let problem = "a secret does not belong in the file: write env:NAME or file:/path, or set \
                   allow_inline_secrets = true";
    Err(ConfigError::value(setting, problem))
}
