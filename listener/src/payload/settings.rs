//! The settings of payloads: `offload = { container = "payloads", above = "45KiB" }`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use smalt_protocol::{Size, names};
use smalt_worker::span::Span;

use super::Compression;
use super::envelope::Bounds;
use crate::config::ConfigError;
use crate::rules::envelope::MESSAGE_MAX_BYTES;

/// Length of the longest payload that can be configured: the storage client puts and gets it in one
/// request, entirely in memory.
pub const PAYLOAD_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Shortest margin, because a sender may stall between blob and message.
const MARGIN_MIN: Duration = Duration::from_secs(60 * 60);
const MARGIN_MAX: Duration = Duration::from_secs(365 * 86_400);

/// How a queue's large payloads are stored. [`Offload::into`] gives the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Container for payloads, the only one that references may name.
    pub container: String,
    /// Longer bodies, in bytes, go into a blob; shorter ones only if they do not fit into a
    /// message.
    pub above_bytes: usize,
    /// Compression of payloads.
    pub compression: Compression,
    /// Time from its message's expiry until the sweeper may delete a blob.
    pub margin: Duration,
    /// Length of the longest payload, uncompressed; references to longer ones are not followed.
    pub payload_bytes_max: u64,
}

impl Offload {
    /// Returns the defaults for `container`: above 45 KiB, zstd, a margin of one day, at most 64
    /// MiB.
    pub fn into(container: impl Into<String>) -> Self {
        Offload {
            container: container.into(),
            above_bytes: 45 * 1024,
            compression: Compression::Zstd,
            margin: Duration::from_secs(86_400),
            payload_bytes_max: 64 * 1024 * 1024,
        }
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns all invalid settings.
    pub fn faults(&self) -> Vec<ConfigError> {
        let checks = [
            (
                names::validate_container_name(&self.container).is_err(),
                "offload.container",
                format!("`{}` is not a container name", self.container),
            ),
            (
                self.above_bytes > MESSAGE_MAX_BYTES,
                "offload.above",
                "must be at most 64KiB, the size of a message".to_owned(),
            ),
            (
                !(MARGIN_MIN..=MARGIN_MAX).contains(&self.margin),
                "offload.margin",
                "needs 1h to 365d".to_owned(),
            ),
            (
                self.payload_bytes_max == 0 || self.payload_bytes_max > PAYLOAD_BYTES_MAX,
                "offload.max",
                "must be 1B to 128MiB".to_owned(),
            ),
        ];
        let wrongs = checks.into_iter().filter(|(is_wrong, ..)| *is_wrong);
        wrongs
            .map(|(_, setting, problem)| ConfigError::value(setting, problem))
            .collect()
    }

    pub(crate) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            container: &self.container,
            payload_bytes_max: self.payload_bytes_max,
        }
    }
}

/// `offload = { ... }` as given in one place, by flags or file.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadLayer {
    /// [`Offload::container`]; required if another key is set.
    pub container: Option<String>,
    /// [`Offload::above_bytes`].
    pub above: Option<Size>,
    /// [`Offload::compression`].
    pub enc: Option<Compression>,
    /// [`Offload::margin`].
    pub margin: Option<Span>,
    /// [`Offload::payload_bytes_max`].
    pub max: Option<Size>,
}

impl OffloadLayer {
    /// Returns the checked settings, with defaults for unset values; `None` if nothing is set.
    ///
    /// # Errors
    /// The first of [`OffloadLayer::faults`]: the container is missing although another key is set,
    /// or a value is invalid.
    pub fn settings(&self) -> Result<Option<Offload>, ConfigError> {
        match self.faults().into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(self.container.as_deref().map(|named| self.within(named))),
        }
    }

    /// Returns all problems.
    pub fn faults(&self) -> Vec<ConfigError> {
        let is_set = self.above.is_some()
            || self.enc.is_some()
            || self.margin.is_some()
            || self.max.is_some();
        match &self.container {
            Some(container) => self.within(container).faults(),
            None if is_set => {
                let problem = "set the container, for example container = \"payloads\"";
                let mut faults = vec![ConfigError::value("offload.container", problem)];
                // Checks the other settings under a placeholder name.
                faults.extend(self.within("payloads").faults());
                faults
            }
            None => Vec::new(),
        }
    }

    fn within(&self, container: &str) -> Offload {
        let mut offload = Offload::into(container);
        if let Some(Size(bytes)) = self.above {
            // A value that does not fit is rejected by the check.
            offload.above_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        offload.compression = self.enc.unwrap_or(offload.compression);
        offload.margin = self.margin.map_or(offload.margin, |Span(margin)| margin);
        offload.payload_bytes_max = self.max.map_or(offload.payload_bytes_max, |Size(max)| max);
        offload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_becomes_settings() {
        let layer = |text: &str| toml::from_str::<OffloadLayer>(text).unwrap();
        let given = layer(
            r#"container="payloads"\nabove="45KiB"\nenc="gzip""#
                .replace("\\n", "\n")
                .as_str(),
        );
        let offload = given.settings().unwrap().unwrap();
        let wanted = Offload {
            compression: Compression::Gzip,
            ..Offload::into("payloads")
        };
        assert_eq!(offload, wanted);
        assert_eq!(OffloadLayer::default().settings().unwrap(), None);
    }

    #[test]
    fn invalid_settings_are_rejected() {
        for text in [
            r#"enc = "zstd""#,
            r#"container = "Payloads""#,
            r#"container = "payloads/x""#,
            "container = \"payloads\"\nabove = \"65KiB\"",
            "container = \"payloads\"\nmargin = \"1s\"",
            "container = \"payloads\"\nmax = \"0B\"",
            "container = \"payloads\"\nmax = \"129MiB\"",
            "container = \"payloads\"\nmax = \"1TiB\"",
        ] {
            let layer: OffloadLayer = toml::from_str(text).unwrap();
            assert!(layer.settings().is_err(), "{text}");
            assert_eq!(layer.faults().len(), 1, "{text}");
        }
        assert!(toml::from_str::<OffloadLayer>("contaner = \"x\"").is_err());
    }

    #[test]
    fn every_problem_is_reported() {
        let wrong = "above = \"65KiB\"\nmargin = \"1s\"\nmax = \"0B\"";
        for container in ["", "container = \"Payloads\"\n"] {
            let layer: OffloadLayer = toml::from_str(&format!("{container}{wrong}")).unwrap();
            let faults = layer.faults().into_iter();
            let settings: Vec<_> = faults
                .map(|fault| match fault {
                    ConfigError::Value { setting, .. } => setting,
                    other => panic!("{other}"),
                })
                .collect();
            let wanted =
                ["container", "above", "margin", "max"].map(|key| format!("offload.{key}"));
            assert_eq!(settings, wanted, "{container}");
        }
        assert_eq!(OffloadLayer::default().faults().len(), 0);
    }
}
