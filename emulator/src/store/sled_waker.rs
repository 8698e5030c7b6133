//! Wakes whoever waits in sled for a write that has failed.
//!
//! sled writes on threads of its own, and whoever needs a write to be done waits for a signal. When
//! the write of a batch's first record fails (`Log::exit_reservation` of sled 0.34), the error is
//! noted and the signal is not given: the waiter waits until somebody else comes to sled. On a full
//! disk nobody does, for the committer is that waiter. So a thread here looks while anything is not
//! written, and asks sled for a flush once it has noted an error: that fails at once, and signals.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks while something is unwritten. A failed write is answered so much later at
/// most; a look takes a load of one word.
const LOOK: Duration = Duration::from_millis(50);

/// The thread, and what it is told.
pub(super) struct Waker {
    told: Arc<Told>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Told {
    /// Something was handed to sled that no flush has been seen to end of.
    is_unwritten: AtomicBool,
    /// The thread looks at nothing until it is unparked.
    is_asleep: AtomicBool,
    is_over: AtomicBool,
}

impl Waker {
    /// Starts to watch over this sled, which is kept open until the watch ends.
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

    /// Something is about to be written.
    pub(super) fn unwritten(&self) {
        self.told.is_unwritten.store(true, Ordering::SeqCst);
        if self.told.is_asleep.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    /// All of it is written.
    pub(super) fn written(&self) {
        self.told.is_unwritten.store(false, Ordering::SeqCst);
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Ends the watch.
impl Drop for Waker {
    fn drop(&mut self) {
        self.told.is_over.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // It catches its panics.
            let _ = thread.join();
        }
    }
}

fn watch(db: &sled::Db, told: &Told) {
    while !told.is_over.load(Ordering::SeqCst) {
        if told.is_unwritten.load(Ordering::SeqCst) {
            thread::park_timeout(LOOK);
            // An error stays, and whoever comes to wait from now on sees it: one signal is enough.
            if db.context.global_error().is_err() && wake(db) {
                return;
            }
            continue;
        }
        told.is_asleep.store(true, Ordering::SeqCst);
        // It may have been told between the two.
        if !told.is_unwritten.load(Ordering::SeqCst) && !told.is_over.load(Ordering::SeqCst) {
            thread::park();
        }
        told.is_asleep.store(false, Ordering::SeqCst);
    }
}

/// Whether everybody who waits was told. A flush fails before it waits when there is an error.
fn wake(db: &sled::Db) -> bool {
    !matches!(catch_unwind(AssertUnwindSafe(|| db.flush())), Ok(Ok(_)))
}
