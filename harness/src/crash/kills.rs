//! `kill -9` at random moments, many times in a short time: children without sockets, in the middle
//! of commits, uploads and maintenance.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::ChildOptions;
use super::content::{below, stream};
use super::files;
use super::kill::{End, Stage};
use super::promise::{Lost, Promise};
use super::property::Flaw;

/// Lines that a child tells before it is killed: two an operation. On a busy machine as on an idle
/// one it is killed in the middle of work.
const LINES: u64 = 400;
/// Connections at once: groups of several commits.
const CONNECTIONS: usize = 4;
/// Most that a connection waits between two operations, in some of the children whose store may
/// lose an interval: they live for several of them then, with no more to look at.
const PAUSE_MS: u64 = 20;
/// Operations before a child has nothing to do: maintenance is the last of them.
const BEFORE_IDLE: u64 = 8;
/// A store is left behind after so many deaths: it grows, and everything in it is looked at.
const DEATHS_PER_STORE: u64 = 20;
/// The stream that chooses the moments.
const MOMENTS: u64 = u64::MAX - 1;

/// What came of the kills.
#[derive(Debug, Default, Serialize)]
pub struct Kills {
    /// Children that were killed.
    pub kills: u64,
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Operations that were under way.
    pub in_flight: u64,
    /// Payloads that were read to their end afterwards.
    pub payloads: u64,
    /// Blobs that were looked at afterwards.
    pub blobs: u64,
    /// Messages that were looked at afterwards.
    pub messages: u64,
    /// Entities that were looked at afterwards.
    pub entities: u64,
    /// The slowest opening, in milliseconds.
    pub open_ms_max: u64,
    /// What the kills took of what had been acknowledged.
    pub lost: Lost,
    /// What does not hold, with the number of the kill.
    pub flaws: Vec<(u64, Flaw)>,
}

/// Kills so many children of this program; stores are made below `dir`.
///
/// # Errors
/// When a child cannot be started, or files cannot be read and written.
pub fn kills(
    promise: Promise,
    program: &Path,
    dir: &Path,
    seed: u64,
    count: u64,
    each: &dyn Fn(),
) -> std::io::Result<Kills> {
    let mut all = Kills::default();
    let mut moments = stream(seed, 0, MOMENTS);
    let mut stage = None;
    for number in 1..=count {
        if (number - 1).is_multiple_of(DEATHS_PER_STORE) {
            files::remove(dir)?;
            files::make_dir(dir)?;
            stage = None;
        }
        let stage = stage.get_or_insert_with(|| {
            Stage::promising(
                promise,
                program.to_owned(),
                PathBuf::from(dir),
                seed + number,
                CONNECTIONS,
            )
        });
        let mut options = stage.next_child()?;
        if promise == Promise::Fast {
            slow_down(&mut options, number);
        }
        let lines = usize::try_from(below(&mut moments, LINES)).unwrap_or_default();
        let death = stage.die(&options, &[], End::KilledAfter(lines))?;
        all.kills += 1;
        all.acknowledged += death.told.acknowledged;
        all.in_flight += death.in_flight;
        all.payloads += death.examined.payloads;
        all.blobs += death.examined.blobs;
        all.messages += death.examined.messages;
        all.entities += death.examined.entities;
        all.open_ms_max = all.open_ms_max.max(death.examined.open_ms);
        all.lost.add(death.examined.lost);
        all.flaws
            .extend(death.flaws.into_iter().map(|flaw| (number, flaw)));
        each();
    }
    Ok(all)
}

/// A store that writes now and then is killed at work, at leisurely work, and when it has nothing
/// to do: what is new is written by a later commit, or after an interval.
fn slow_down(options: &mut ChildOptions, number: u64) {
    match number % 3 {
        0 => options.pause_ms = PAUSE_MS,
        1 => {
            options.operations = Some(BEFORE_IDLE);
            options.maintain_every = BEFORE_IDLE;
            options.idle = true;
        }
        _ => {}
    }
}
