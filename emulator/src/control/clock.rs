//! `/clock`: reading and moving the emulator's time.

use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use super::{Refusal, failed};
use crate::core::Core;

/// What to do to the clock; several at once are done in this order.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// Let the store's time go on from the clock's, when that is behind it.
    #[serde(default)]
    rebase: bool,
    /// Show this time: ISO 8601 (`2026-01-01T00:00:00Z`).
    now: Option<String>,
    /// Move forward by this many seconds.
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

/// What the clock shows.
#[derive(Debug, Serialize)]
pub(super) struct ClockReading {
    now: String,
    mode: Mode,
    is_wall: bool,
    /// The time of the last commit: `now` is never before it.
    last_used: String,
    /// Seconds that the clock is behind it; `now` stands still for as long.
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
            "advance_s: give the seconds to move forward, such as 60 or 0.5",
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

/// The time that `now` names, which is not before `first`.
fn moved_to(text: &str, first: Timestamp) -> Result<Timestamp, Refusal> {
    match Timestamp::parse_iso(text) {
        None => Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "now: write it as 2026-01-01T00:00:00Z",
        )),
        Some(to) if to < first => Err(Refusal::new(
            StatusCode::CONFLICT,
            "the store has seen later times; send \"rebase\": true, or DELETE /state first",
        )),
        Some(to) => Ok(to),
    }
}
