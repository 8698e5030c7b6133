//! The parts of a state that are not records: account settings and a moved clock.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use crate::config::AccountSettings;
use crate::core::Core;

/// The parts of a state that are not records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The emulator's time, in ISO 8601.
    pub now: String,
    /// Whether the clock advances by itself.
    pub running: bool,
    /// Whether the clock follows wall time; `now` is then not restored.
    pub is_wall: bool,
    /// Settings by account name.
    pub accounts: BTreeMap<String, AccountSettings>,
}

impl About {
    /// Captures the current settings and clock.
    pub fn of(core: &Core) -> Self {
        let reading = core.clock.reading();
        let names = core.config.accounts.keys();
        About {
            now: core.store.now().iso_ticks(),
            running: reading.running,
            is_wall: reading.is_wall,
            accounts: names
                .map(|name| (name.clone(), AccountSettings::clone(&core.settings(name))))
                .collect(),
        }
    }

    /// Applies the settings and clock to an emulator. Ignores accounts that the emulator does not
    /// have.
    pub fn restore(self, core: &Core) {
        for (name, settings) in self.accounts {
            core.change_settings(&name, settings);
        }
        match Timestamp::parse_iso(&self.now) {
            Some(now) if !self.is_wall => core.clock.show(now, self.running),
            _ => core.clock.follow_wall(),
        }
    }
}
