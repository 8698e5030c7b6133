//! Runs long work, whose length a client chooses, off the threads that serve sockets.
//!
//! A long piece of work waits for its turn, first come, first served, and then blocks a thread that
//! the runtime replaces meanwhile: connections, signals and the control endpoint continue. Work
//! that takes longer than a moment is done in several turns, so that others can run in between.
//!
//! In-process calls run on the caller's thread at once: the caller has chosen its runtime, and the
//! same requests must produce the same bytes in the same order.

mod rooms;

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use rooms::{Guest, Room, Rooms};

/// Minimum of concurrent pieces of work, smalt's own choice: with two, a long one does not block a
/// short one. On large machines the limit is half of the processors, which leaves the other half
/// for cheap requests.
const AT_ONCE_MIN: usize = 2;

/// Decides where the long work of a request runs.
#[derive(Clone, Debug, Default)]
pub struct Lane(Option<Arc<Semaphore>>);

/// The future that [`Lane::turn`] returns.
pub type Waiting = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

impl Lane {
    /// Creates a lane with its own limit; work blocks a replaceable thread.
    pub fn new() -> Self {
        Lane(Some(Arc::new(Semaphore::new(at_once()))))
    }

    /// Creates a lane that runs work on the caller's thread.
    pub fn here() -> Self {
        Lane(None)
    }

    /// Whether work leaves the caller's thread.
    pub fn is_apart(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for a turn and runs `work`.
    pub async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.turn().await;
        self.block(work)
    }

    /// Waits for a turn, which lasts until the returned value is dropped.
    pub fn turn(&self) -> Waiting {
        let permits = self.0.clone();
        Box::pin(async move { permits?.acquire_owned().await.ok() })
    }

    /// Runs `work`; the caller has a turn.
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

/// Whether the runtime can replace a blocked thread.
#[cfg(feature = "server")]
fn has_threads() -> bool {
    use tokio::runtime::{Handle, RuntimeFlavor};
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Starts more pieces of work than the runtime has threads; each ends only when another task
    /// stops it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn long_work_does_not_block_other_tasks() {
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
    async fn single_threaded_runtime_runs_work_on_its_thread() {
        let here = std::thread::current().id();
        for lane in [Lane::new(), Lane::here()] {
            let there = lane.run(|| std::thread::current().id()).await;
            assert_eq!(there, here);
        }
    }
}
