//! Deaths at every named step of the store, several for each step.

use std::path::Path;

use smalt::store::failpoint::POINTS;

use super::files;
use super::kill::{Death, End, Stage, run};
use super::mode::Mode;
use super::property::{Flaw, Property};

/// Most operations of a child, in case the step does not kill it.
const OPERATIONS: u64 = 120;
/// Operations before the death, so that there is something to lose.
const BEFORE: u64 = 25;
/// Number of the pass through the step that dies.
const NTH: [u64; 4] = [1, 2, 7, 30];
/// Prefixes of steps through which a process passes once.
const ONCE: [&str; 4] = ["open.", "recover.", "reset.", "close."];

/// Results of one step.
#[derive(Debug, Default)]
pub struct Visits {
    /// Name of the step.
    pub point: String,
    /// Number of deaths there.
    pub deaths: u64,
    /// Number of acknowledged operations.
    pub acknowledged: u64,
    /// Number of operations in flight.
    pub in_flight: u64,
    /// Properties that do not hold.
    pub flaws: Vec<Flaw>,
}

/// Returns the number of steps.
pub fn points() -> usize {
    POINTS.len()
}

/// Dies at every step; stores are created below `dir`.
pub fn failpoints(
    program: &Path,
    dir: &Path,
    seed: u64,
    each: &dyn Fn(),
) -> std::io::Result<Vec<Visits>> {
    let mut all = Vec::new();
    for point in POINTS {
        let mut visits = Visits {
            point: (*point).to_owned(),
            ..Visits::default()
        };
        let is_once = ONCE.iter().any(|kind| point.starts_with(kind));
        for nth in NTH {
            if is_once && nth > 1 {
                break;
            }
            visit(program, dir, seed, (point, nth), &mut visits)?;
        }
        if visits.deaths == 0 {
            let text = "no child reached this step: nothing is proved about it";
            visits.flaws.push(Flaw::new(Property::C6, text));
        }
        all.push(visits);
        each();
    }
    Ok(all)
}

fn visit(
    program: &Path,
    dir: &Path,
    seed: u64,
    (point, nth): (&str, u64),
    visits: &mut Visits,
) -> std::io::Result<()> {
    files::remove(dir)?;
    files::make_dir(dir)?;
    let mut stage = Stage::new(Mode::Durable, program, dir, seed + nth, 1);
    // A new store begins once, so nothing can precede that death.
    if !matches!(point, "open.begun" | "open.engine_begun") {
        let mut before = stage.next_child()?;
        before.operations = Some(BEFORE);
        let death = stage.die(&before, &[], End::OfItself)?;
        note(visits, death);
    }
    if point.starts_with("recover.") {
        damage(&stage.location())?;
    }
    let mut options = stage.next_child()?;
    options.operations = Some(OPERATIONS);
    options.close = true;
    options.maintain_every = 4;
    // Only a store that nobody has opened since its death has something in its log.
    if point.starts_with("open.log_") {
        options.failpoint = Some(format!("commit.synced:{BEFORE}"));
        run(program, &options, &[], End::OfItself)?;
    }
    options.failpoint = Some(format!("{point}:{nth}"));
    if point.starts_with("reset.") {
        options.reset_after = Some(BEFORE);
    }
    let death = stage.die(&options, &[], End::OfItself)?;
    if !death.told.ended && death.status.is_some_and(|status| !status.success()) {
        visits.deaths += 1;
    }
    note(visits, death);
    // The store must still work.
    let mut after = stage.next_child()?;
    after.operations = Some(BEFORE);
    let death = stage.die(&after, &[], End::OfItself)?;
    if !death.told.ended {
        let text = format!("the next child did not end: {}", death.said);
        visits.flaws.push(Flaw::new(Property::C6, text));
    }
    note(visits, death);
    Ok(())
}

fn note(visits: &mut Visits, death: Death) {
    visits.acknowledged += death.told.acknowledged;
    visits.in_flight += death.in_flight;
    visits.flaws.extend(death.flaws);
}

/// Causes a damage from which recovery is known: an engine with empty snapshots.
fn damage(store: &Path) -> std::io::Result<()> {
    for engine in files::dirs_in(store)? {
        for file in files::files_in(&engine)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("snap.") {
                files::write(&file, &[])?;
            }
        }
    }
    Ok(())
}
