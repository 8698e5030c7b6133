//! What belongs to a state beside its records: settings of accounts and a clock that was moved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use crate::config::AccountSettings;
use crate::core::Core;

/// What belongs to a state beside its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The emulator's time, in ISO 8601.
    pub now: String,
    /// Whether the clock moves by itself.
    pub running: bool,
    /// Whether it shows the wall's time: then it is not set.
    pub is_wall: bool,
    /// Settings of the accounts.
    pub accounts: BTreeMap<String, AccountSettings>,
}

impl About {
    /// What belongs to the state as it is now.
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

    /// Gives it to an emulator that goes on with the state. Accounts that it does not have are
    /// passed over.
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
