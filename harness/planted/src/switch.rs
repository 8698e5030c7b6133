//! The switch: which bug is on, on this thread or in this process.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Bug, find};

/// Names the bug that is on in the whole process.
pub const VARIABLE: &str = "SMALT_PLANTED";

thread_local! {
    static ON_THREAD: Cell<Option<&'static Bug>> = const { Cell::new(None) };
}

static IN_PROCESS: LazyLock<Option<&'static Bug>> = LazyLock::new(from_environment);
static STRUCK: AtomicU64 = AtomicU64::new(0);

/// Whether the bug of this name is on. What a planted line asks.
pub fn is_active(id: &str) -> bool {
    let Active(Some(bug)) = Active::get() else {
        return false;
    };
    let is_it = bug.id == id;
    if is_it {
        STRUCK.fetch_add(1, Ordering::Relaxed);
    }
    is_it
}

/// How often a planted line of this process was told that its bug is on: zero means that nothing
/// has come by.
pub fn struck() -> u64 {
    STRUCK.load(Ordering::Relaxed)
}

/// Switches a bug on, on this thread, until the guard is dropped.
pub fn plant(bug: &'static Bug) -> Planted {
    Active(Some(bug)).here()
}

/// A name that is none must not pass for a run without any bug.
fn from_environment() -> Option<&'static Bug> {
    let id = std::env::var(VARIABLE).ok().filter(|id| !id.is_empty())?;
    let bug = find(&id);
    if bug.is_none() {
        eprintln!("{VARIABLE}: no planted bug is called {id}; `harness planted --list` names them");
        std::process::exit(2);
    }
    bug
}

/// What is on, to be carried to another thread.
#[derive(Clone, Copy, Debug)]
pub struct Active(Option<&'static Bug>);

impl Active {
    /// What is on here.
    pub fn get() -> Self {
        Active(ON_THREAD.get().or(*IN_PROCESS))
    }

    /// The same is on, on this thread, until the guard is dropped.
    pub fn here(self) -> Planted {
        Planted {
            before: ON_THREAD.replace(self.0),
            on_this_thread: PhantomData,
        }
    }
}

/// Keeps a bug on; dropped, what was on before is on again.
#[derive(Debug)]
#[must_use = "the bug is off again when this is dropped"]
pub struct Planted {
    before: Option<&'static Bug>,
    /// Not to be sent: the switch is this thread's.
    on_this_thread: PhantomData<*const ()>,
}

impl Drop for Planted {
    fn drop(&mut self) {
        ON_THREAD.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ONE: Bug = Bug {
        id: "one",
        place: "",
        wrong: "",
        source: "",
        caught_by: &[],
    };
    static OTHER: Bug = Bug { id: "other", ..ONE };

    #[test]
    fn a_bug_is_on_while_it_is_planted_and_on_its_thread_alone() {
        assert!(!is_active("one"));
        let before = struck();
        {
            let _one = plant(&ONE);
            assert!(is_active("one") && !is_active("other"));
            {
                let _other = plant(&OTHER);
                assert!(is_active("other") && !is_active("one"));
            }
            assert!(is_active("one") && !is_active("other"));
            let elsewhere = std::thread::spawn(|| is_active("one"));
            assert!(!elsewhere.join().unwrap());
            let active = Active::get();
            let carried = std::thread::spawn(move || {
                let _here = active.here();
                is_active("one")
            });
            assert!(carried.join().unwrap());
        }
        assert!(!is_active("one"));
        assert!(struck() >= before + 4);
    }
}
