//! The state that the parts of one running listener share.

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
use crate::rules::sentinel::LeaseAnswer;
use crate::signal::Signal;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// No more gets; all received messages are handled (at the end of `once`).
    Finishing,
    /// No more gets; messages that have not started are given back, running handlers may end.
    Draining,
    /// The grace time is over: handlers are cancelled, messages given back.
    Leaving,
}

/// A request about a message, which links its log line to the service's own log.
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
            // One id for all messages of the answer.
            Asked::Get => calls.request_id("get", ""),
            Asked::Update => calls.request_id("update", message),
            Asked::Delete => calls.request_id("delete", message),
            Asked::Poison => calls.request_id("poison", message),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Event {
    /// A get was answered.
    Received { asked: u32, got: u32 },
    /// An observer wants the task with this number to stop.
    Leave(u64),
    /// A get failed.
    Failed(PortError),
    Finished {
        outcome: Outcome,
        handler_time: Option<Duration>,
        in_hand: Duration,
        expiring: bool,
    },
    /// A get was not made because the daily budget is spent.
    BudgetSpent { is_first: bool },
    /// The handler cannot run, for this reason.
    Unable(String),
    /// The depth was sampled; `None` after a failure.
    Depth(Option<u64>),
    /// A request about the sentinel's lease was answered.
    Sentinel(LeaseAnswer),
}

/// The shared state. No number here is counted up and down by several tasks: they send events to
/// the controller, which alone makes the decisions.
pub(crate) struct Shared {
    pub(crate) config: ListenerConfig,
    pub(crate) calls: Calls,
    /// Places for messages in hand of all tasks; a stopped task may still use some.
    pub(crate) room: Arc<Semaphore>,
    /// Set if large payloads of the queue are stored in blobs.
    pub(crate) payloads: Option<Arc<PayloadStore>>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) phase: Arc<Signal<Phase>>,
    pub(crate) wake: Arc<Signal<u64>>,
    /// Counts how often more messages were visible than one task could take, so that the others
    /// stop sleeping.
    pub(crate) work: Arc<Signal<u64>>,
    /// Unbounded, but limited by the messages in flight: two events per message.
    pub(crate) events: mpsc::UnboundedSender<Event>,
    pub(crate) observers: Observers,
    /// Outlives a run: the memory of finished messages belongs to the listener.
    pub(crate) done: Arc<Mutex<DoneCache>>,
}

impl Shared {
    pub(crate) fn tell(&self, event: Event) {
        // The controller may already have ended.
        let _ = self.events.send(event);
    }

    /// Returns the number of requests so far, to queues and for payloads.
    pub(crate) fn requests(&self) -> u64 {
        self.calls.requests() + self.payloads.as_ref().map_or(0, |p| p.requests())
    }

    /// Returns the number of messages that may soon be in hand: places reserved for messages or a
    /// get.
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

    /// Logs that the budget is spent; once a day, by the first listener that notices.
    pub(crate) fn say_budget_is_spent(&self) {
        let spent = self.calls.today().and_then(|today| today.spent());
        tracing::warn!(
            worker = %self.config.worker,
            op = "budget",
            queue = %self.config.queue,
            outcome = "budget_spent",
            reason = spent.unwrap_or_default(),
            "the daily budget is spent; no more messages are received today"
        );
    }

    /// Logs that a new day has begun; by the first listener that makes a get.
    pub(crate) fn say_budget_is_new(&self) {
        tracing::info!(
            worker = %self.config.worker,
            op = "budget",
            queue = %self.config.queue,
            outcome = "budget_new",
            "a new day has begun; messages are received again"
        );
    }

    /// Reports the decision about a message to controller, log and observers: at info, or at warn
    /// if it needs attention. `asked` is the last request about the message.
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
