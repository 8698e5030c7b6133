//! `kill -9` at random moments, many times in a short time: children without sockets, in the middle
//! of commits, uploads and maintenance.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::content::{below, stream};
use super::files;
use super::kill::{End, Stage};
use super::property::Flaw;

/// How long a child works before it is killed, in microseconds.
const WORK_US: std::ops::Range<u64> = 0..120_000;
/// Connections at once: groups of several commits.
const CONNECTIONS: usize = 4;
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
    /// The slowest opening, in milliseconds.
    pub open_ms_max: u64,
    /// What does not hold, with the number of the kill.
    pub flaws: Vec<(u64, Flaw)>,
}

/// Kills so many children of this program; stores are made below `dir`.
///
/// # Errors
/// When a child cannot be started, or files cannot be read and written.
pub fn kills(
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
            Stage::new(
                program.to_owned(),
                PathBuf::from(dir),
                seed + number,
                CONNECTIONS,
            )
        });
        let options = stage.next()?;
        let after = WORK_US.start + below(&mut moments, WORK_US.end - WORK_US.start);
        let death = stage.die(
            &options,
            &[],
            End::KilledAfter(Duration::from_micros(after)),
        )?;
        all.kills += 1;
        all.acknowledged += death.told.acknowledged;
        all.in_flight += death.in_flight;
        all.payloads += death.examined.payloads;
        all.blobs += death.examined.blobs;
        all.messages += death.examined.messages;
        all.open_ms_max = all.open_ms_max.max(death.examined.open_ms);
        all.flaws
            .extend(death.flaws.into_iter().map(|flaw| (number, flaw)));
        each();
    }
    Ok(all)
}
