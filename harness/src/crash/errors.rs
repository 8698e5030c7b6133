//! Full disks, failing syncs and short transfers, injected into a child under the shim.
//!
//! Required of the product: a write that failed is answered with a clean 5xx, and so is every one
//! after it once the store takes no more; nothing hangs or panics; reads go on, unless the store
//! says that the write was cut off; a restart with a disk that works finds everything that was
//! acknowledged. Short transfers are gone on with.

use std::path::Path;

use serde::Serialize;

use super::files;
use super::kill::{End, Stage};
use super::property::{Flaw, Property};
use super::shim::{self, Failure};

/// Connections of a child: what fails, fails for a group of commits.
const CONNECTIONS: usize = 3;
/// Operations of each: enough that every kind of file is written, synced and rolled.
const OPERATIONS: u64 = 16;
/// The first call that fails, one child each.
const NTH: [u64; 6] = [1, 2, 4, 9, 20, 45];

/// Those of [`NTH`] that are met over sockets.
const SOCKETS: [u64; 3] = [2, 9, 45];

/// What fails: call, ending of the path, how.
const CASES: &[(&str, &str, &str)] = &[
    // A full disk: for the engine, for payloads, for everything.
    ("write", "/db", "enospc"),
    ("write", ".seg", "enospc"),
    ("open", ".seg", "enospc"),
    ("write", "", "enospc"),
    // One write, when those after it are done: whoever waits for it has nobody else to wake it.
    ("write", "/db", "enospc-late"),
    // A sync that fails once, which makes it unknown what is on disk, and one that goes on failing.
    ("sync", "/db", "eio-once"),
    ("sync", ".seg", "eio-once"),
    ("sync", "extents", "eio-once"),
    ("sync", "format.new", "eio-once"),
    ("sync", "", "eio"),
    ("rename", "format", "eio"),
    ("read", ".seg", "eio"),
    // Half of what was asked, every second time.
    ("write", "", "short"),
    ("read", "", "short"),
];

/// What came of one kind of failure.
#[derive(Debug, Default, Serialize)]
pub struct Errors {
    /// The kind.
    pub case: String,
    /// Children.
    pub children: u64,
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Operations that were refused.
    pub refused: u64,
    /// Children whose store came to take no more writes.
    pub read_only: u64,
    /// Of these, children whose store said that it may refuse reads as well.
    pub cut_off: u64,
    /// Children whose store did not open, and said why.
    pub not_opened: u64,
    /// What does not hold: the first failing call, the flaw.
    pub flaws: Vec<(u64, Flaw)>,
}

/// How many kinds there are.
pub fn kinds() -> usize {
    CASES.len()
}

/// Every kind of failure, each at several calls; stores are made below `dir`.
///
/// # Errors
/// When the shim is not there, or a child cannot be started.
pub fn errors(
    program: &Path,
    dir: &Path,
    seed: u64,
    each: &dyn Fn(),
) -> anyhow::Result<Vec<Errors>> {
    let mut all = Vec::new();
    for (call, ending, how) in CASES {
        let mut errors = Errors {
            case: format!("{call} of *{ending}: {how}"),
            ..Errors::default()
        };
        for nth in NTH {
            let failure = Failure {
                call,
                ending,
                nth,
                how,
            };
            one(program, dir, seed, &failure, &mut errors)?;
        }
        all.push(errors);
        each();
    }
    Ok(all)
}

fn one(
    program: &Path,
    dir: &Path,
    seed: u64,
    failure: &Failure,
    errors: &mut Errors,
) -> anyhow::Result<()> {
    files::remove(dir)?;
    files::make_dir(dir)?;
    let dir = std::path::absolute(dir)?;
    let mut stage = Stage::new(program.to_owned(), dir, seed + failure.nth, CONNECTIONS);
    let mut options = stage.next_child()?;
    options.operations = Some(OPERATIONS);
    options.close = true;
    options.reads_fail = failure.call == "read" && failure.how == "eio";
    options.sockets = SOCKETS.contains(&failure.nth);
    let environment = shim::environment(&stage.location(), None, Some(failure))?;
    let death = stage.die(&options, &environment, End::OfItself)?;
    let mut flaws = death.flaws;
    // One that hung has been found already.
    if let Some(status) = death.status
        && death.told.cannot_open.is_none()
        && !death.told.ended
    {
        let text = format!("the child died ({status}): {}", death.said);
        flaws.push(Flaw::new(Property::C6, text));
    }
    if failure.how == "short" && (death.told.refused > 0 || death.told.cannot_open.is_some()) {
        flaws.push(Flaw::new(
            Property::C1,
            "a short transfer was taken for a failure",
        ));
    }
    errors.children += 1;
    errors.acknowledged += death.told.acknowledged;
    errors.refused += death.told.refused;
    errors.read_only += u64::from(death.told.read_only);
    errors.cut_off += u64::from(death.told.cut_off);
    errors.not_opened += u64::from(death.told.cannot_open.is_some());
    errors
        .flaws
        .extend(flaws.into_iter().map(|flaw| (failure.nth, flaw)));
    Ok(())
}
