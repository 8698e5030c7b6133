//! What the parts of one running listener share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt_sleeve::port::PortError;
use tokio::sync::{Semaphore, mpsc};

use crate::calls::Calls;
use crate::config::ListenerConfig;
use crate::handler::Handler;
use crate::observers::Observers;
use crate::payload::PayloadStore;
use crate::report::{Decision, Outcome};
use crate::rules::done::DoneCache;
use crate::rules::envelope::trace;
use crate::rules::sentinel::Answer;
use crate::signal::Signal;

/// What the whole listener is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Fetching and handling.
    Running,
    /// No more gets; what was fetched is handled (`once`, at its end).
    Finishing,
    /// No more gets; what has not started is given back, what runs may end.
    Draining,
    /// The grace time is over: handlers are cancelled, messages given back.
    Leaving,
}

/// A request about a message, by which its line in the log is found again in the service's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Get,
    Update,
    Delete,
    Poison,
}

impl Asked {
    fn request_id(self, calls: &Calls, message: &str) -> String {
        match self {
            // One for all messages of its answer.
            Asked::Get => calls.request_id("get", ""),
            Asked::Update => calls.request_id("update", message),
            Asked::Delete => calls.request_id("delete", message),
            Asked::Poison => calls.request_id("poison", message),
        }
    }
}

/// What the controller is told.
#[derive(Debug)]
pub(crate) enum Event {
    /// A get was answered.
    Received { asked: u32, got: u32 },
    /// A get failed.
    Failed(PortError),
    /// A message is settled.
    Finished {
        outcome: Outcome,
        handler_time: Option<Duration>,
        in_hand: Duration,
        expiring: bool,
    },
    /// A get was not made, for the day's money is spent.
    BudgetSpent { is_first: bool },
    /// The handler cannot run.
    Unable(String),
    /// The depth was sampled.
    Depth(Option<u64>),
    /// The sentinel's lease was asked for.
    Sentinel(Answer),
}

/// What the parts share. Nothing here is counted up and down by several tasks: numbers go to the
/// controller as events, and it alone decides by them.
pub(crate) struct Shared {
    pub(crate) config: ListenerConfig,
    pub(crate) calls: Calls,
    /// Places for messages in hand, of all tasks together: one that has left may still have some.
    pub(crate) room: Arc<Semaphore>,
    /// Present when large payloads of the queue are kept in blobs.
    pub(crate) payloads: Option<Arc<PayloadStore>>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) phase: Arc<Signal<Phase>>,
    /// Counts the triggers from outside.
    pub(crate) wake: Arc<Signal<u64>>,
    /// Counts the times that one task found more than it could take: the others need not sleep.
    pub(crate) work: Arc<Signal<u64>>,
    /// Unbounded, but filled only by what is in flight: two events per message.
    pub(crate) events: mpsc::UnboundedSender<Event>,
    pub(crate) observers: Observers,
    /// Outlives a run: the memory of finished messages belongs to the listener.
    pub(crate) done: Arc<Mutex<DoneCache>>,
}

impl Shared {
    pub(crate) fn tell(&self, event: Event) {
        // A controller that is gone needs no news.
        let _ = self.events.send(event);
    }

    /// Requests so far, to queues and payloads.
    pub(crate) fn requests(&self) -> u64 {
        self.calls.requests() + self.payloads.as_ref().map_or(0, |p| p.requests())
    }

    /// Messages that may be in hand soon: places that are taken, for messages or for a get.
    pub(crate) fn in_hand(&self) -> u64 {
        let free = self.room.available_permits();
        self.config.in_hand_max().saturating_sub(free) as u64
    }

    pub(crate) fn done(&self) -> MutexGuard<'_, DoneCache> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Waits until the listener is in `phase` or a later one.
    pub(crate) async fn reached(&self, phase: Phase) {
        self.phase.wait_for(|now| now >= phase).await;
    }

    /// Said once a day, by whoever notices it first of those who share the budget.
    pub(crate) fn say_budget_is_spent(&self) {
        let spent = self.calls.today().and_then(|today| today.spent());
        tracing::warn!(
            worker = %self.config.worker,
            op = "budget",
            queue = %self.config.queue,
            outcome = "budget_spent",
            reason = spent.unwrap_or_default(),
            "no more messages today"
        );
    }

    /// The first get of those who share the budget, on the day after.
    pub(crate) fn say_budget_is_new(&self) {
        tracing::info!(
            worker = %self.config.worker,
            op = "budget",
            queue = %self.config.queue,
            outcome = "budget_new",
            "a new day: messages are taken again"
        );
    }

    /// Tells everybody who has to know what became of a message: one line at info, or at warn where
    /// somebody should look. `asked` is the last request about it.
    pub(crate) fn decide(&self, decision: &Decision, in_hand: Duration, asked: Asked) {
        self.tell(Event::Finished {
            outcome: decision.outcome,
            handler_time: decision.handler_time,
            in_hand,
            expiring: decision.expiring,
        });
        log(
            &self.config,
            decision,
            &asked.request_id(&self.calls, &decision.id),
        );
        self.observers.tell(|observer| observer.decided(decision));
    }
}

macro_rules! decision_line {
    ($level:ident, $config:expr, $d:expr, $req_id:expr) => {
        tracing::$level!(
            worker = %$config.worker,
            op = "message",
            queue = %$config.queue,
            msg_id = %$d.id,
            outcome = $d.outcome.name(),
            reason = %$d.reason,
            ms = $d.handler_time.map_or(0, |t| t.as_millis() as u64),
            attempt = $d.dequeue_count,
            req_id = %$req_id,
            trace = %trace(&$config.worker, $d.dequeue_count),
            renewals = $d.renewals,
            expiring = $d.expiring,
            "message"
        )
    };
}

fn log(config: &ListenerConfig, decision: &Decision, req_id: &str) {
    if decision.outcome.is_failure() || decision.expiring {
        decision_line!(warn, config, decision, req_id);
    } else {
        decision_line!(info, config, decision, req_id);
    }
}
