//! Passes commits to the committer: inline, through its thread, or in steps that a test chooses.

use super::commit::Work;
use super::committer::{Committer, Request};
use super::config::{Mode, StoreConfig};
use super::error::{StoreError, StoreResult};
#[cfg(any(test, feature = "schedule"))]
use super::stepped::Stepped;
use super::sync::{IS_CHECKED, Mutex, RwLock, mpsc, thread};

/// How commits reach the committer.
#[cfg_attr(
    feature = "shuttle",
    expect(
        clippy::large_enum_variant,
        reason = "the model checker's locks are large"
    )
)]
pub(super) enum Dispatch {
    Inline(Mutex<Committer>),
    Thread {
        /// Taken by the close, so that its request is the last one.
        requests: RwLock<Option<mpsc::Sender<Request>>>,
        thread: Mutex<Option<thread::JoinHandle<()>>>,
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
        let thread = thread::Builder::new()
            .name("smalt-commit".to_owned())
            .spawn(move || committer.serve(&waiting))?;
        Ok(Dispatch::Thread {
            requests: RwLock::new(Some(requests)),
            thread: Mutex::new(Some(thread)),
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
            Dispatch::Thread { requests, thread } => {
                let last = requests.write().take();
                let synced = ask(last.as_ref(), Request::Close).and_then(answer_of);
                if let Some(thread) = thread.lock().take()
                    && thread.thread().id() != thread::current().id()
                {
                    // The thread has answered and holds nothing any more.
                    let _ = thread.join();
                }
                synced
            }
            #[cfg(any(test, feature = "schedule"))]
            Dispatch::Stepped(stepped) => stepped.close(),
        }
    }
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
