//! Work whose length a client chooses, off the threads that serve sockets.
//!
//! A long piece of work waits for its turn, first come, first served, and then blocks a thread that
//! the runtime replaces meanwhile: connections, signals and the control endpoint go on. Work that
//! goes on for longer than a moment is done in turns, so that others come in between.
//!
//! What is asked in process runs where it is asked, at once: the caller has chosen its runtime, and
//! the same requests lead to the same bytes in the same order.

mod rooms;

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use rooms::{Guest, Room, Rooms};

/// Pieces of work at once, at least: ours. A second one, so that a long one does not keep a short
/// one waiting. On large machines half of the processors, so that the other half is there for the
/// requests that cost nothing.
const AT_ONCE_MIN: usize = 2;

/// Where the long work of a request runs.
#[derive(Clone, Debug, Default)]
pub struct Lane(Option<Arc<Semaphore>>);

/// Waits for a turn.
pub type Waiting = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

impl Lane {
    /// A lane of its own.
    pub fn new() -> Self {
        Lane(Some(Arc::new(Semaphore::new(at_once()))))
    }

    /// Where the caller is.
    pub fn here() -> Self {
        Lane(None)
    }

    /// Whether work leaves the thread of its caller.
    pub fn is_apart(&self) -> bool {
        self.0.is_some()
    }

    /// Does a piece of work in its turn.
    pub async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.turn().await;
        self.block(work)
    }

    /// Waits for a turn. It ends when what it comes to is dropped.
    pub fn turn(&self) -> Waiting {
        let permits = self.0.clone();
        Box::pin(async move { permits?.acquire_owned().await.ok() })
    }

    /// Does a piece of work whose turn has come.
    pub fn block<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "server")]
        if self.is_apart() && has_threads() {
            return tokio::task::block_in_place(work);
        }
        work()
    }
}

fn at_once() -> usize {
    let processors = std::thread::available_parallelism();
    processors.map_or(0, |all| all.get() / 2).max(AT_ONCE_MIN)
}

/// Whether the runtime can replace a thread that is blocked.
#[cfg(feature = "server")]
fn has_threads() -> bool {
    use tokio::runtime::{Handle, RuntimeFlavor};
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// More pieces of work than the runtime has threads, each of which ends when it is told to by
    /// what runs besides.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn long_work_leaves_the_threads_to_others() {
        let lane = Lane::new();
        let mut stops = Vec::new();
        let mut done = Vec::new();
        for _ in 0..2 * at_once() {
            let (stop, stopped) = mpsc::channel::<()>();
            let lane = lane.clone();
            stops.push(stop);
            done.push(tokio::spawn(async move {
                lane.run(move || stopped.recv()).await.unwrap();
            }));
        }
        for stop in stops {
            let others = tokio::spawn(async move { stop.send(()) });
            others.await.unwrap().unwrap();
        }
        for done in done {
            done.await.unwrap();
        }
    }

    #[tokio::test]
    async fn work_of_a_runtime_with_one_thread_runs_there() {
        let here = std::thread::current().id();
        for lane in [Lane::new(), Lane::here()] {
            let there = lane.run(|| std::thread::current().id()).await;
            assert_eq!(there, here);
        }
    }
}
