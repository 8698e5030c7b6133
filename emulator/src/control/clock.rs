//! `/clock`: reads and moves the emulator's time.

use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use super::{Refusal, failed};
use crate::core::Core;

/// Changes to the clock. Several in one request are applied in the order of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// If the clock is behind the last commit, lets the store's time continue from the clock's.
    #[serde(default)]
    rebase: bool,
    /// Sets the time: ISO 8601 (`2026-01-01T00:00:00Z`).
    now: Option<String>,
    /// Moves the clock forward by this many seconds.
    advance_s: Option<f64>,
    /// `frozen` or `running`.
    mode: Option<Mode>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Frozen,
    Running,
}

#[derive(Debug, Serialize)]
pub(super) struct ClockReading {
    now: String,
    mode: Mode,
    is_wall: bool,
    /// The time of the last commit: `now` is never before it.
    last_used: String,
    /// Seconds that the clock is behind `last_used`; `now` stands still for that long.
    behind_s: u64,
}

pub(super) fn read(core: &Core) -> ClockReading {
    let reading = core.clock.reading();
    ClockReading {
        now: core.store.now().iso_ticks(),
        mode: if reading.running {
            Mode::Running
        } else {
            Mode::Frozen
        },
        is_wall: reading.is_wall,
        last_used: core.store.last_used().iso_ticks(),
        behind_s: core.store.behind().as_secs(),
    }
}

pub(super) fn change(core: &Core, change: &Change) -> Result<(), Refusal> {
    let advance = change.advance_s.map(Duration::try_from_secs_f64);
    let advance = advance.transpose().map_err(|_| {
        Refusal::new(
            StatusCode::BAD_REQUEST,
            "invalid `advance_s`: use a number of seconds, such as 60 or 0.5",
        )
    })?;
    let is_rebased = change.rebase && !core.store.behind().is_zero();
    let first = match is_rebased {
        true => core.clock.now(),
        false => core.store.last_used(),
    };
    let now = change.now.as_deref().map(|text| moved_to(text, first));
    let now = now.transpose()?;
    if is_rebased {
        core.store.rebase().map_err(|error| failed(&error))?;
    }
    if let Some(now) = now {
        core.clock.set(now);
    }
    if let Some(duration) = advance {
        core.clock.advance(duration);
    }
    match change.mode {
        Some(Mode::Frozen) => core.clock.freeze(),
        Some(Mode::Running) => core.clock.run(),
        None => {}
    }
    Ok(())
}

/// Parses a time that must not be before `first`.
fn moved_to(text: &str, first: Timestamp) -> Result<Timestamp, Refusal> {
    match Timestamp::parse_iso(text) {
        None => Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "invalid `now`: use a time such as 2026-01-01T00:00:00Z",
        )),
        Some(to) if to < first => Err(Refusal::new(
            StatusCode::CONFLICT,
            "`now` is before the last commit; send \"rebase\": true, or DELETE /state first",
        )),
        Some(to) => Ok(to),
    }
}
