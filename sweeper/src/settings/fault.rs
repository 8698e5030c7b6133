//! What is wrong with a configuration.

/// The configuration is invalid.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", faults.join("; "))]
pub struct SettingsError {
    /// Messages for the operator, one per fault.
    pub faults: Vec<String>,
}

impl SettingsError {
    /// Returns the value, or records the faults and returns `None`.
    pub(super) fn take<T>(&mut self, read: Result<T, SettingsError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.faults.extend(error.faults);
                None
            }
        }
    }

    /// Returns the value unless a fault was recorded.
    pub(super) fn or<T>(self, value: T) -> Result<T, SettingsError> {
        match self.faults.is_empty() {
            true => Ok(value),
            false => Err(self),
        }
    }
}

pub(super) fn wrong(text: impl Into<String>) -> SettingsError {
    SettingsError {
        faults: vec![text.into()],
    }
}

/// Returns the first line of the error's message. The full text of a TOML error quotes the source
/// line, which may hold a secret.
pub(super) fn first_line(error: &toml::de::Error) -> String {
    error
        .message()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
