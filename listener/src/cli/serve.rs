//! The HTTP addresses of a running listener: health, status, metrics and `POST /notify`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::request::Parts;
use http::{StatusCode, header};
use serde_json::json;
use smalt_listener::metrics::{Metrics, QueueMetrics, prometheus};
use smalt_listener::notify::Relay;
use smalt_listener::rules::budget::Today;
use smalt_listener::rules::trigger::{EVENT_MAX_BYTES, Trigger};
use smalt_listener::{AccountLimit, Observer, PoolState, PoolStatus, QueueListener};
use smalt_worker::face::{Answer, Face};
use tokio::sync::watch;

use super::token::Token;

#[derive(Clone)]
pub(crate) struct Watched {
    /// The partitioned queue that this listener's queue belongs to.
    pub(crate) set: Option<String>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) status: watch::Receiver<PoolStatus>,
    /// Longest time without a request to storage.
    pub(crate) interval: Duration,
}

impl Watched {
    fn pool(&self) -> PoolStatus {
        *self.status.borrow()
    }

    /// Returns the number of messages that have an outcome.
    pub(crate) fn settled(&self) -> u64 {
        self.metrics.counts().outcomes.values().sum()
    }

    fn readiness(&self) -> Result<(), String> {
        let in_flight = self.pool().in_flight;
        if self.set.is_some() && self.pool().state == PoolState::Stopped {
            // A drained partition is no longer read.
            return Ok(());
        }
        let ready = self.metrics.readiness(self.interval, in_flight);
        ready.map_err(|why| format!("{}: {why}", self.metrics.queue()))
    }

    fn status(&self, is_spent: bool) -> serde_json::Value {
        let (pool, counts) = (self.pool(), self.metrics.counts());
        let outcomes = counts.outcomes.iter();
        let outcomes = outcomes.map(|(o, n)| (o.name().to_owned(), json!(n)));
        let outcomes: serde_json::Map<_, _> = outcomes.collect();
        let since = self.metrics.since_success();
        json!({
            "queue": self.metrics.queue(),
            "state": format!("{:?}", pool.state).to_ascii_lowercase(),
            "tasks": pool.tasks,
            "desired_tasks": pool.desired,
            "tasks_started": pool.tasks_started,
            "in_flight": pool.in_flight,
            "backlog": pool.backlog,
            "idle_delay_s": match pool.tasks {
                0 => 0.0,
                _ => counts.idle_delay.as_secs_f64(),
            },
            "received": counts.received,
            "outcomes": outcomes,
            "empty_gets": counts.empty_gets,
            "requests": counts.requests(),
            "last_answer_s_ago": since.map(|since| since.as_secs_f64()),
            "last_error": self.metrics.last_error().map(|error| format!("{error:?}")),
            "ready": self.readiness().is_ok() && !is_spent,
        })
    }
}

fn budget_status(today: &Today) -> serde_json::Value {
    json!({
        "max_cost_per_day": today.budget.max_cost_per_day,
        "requests_today": today.requests,
        "cost_today": today.cost(),
        "spent_until": today.resumes(),
    })
}

fn trigger_status(metrics: &Metrics) -> serde_json::Value {
    json!({
        "queue": metrics.queue(),
        "requests": metrics.counts().requests(),
        "last_error": metrics.last_error().map(|error| format!("{error:?}")),
    })
}

/// The state of the process that its addresses serve.
pub(crate) struct Surface {
    pub(crate) worker: String,
    pub(crate) relay: Relay,
    pub(crate) token: Option<Token>,
    pub(crate) price: Option<f64>,
    /// The limits on all requests: their rate and their daily cost.
    pub(crate) account: AccountLimit,
    pub(crate) queues: Mutex<Vec<Watched>>,
    /// The request counts of the partitioned queues' maps; their listeners come and go.
    pub(crate) sets: Vec<Arc<Metrics>>,
    /// The request counts of the subscriptions.
    pub(crate) triggers: Vec<Arc<Metrics>>,
}

impl Surface {
    pub(crate) fn queues(&self) -> Vec<Watched> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a listener and lets its metrics observe it, which continue those of an earlier
    /// listener on the same queue.
    pub(crate) fn add(&self, listener: QueueListener, set: Option<&str>) -> QueueListener {
        let (config, mut queues) = (listener.config(), self.locked());
        let before = queues
            .iter()
            .position(|known| known.metrics.queue() == config.queue);
        let metrics = match before {
            Some(at) => queues.swap_remove(at).metrics,
            None => Arc::new(Metrics::new(&config.queue)),
        };
        queues.push(Watched {
            set: set.map(str::to_owned),
            status: listener.status(),
            metrics: Arc::clone(&metrics),
            interval: config.longest_sleep(),
        });
        queues.sort_by(|one, other| one.metrics.queue().cmp(other.metrics.queue()));
        drop(queues);
        let listener = listener.observed_by(metrics as Arc<dyn Observer>);
        self.relay.add(set, listener.waker());
        listener
    }

    fn uptime(&self) -> Duration {
        let queues = self.queues();
        let uptimes = queues.iter().map(|queue| queue.metrics.uptime());
        uptimes.max().unwrap_or_default()
    }

    pub(crate) fn summary(&self) -> String {
        let queues = self.queues();
        let pools = queues.iter().map(Watched::pool);
        let (tasks, in_flight, backlog) = pools.fold((0, 0, 0), |(t, i, b), pool| {
            (t + pool.tasks, i + pool.in_flight, b + pool.backlog)
        });
        format!("tasks: {tasks}, in flight: {in_flight}, waiting: about {backlog}")
    }
}

impl Face for Surface {
    fn status(&self) -> serde_json::Value {
        let is_spent = self.account.is_spent();
        let queues = self.queues();
        let queues = queues.iter().map(|queue| queue.status(is_spent));
        json!({
            "worker": self.worker,
            "account": self.relay.account(),
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.uptime().as_secs_f64(),
            "budget": self.account.today().map(|today| budget_status(&today)),
            "queues": queues.collect::<Vec<_>>(),
            "triggers": self.triggers.iter().map(|m| trigger_status(m)).collect::<Vec<_>>(),
        })
    }

    fn metrics(&self) -> String {
        let queues = self.queues();
        let looks = queues.iter().map(|queue| QueueMetrics {
            queue: queue.metrics.queue(),
            counts: queue.metrics.counts(),
            pool: Some(queue.pool()),
        });
        let mut looks: Vec<_> = looks.collect();
        for metrics in self.triggers.iter().chain(&self.sets) {
            let (queue, counts) = (metrics.queue(), metrics.counts());
            match looks.iter_mut().find(|look| look.queue == queue) {
                // Prometheus allows one series per queue and operation, and a partitioned queue's
                // own name is also the name of one of its queues.
                Some(look) => look.counts.add_requests(&counts),
                None => looks.push(QueueMetrics {
                    queue,
                    counts,
                    pool: None,
                }),
            }
        }
        prometheus(&looks, self.uptime(), self.price, self.account.today())
    }

    fn readiness(&self) -> Result<(), String> {
        // With a spent budget the queues are expected to be silent.
        if let Some(spent) = self.account.today().and_then(|today| today.spent()) {
            return Err(spent);
        }
        let queues = self.queues();
        let mut problems: Vec<_> = queues.iter().filter_map(|q| q.readiness().err()).collect();
        let known = |set: &str| queues.iter().any(|queue| queue.set.as_deref() == Some(set));
        let sets = self.sets.iter().map(|set| set.queue());
        for set in sets.filter(|set| !known(set)) {
            problems.push(format!(
                "{set}: the map of its partitions has not been read yet"
            ));
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join("\n")),
        }
    }

    fn post_path(&self) -> Option<(&'static str, usize)> {
        Some(("/notify", EVENT_MAX_BYTES))
    }

    fn posted(&self, head: &Parts, body: &[u8]) -> Answer {
        // Only browsers send `Origin`; web pages must not wake the listener.
        if head.headers.contains_key(header::ORIGIN) {
            return Answer::refusal(
                StatusCode::FORBIDDEN,
                "requests from web pages are not answered",
            );
        }
        if self
            .token
            .as_ref()
            .is_some_and(|token| !token.is_shown(&head.headers))
        {
            return Answer::refusal(StatusCode::UNAUTHORIZED, "this address requires a token");
        }
        let event = std::str::from_utf8(body).map_err(|error| error.to_string());
        match event.and_then(Trigger::parse) {
            Ok(event) => {
                let woken = self.relay.relay(&event);
                tracing::debug!(op = "notify", queue = %event.queue(), woken, "event");
                Answer::json(StatusCode::ACCEPTED, &json!({ "woken": woken }))
            }
            Err(problem) => Answer::refusal(StatusCode::BAD_REQUEST, &problem),
        }
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
