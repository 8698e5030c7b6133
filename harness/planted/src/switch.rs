//! The switch: says which bug is on in this process.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Bug, find};

/// The environment variable that names the active bug.
pub const VARIABLE: &str = "SMALT_PLANTED";

/// Whether this program was built from the copy with the bugs.
pub const IS_SWITCHED: bool = cfg!(feature = "switched");

static ON: LazyLock<Option<&'static Bug>> = LazyLock::new(from_environment);
static STRUCK: AtomicU64 = AtomicU64::new(0);

/// Returns whether the bug with this name is on. The planted code calls this.
pub fn is_on(id: &str) -> bool {
    let is_it = ON.is_some_and(|bug| bug.id == id);
    if is_it {
        STRUCK.fetch_add(1, Ordering::Relaxed);
    }
    is_it
}

/// Returns how often planted code of this process found its bug on. Zero means that no check
/// reached it.
pub fn struck() -> u64 {
    STRUCK.load(Ordering::Relaxed)
}

/// Ends the process on an unknown name, which must not pass for a run without a bug.
fn from_environment() -> Option<&'static Bug> {
    let id = std::env::var(VARIABLE).ok().filter(|id| !id.is_empty())?;
    let bug = find(&id);
    if bug.is_none() {
        eprintln!("{VARIABLE}: unknown bug `{id}`; run `harness planted --list`");
        std::process::exit(2);
    }
    bug
}
