//! Passes commits to the committer: inline, through its threads, or in steps that a test chooses.

use std::sync::Arc;

use super::commit::Work;
use super::committer::{Committer, Line, Request};
use super::config::{Mode, StoreConfig};
use super::error::{StoreError, StoreResult};
use super::shared::Shared;
#[cfg(any(test, feature = "schedule"))]
use super::stepped::Stepped;
use super::sync::{IS_CHECKED, Mutex, RwLock, mpsc, thread};

/// How commits reach the committer.
pub(super) enum Dispatch {
    Inline(Mutex<Committer>),
    Thread {
        /// Taken by the close, so that its request is the last one.
        requests: RwLock<Option<mpsc::Sender<Request>>>,
        /// The two of the committer, and the one that drains.
        threads: Mutex<Vec<thread::JoinHandle<()>>>,
        shared: Arc<Shared>,
    },
    #[cfg(any(test, feature = "schedule"))]
    Stepped(Stepped),
}

impl Dispatch {
    pub(super) fn start(config: &StoreConfig, committer: Committer) -> std::io::Result<Self> {
        #[cfg(any(test, feature = "schedule"))]
        if config.stepped {
            return Ok(Dispatch::Stepped(Stepped::new(committer)));
        }
        if config.mode == Mode::Memory && !IS_CHECKED {
            return Ok(Dispatch::Inline(Mutex::new(committer)));
        }
        let (requests, waiting) = mpsc::channel();
        let (drainer, woken) = mpsc::channel();
        let shared = committer.shared();
        *shared.drainer.lock() = Some(drainer);
        let line = Arc::new(Line::new(committer, waiting));
        let (other, drained) = (Arc::clone(&line), Arc::clone(&shared));
        let drain = move || {
            while woken.recv().is_ok() {
                // A failure has stopped the writes; without room a later turn tries again.
                let _ = drained.drain();
            }
        };
        let threads = vec![
            start("smalt-commit", move || line.serve())?,
            start("smalt-commit", move || other.serve())?,
            start("smalt-drain", drain)?,
        ];
        Ok(Dispatch::Thread {
            requests: RwLock::new(Some(requests)),
            threads: Mutex::new(threads),
            shared,
        })
    }

    /// Passes a commit to the committer; a closed store answers at once.
    pub(super) fn submit(&self, work: Box<dyn Work>) {
        match self {
            Dispatch::Inline(committer) => committer.lock().run(vec![work]),
            Dispatch::Thread { requests, .. } => {
                let refused = match &*requests.read() {
                    Some(requests) => requests.send(Request::Commit(work)).err(),
                    None => Some(mpsc::SendError(Request::Commit(work))),
                };
                if let Some(mpsc::SendError(Request::Commit(work))) = refused {
                    work.answer(Err(StoreError::Closed));
                }
            }
            #[cfg(any(test, feature = "schedule"))]
            Dispatch::Stepped(stepped) => stepped.submit(work),
        }
    }

    /// Stops the committer after the waiting commits. Fails when not everything is durable.
    pub(super) fn close(&self) -> StoreResult<()> {
        match self {
            Dispatch::Inline(committer) => {
                // Waits for a commit that runs on another thread.
                drop(committer.lock());
                Ok(())
            }
            Dispatch::Thread {
                requests,
                threads,
                shared,
            } => {
                let last = requests.write().take();
                let synced = ask(last.as_ref(), Request::Close).and_then(answer_of);
                shared.drainer.lock().take();
                let threads = std::mem::take(&mut *threads.lock());
                for thread in threads {
                    if thread.thread().id() != thread::current().id() {
                        // The threads have nothing left to do.
                        let _ = thread.join();
                    }
                }
                synced
            }
            #[cfg(any(test, feature = "schedule"))]
            Dispatch::Stepped(stepped) => stepped.close(),
        }
    }
}

fn start(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

pub(super) type Asked = mpsc::Receiver<StoreResult<()>>;

/// Sends a request to the committer, and waits for the answer without holding a lock.
pub(super) fn ask(
    requests: Option<&mpsc::Sender<Request>>,
    request: impl FnOnce(mpsc::SyncSender<StoreResult<()>>) -> Request,
) -> StoreResult<Asked> {
    let (sender, answer) = mpsc::sync_channel(1);
    let sent = requests.ok_or(StoreError::Closed)?.send(request(sender));
    sent.map_err(|_| StoreError::Closed)?;
    Ok(answer)
}

pub(super) fn answer_of(asked: Asked) -> StoreResult<()> {
    asked.recv().map_err(|_| StoreError::Closed)?
}
