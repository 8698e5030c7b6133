//! The storage modes on disk. A kill takes nothing that was acknowledged in either of them; only a
//! loss of power tells them apart.

use std::path::Path;

use serde::{Deserialize, Serialize};
use smalt::store::StoreConfig;
use smalt::{Builder, Clock};

/// A storage mode on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Mode {
    /// An acknowledged operation is on the disk.
    #[default]
    Durable,
    /// An acknowledged operation is with the system.
    Fast,
}

impl Mode {
    /// Returns the value of `--mode`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Durable => "durable",
            Mode::Fast => "fast",
        }
    }

    /// Configures a store in this mode.
    pub fn store(self, dir: &Path, clock: Clock) -> StoreConfig {
        match self {
            Mode::Durable => StoreConfig::durable(dir, clock),
            Mode::Fast => StoreConfig::fast(dir, clock),
        }
    }

    /// Configures an emulator in this mode.
    pub fn emulator(self, builder: Builder, dir: &Path) -> Builder {
        match self {
            Mode::Durable => builder.durable(dir),
            Mode::Fast => builder.fast(dir),
        }
    }
}
