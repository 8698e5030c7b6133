//! The switch: which bug is on, on this thread or in this process.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Bug;

thread_local! {
    static ON_THREAD: Cell<Option<&'static Bug>> = const { Cell::new(None) };
}

static IN_PROCESS: OnceLock<&'static Bug> = OnceLock::new();
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

/// Switches a bug on in the whole process, for good.
///
/// # Errors
/// The bug that is on already.
pub fn plant_in_process(bug: &'static Bug) -> Result<(), &'static Bug> {
    match IN_PROCESS.set(bug) {
        Ok(()) => Ok(()),
        Err(_) => Err(IN_PROCESS.get().copied().unwrap_or(bug)),
    }
}

/// What is on, to be carried to another thread.
#[derive(Clone, Copy, Debug)]
pub struct Active(Option<&'static Bug>);

impl Active {
    /// What is on here.
    pub fn get() -> Self {
        Active(ON_THREAD.get().or_else(|| IN_PROCESS.get().copied()))
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
