//! A committer without a thread, which takes one step at a time.
//!
//! The steps are those of the committer itself, held at its [points](super::points), so that the
//! order of steps cannot differ from production.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::commit::Work;
use super::committer::Committer;
use super::error::{StoreError, StoreResult};
use super::points::Point;
use super::shared::Shared;

/// The waiting commits, and the committer that runs them.
pub(super) struct Stepped {
    shared: Arc<Shared>,
    state: Mutex<State>,
}

struct State {
    waiting: VecDeque<Box<dyn Work>>,
    committer: Resting,
}

type Running = Pin<Box<dyn Future<Output = Committer> + Send>>;

enum Resting {
    Idle(Committer),
    Held(Running),
    /// Only during a step; a panic in it leaves no committer.
    Gone,
}

impl Stepped {
    pub(super) fn new(committer: Committer) -> Self {
        let shared = committer.shared();
        shared.points.hold();
        let state = State {
            waiting: VecDeque::new(),
            committer: Resting::Idle(committer),
        };
        Stepped {
            shared,
            state: Mutex::new(state),
        }
    }

    pub(super) fn submit(&self, work: Box<dyn Work>) {
        if self.shared.is_closed() {
            return work.answer(Err(StoreError::Closed));
        }
        self.state.lock().waiting.push_back(work);
    }

    /// Takes a step. Returns the point that it reached, or `None` when there is nothing to do. A
    /// new group has at most `most` commits.
    pub(super) fn step(&self, most: usize) -> Option<Point> {
        let state = &mut *self.state.lock();
        let mut running = match std::mem::replace(&mut state.committer, Resting::Gone) {
            Resting::Held(running) => running,
            Resting::Idle(committer) if state.waiting.is_empty() => {
                state.committer = Resting::Idle(committer);
                return None;
            }
            Resting::Idle(committer) => {
                let size = most.clamp(1, state.waiting.len());
                let group = state.waiting.drain(..size).collect();
                Box::pin(committer.run_whole(group))
            }
            Resting::Gone => return None,
        };
        let polled = running
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        let (committer, point) = match polled {
            Poll::Pending => (Resting::Held(running), self.shared.points.held_at()),
            Poll::Ready(committer) => (Resting::Idle(committer), Point::Answered),
        };
        state.committer = committer;
        Some(point)
    }

    /// Takes all remaining steps. Fails when not everything is durable.
    pub(super) fn close(&self) -> StoreResult<()> {
        self.finish(|_| self.shared.sync_all())
    }

    /// Takes all remaining steps, and passes the committer to `then` in between.
    pub(super) fn finish<T>(&self, then: impl FnOnce(Option<&mut Committer>) -> T) -> T {
        while self.step(usize::MAX).is_some() {}
        match &mut self.state.lock().committer {
            Resting::Idle(committer) => then(Some(committer)),
            _ => then(None),
        }
    }
}
