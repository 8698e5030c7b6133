//! Wakes threads that wait in sled for a write that has failed.
//!
//! sled writes on its own threads, and a caller that needs a write to finish waits for a signal.
//! When the write of a batch's first record fails (`Log::exit_reservation` of sled 0.34), sled
//! records the error but does not send the signal: the caller waits until another one calls sled.
//! On a full disk there is no other one, because the committer is the caller. So a thread here
//! checks while anything is unwritten, and asks sled for a flush once it has recorded an error:
//! that fails at once, and sends the signal.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between checks while something is unwritten, and so the longest delay of a failed
/// write's answer. A check loads one word.
const LOOK: Duration = Duration::from_millis(50);

/// The checking thread and its shared state.
pub(super) struct Waker {
    told: Arc<Told>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Told {
    /// sled has writes that no flush has finished yet.
    is_unwritten: AtomicBool,
    /// The thread is parked, or about to park.
    is_asleep: AtomicBool,
    is_over: AtomicBool,
}

impl Waker {
    /// Starts the thread, which keeps sled open until it ends.
    pub(super) fn start(db: sled::Db) -> std::io::Result<Self> {
        let told = Arc::new(Told::default());
        let seen = Arc::clone(&told);
        let thread = thread::Builder::new()
            .name("smalt-wake".to_owned())
            .spawn(move || watch(&db, &seen))?;
        Ok(Waker {
            told,
            thread: Some(thread),
        })
    }

    /// Marks the start of a write.
    pub(super) fn unwritten(&self) {
        self.told.is_unwritten.store(true, Ordering::SeqCst);
        if self.told.is_asleep.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    /// Marks the end of all writes.
    pub(super) fn written(&self) {
        self.told.is_unwritten.store(false, Ordering::SeqCst);
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Ends the thread.
impl Drop for Waker {
    fn drop(&mut self) {
        self.told.is_over.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // The thread catches its panics.
            let _ = thread.join();
        }
    }
}

fn watch(db: &sled::Db, told: &Told) {
    while !told.is_over.load(Ordering::SeqCst) {
        if told.is_unwritten.load(Ordering::SeqCst) {
            thread::park_timeout(LOOK);
            // The error stays, and later callers see it at once, so one signal is enough.
            if db.context.global_error().is_err() && wake(db) {
                return;
            }
            continue;
        }
        told.is_asleep.store(true, Ordering::SeqCst);
        // The state may have changed before `is_asleep` was set.
        if !told.is_unwritten.load(Ordering::SeqCst) && !told.is_over.load(Ordering::SeqCst) {
            thread::park();
        }
        told.is_asleep.store(false, Ordering::SeqCst);
    }
}

/// Returns whether all waiting threads were woken. After an error a flush fails before it waits.
fn wake(db: &sled::Db) -> bool {
    !matches!(catch_unwind(AssertUnwindSafe(|| db.flush())), Ok(Ok(_)))
}
