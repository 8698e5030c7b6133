//! `kill -9` at random moments, many times in a short time: kills children without sockets in the
//! middle of commits, uploads and maintenance.

use std::path::Path;

use super::content::{below, stream};
use super::files;
use super::kill::{End, Stage};
use super::mode::Mode;
use super::property::Flaw;

/// Most lines that a child logs before it is killed, two per operation. So it is killed in the
/// middle of work, whether the machine is busy or idle.
const LINES: u64 = 400;
/// Concurrent connections: enough for groups of several commits.
const CONNECTIONS: usize = 4;
/// Deaths after which a new store begins: a store grows, and everything in it is examined.
const DEATHS_PER_STORE: u64 = 20;
/// Random stream that chooses the moments.
const MOMENTS: u64 = u64::MAX - 1;

/// Results of the kills.
#[derive(Debug, Default)]
pub struct Kills {
    /// Number of children that were killed.
    pub kills: u64,
    /// Number of acknowledged operations.
    pub acknowledged: u64,
    /// Number of operations in flight.
    pub in_flight: u64,
    /// Number of payloads that were read completely afterwards.
    pub payloads: u64,
    /// Number of blobs that were examined afterwards.
    pub blobs: u64,
    /// Number of messages that were examined afterwards.
    pub messages: u64,
    /// Number of entities that were examined afterwards.
    pub entities: u64,
    /// Duration of the slowest opening, in milliseconds.
    pub open_ms_max: u64,
    /// Number of the kill, and the flaw.
    pub flaws: Vec<(u64, Flaw)>,
}

/// Kills this many children of this program; stores are created below `dir`.
pub fn kills(
    mode: Mode,
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
        let new = || Stage::new(mode, program, dir, seed + number, CONNECTIONS);
        let stage = stage.get_or_insert_with(new);
        let options = stage.next_child()?;
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
        all.flaws
            .extend(death.flaws.into_iter().map(|flaw| (number, flaw)));
        each();
    }
    Ok(all)
}
