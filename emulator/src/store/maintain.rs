//! Maintenance: returns unreferenced space to the disk. The owner of the store calls it from time
//! to time; each call is bounded.
//!
//! Bytes of a segment are garbage when neither a live payload nor a reservation contains them:
//! freed payloads, stagings that no commit took, stagings of a killed process. A sealed segment
//! without live payloads is deleted; one that is mostly garbage has its payloads moved first.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::error::{StoreError, StoreResult};
use super::extents::{Reservation, Sweep, framed_bytes};
use super::failpoint;
use super::handle::{Inner, Store};
use super::home::Purpose;
use super::keys;
use super::payload::{
    Extent, Location, Payload, PayloadId, enter_segment, leave_segment, location, number_at,
};
use super::shared::Shared;
use super::staging::Place;
use super::view::{Transaction, View};

/// Most payloads moved in one commit.
const MOVES_MAX: usize = 64;
/// Most bytes moved in one commit, so that it takes no longer than a few uploads.
const MOVE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The result of [`super::Store::maintain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintainReport {
    /// Payloads moved out of segments that were mostly garbage.
    pub payloads_moved: usize,
    /// Bytes of the moved payloads.
    pub bytes_moved: u64,
    /// Segments deleted.
    pub segments_removed: usize,
    /// Bytes returned to the disk.
    pub bytes_freed: u64,
    /// Payloads that were not moved because their bytes are damaged.
    pub payloads_damaged: usize,
    /// Records of deleted or expired resources that were removed.
    pub records_reaped: usize,
    /// Whether work is left because the budget was used up.
    pub more: bool,
}

impl MaintainReport {
    fn steps(&self) -> usize {
        self.payloads_moved + self.segments_removed
    }
}

/// How to treat a segment.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    Compact,
    Remove,
}

/// A payload that was copied to its new place and waits for the commit.
struct Move {
    id: PayloadId,
    from: Extent,
    to: Extent,
    reservation: Reservation,
}

impl Store {
    /// Runs at most `budget` steps of background work and blocks meanwhile: moving a payload or
    /// removing a segment is one step.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn maintain(&self, budget: usize) -> StoreResult<MaintainReport> {
        let store = &*self.0;
        let mut damaged = store.damaged().lock();
        let mut report = MaintainReport::default();
        let shared = store.shared();
        shared.writable()?;
        if shared.unexplained().is_some() {
            return Ok(report);
        }
        for sweep in shared.extents.sweep() {
            loop {
                let verdict = judge(shared, &sweep)?;
                if verdict == Verdict::Keep {
                    break;
                }
                if report.steps() >= budget {
                    report.more = true;
                    return Ok(report);
                }
                let more = match verdict {
                    Verdict::Remove => {
                        remove(store, &sweep, &mut report)?;
                        false
                    }
                    _ => {
                        let room = budget - report.steps();
                        match compact(store, &sweep, room, &mut damaged, &mut report) {
                            // There is no room for the copies: another segment may free some.
                            Err(StoreError::Refused(_)) => false,
                            moved => moved?,
                        }
                    }
                };
                if !more {
                    break;
                }
            }
        }
        report.payloads_damaged = damaged.len();
        Ok(report)
    }
}

fn judge(shared: &Shared, sweep: &Sweep) -> StoreResult<Verdict> {
    let number = sweep.segment.number();
    let live = shared.read(|view| number_at(view, &keys::segment(number)))?;
    let garbage = sweep.size.saturating_sub(live + sweep.reserved);
    let active = shared.extents.is_active(number);
    Ok(match (live, garbage) {
        // Seals the active segment only to remove it.
        (0, _) if sweep.reserved == 0 && (sweep.size > 0 || !active) => Verdict::Remove,
        _ if active => Verdict::Keep,
        // At least half is garbage, so that a byte is moved at most once per freed byte.
        (1.., garbage) if garbage >= sweep.size.div_ceil(2) => Verdict::Compact,
        _ => Verdict::Keep,
    })
}

fn remove(store: &Inner, sweep: &Sweep, report: &mut MaintainReport) -> StoreResult<()> {
    let shared = store.shared();
    let number = sweep.segment.number();
    shared.extents.seal(number);
    failpoint::reach("maintain.sealed");
    let retired = shared.read(|view| {
        let is_dead = || Ok(number_at(view, &keys::segment(number))? == 0);
        shared.extents.retire(&sweep.segment, is_dead)
    })?;
    if retired {
        failpoint::reach("maintain.retired");
        // Its payloads are dead or moved: a crash must not restore a state in which they are here.
        store.write_out()?;
        shared.extents.delete(&sweep.segment)?;
        failpoint::reach("maintain.deleted");
        report.segments_removed += 1;
        report.bytes_freed += sweep.size;
    }
    Ok(())
}

/// Moves some payloads out of a segment. Returns whether any were moved.
fn compact(
    store: &Inner,
    sweep: &Sweep,
    room: usize,
    damaged: &mut BTreeSet<PayloadId>,
    report: &mut MaintainReport,
) -> StoreResult<bool> {
    let number = sweep.segment.number();
    let mut moves = Vec::new();
    let mut bytes = 0;
    for (id, from, payload) in live_payloads(store.shared(), number, room, damaged)? {
        match copy(store, id, from, &payload) {
            Ok(moved) => moves.push(moved),
            Err(StoreError::Corrupt(cause)) => {
                tracing::error!(payload = id.0, %cause, "a payload is damaged and was not moved");
                damaged.insert(id);
                continue;
            }
            Err(error) => return Err(error),
        }
        bytes += from.len;
        if bytes >= MOVE_BYTES_MAX {
            break;
        }
    }
    if moves.is_empty() {
        return Ok(false);
    }
    failpoint::reach("maintain.copied");
    report.payloads_moved += moves.len();
    report.bytes_moved += bytes;
    store.commit_blocking(move |tx| moves.into_iter().try_for_each(|moved| rewrite(tx, moved)))?;
    failpoint::reach("maintain.moved");
    Ok(true)
}

fn live_payloads(
    shared: &Shared,
    number: u64,
    room: usize,
    damaged: &BTreeSet<PayloadId>,
) -> StoreResult<Vec<(PayloadId, Extent, Payload)>> {
    let (from, to) = (
        keys::segment_payload(number, PayloadId(0)),
        keys::segment_payload(number + 1, PayloadId(0)),
    );
    shared.read(|view| {
        let mut ids = Vec::new();
        view.scan(&from, &to, &mut |key, _| {
            let id = keys::payload_of(key).filter(|id| !damaged.contains(id));
            ids.extend(id);
            if ids.len() < room.min(MOVES_MAX) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        let mut found = Vec::new();
        for id in ids {
            if let Some(Location::Extent(at)) = Location::read(view, id)? {
                found.push((id, at, location(view, id)?));
            }
        }
        Ok(found)
    })
}

fn copy(store: &Inner, id: PayloadId, from: Extent, payload: &Payload) -> StoreResult<Move> {
    let mut writer = store.stage(from.len, Purpose::Frees)?;
    let mut reader = payload.reader(0..from.len);
    while let Some(chunk) = reader.next_chunk()? {
        writer.write(&chunk)?;
    }
    match writer.finish_unsynced()?.place {
        Place::Extent(reservation) => Ok(Move {
            id,
            from,
            to: Extent {
                segment: reservation.segment().number(),
                offset: reservation.offset(),
                len: from.len,
            },
            reservation,
        }),
        Place::Inline(_) => Err(StoreError::Corrupt(format!(
            "payload {} of {} bytes is in an extent",
            id.0,
            framed_bytes(from.len)
        ))),
    }
}

fn rewrite(tx: &mut Transaction<'_>, moved: Move) -> StoreResult<()> {
    // The payload may have been released since; then the copy is garbage.
    if Location::read(tx, moved.id)? != Some(Location::Extent(moved.from)) {
        return Ok(());
    }
    leave_segment(tx, moved.id, moved.from)?;
    enter_segment(tx, moved.id, moved.to)?;
    let record = Location::Extent(moved.to).encode();
    tx.put(keys::location(moved.id), record);
    tx.hold(moved.reservation);
    Ok(())
}
