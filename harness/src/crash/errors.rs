//! Full disks, failing syncs and short transfers, injected into a child under the shim.
//!
//! The product must meet these requirements: a write that fails is answered with a clean 5xx, and
//! so is every later one once the store is read-only; nothing hangs or panics; reads go on, unless
//! the store reports that the write was cut off; a restart with a working disk finds everything
//! that was acknowledged. Short transfers are continued.

use std::path::Path;

use super::files;
use super::kill::{End, Stage};
use super::mode::Mode;
use super::property::{Flaw, Property};
use super::shim::{self, Failure};

/// Connections of a child: a failure hits a group of commits.
const CONNECTIONS: usize = 3;
/// Operations of each connection: enough that every kind of file is written, synced and rolled.
const OPERATIONS: u64 = 16;
/// Number of the first call that fails, one child each.
const NTH: [u64; 6] = [1, 2, 4, 9, 20, 45];

/// The values of [`NTH`] that are tested over sockets.
const SOCKETS: [u64; 3] = [2, 9, 45];

/// The failures: call, ending of the path, kind.
const CASES: &[(&str, &str, &str)] = &[
    // A full disk: for the engine, for payloads, for everything.
    ("write", "/db", "enospc"),
    ("write", "/log.0", "enospc"),
    ("write", ".seg", "enospc"),
    ("open", ".seg", "enospc"),
    ("write", "", "enospc"),
    // One write that fails after later ones have succeeded: nobody else wakes the operation that
    // waits for it.
    ("write", "/db", "enospc-late"),
    // A sync that fails once, so that the contents of the disk are unknown, and one that keeps
    // failing.
    ("sync", "/db", "eio-once"),
    ("sync", "/log.0", "eio-once"),
    ("write", "/log.1", "eio-once"),
    ("sync", ".seg", "eio-once"),
    ("sync", "extents", "eio-once"),
    ("sync", "format.new", "eio-once"),
    ("sync", "", "eio"),
    ("rename", "format", "eio"),
    ("read", ".seg", "eio"),
    // Every second call transfers half of the bytes.
    ("write", "", "short"),
    ("read", "", "short"),
];

/// Results of one kind of failure.
#[derive(Debug, Default)]
pub struct Errors {
    /// Description of the failure.
    pub case: String,
    /// Number of children.
    pub children: u64,
    /// Number of acknowledged operations.
    pub acknowledged: u64,
    /// Number of operations that failed.
    pub refused: u64,
    /// Number of children whose store became read-only.
    pub read_only: u64,
    /// Number of these whose store reported that it may fail reads as well.
    pub cut_off: u64,
    /// Number of children whose store did not open, and said why.
    pub not_opened: u64,
    /// Number of the first failing call, and the flaw.
    pub flaws: Vec<(u64, Flaw)>,
}

/// Returns the number of kinds of failure.
pub fn kinds() -> usize {
    CASES.len()
}

/// Tests every kind of failure, each at several calls; stores are created below `dir`.
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
    let mut stage = Stage::new(
        Mode::Durable,
        program,
        &dir,
        seed + failure.nth,
        CONNECTIONS,
    );
    let mut options = stage.next_child()?;
    options.operations = Some(OPERATIONS);
    options.close = true;
    options.reads_fail = failure.call == "read" && failure.how == "eio";
    options.sockets = SOCKETS.contains(&failure.nth);
    let environment = shim::environment(&stage.location(), None, Some(failure))?;
    let death = stage.die(&options, &environment, End::OfItself)?;
    let mut flaws = death.flaws;
    // A child that hung is already reported.
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
            "a short transfer was treated as a failure",
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
