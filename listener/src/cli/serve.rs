//! What a running listener shows: `/livez`, `/readyz`, `/status`, `/metrics`; and `POST /notify`.
//!
//! An address that is taken costs these answers and a warning, not the run.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use smalt_listener::metrics::{Look, Metrics, of_budget, prometheus};
use smalt_listener::rules::budget::Today;
use smalt_listener::rules::trigger::{EVENT_MAX_BYTES, Trigger};
use smalt_listener::{AccountLimit, PoolState, PoolStatus, QueueListener};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::token::Token;
use super::trigger::{Wakers, Woken};

/// Connections at the same time: probes and scrapers are few.
const CONNECTIONS_MAX: usize = 64;
/// How long a connection may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which may be a lack of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// One listener, seen from outside.
#[derive(Clone)]
pub(crate) struct Watched {
    /// The partitioned queue that its queue is one of.
    pub(crate) set: Option<String>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) status: watch::Receiver<PoolStatus>,
    /// The longest that it goes without a call.
    pub(crate) interval: Duration,
}

impl Watched {
    fn pool(&self) -> PoolStatus {
        *self.status.borrow()
    }

    /// Messages that came to their end.
    pub(crate) fn settled(&self) -> u64 {
        self.metrics.counts().outcomes.values().sum()
    }

    fn readiness(&self) -> Result<(), String> {
        let in_flight = self.pool().in_flight;
        if self.set.is_some() && self.pool().state == PoolState::Stopped {
            // Drained, and read no longer.
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

/// What there is to see of a process.
pub(crate) struct Surface {
    pub(crate) worker: String,
    pub(crate) wakers: Arc<Wakers>,
    /// What events have to show.
    pub(crate) token: Option<Token>,
    pub(crate) price: Option<f64>,
    /// The requests of all, and what they may cost in a day.
    pub(crate) account: AccountLimit,
    pub(crate) queues: Mutex<Vec<Watched>>,
    /// Partitioned queues, with the requests about their maps: their listeners come and go.
    pub(crate) sets: Vec<Arc<Metrics>>,
    /// Requests to the trigger queues.
    pub(crate) triggers: Vec<Arc<Metrics>>,
}

impl Surface {
    /// The listeners of this moment.
    pub(crate) fn queues(&self) -> Vec<Watched> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A listener begins; what counts for it, carried on from one before it on the same queue.
    pub(crate) fn add(&self, listener: &QueueListener, set: Option<&str>) -> Arc<Metrics> {
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
        self.wakers.add(Woken {
            set: set.map(str::to_owned),
            waker: listener.waker(),
        });
        metrics
    }

    fn uptime(&self) -> Duration {
        let queues = self.queues();
        let uptimes = queues.iter().map(|queue| queue.metrics.uptime());
        uptimes.max().unwrap_or_default()
    }

    /// The status as JSON.
    pub(crate) fn status(&self) -> serde_json::Value {
        let is_spent = self.account.is_spent();
        let queues = self.queues();
        let queues = queues.iter().map(|queue| queue.status(is_spent));
        json!({
            "worker": self.worker,
            "account": self.wakers.account,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.uptime().as_secs_f64(),
            "budget": self.account.today().map(|today| budget_status(&today)),
            "queues": queues.collect::<Vec<_>>(),
            "triggers": self.triggers.iter().map(|m| trigger_status(m)).collect::<Vec<_>>(),
        })
    }

    /// A few words for a progress bar.
    pub(crate) fn summary(&self) -> String {
        let queues = self.queues();
        let pools = queues.iter().map(Watched::pool);
        let (tasks, in_flight, backlog) = pools.fold((0, 0, 0), |(t, i, b), pool| {
            (t + pool.tasks, i + pool.in_flight, b + pool.backlog)
        });
        format!("tasks: {tasks}, in flight: {in_flight}, waiting: about {backlog}")
    }

    fn metrics(&self) -> String {
        let queues = self.queues();
        let looks = queues.iter().map(|queue| Look {
            queue: queue.metrics.queue(),
            counts: queue.metrics.counts(),
            pool: Some(queue.pool()),
        });
        let mut looks: Vec<_> = looks.collect();
        for metrics in self.triggers.iter().chain(&self.sets) {
            let (queue, counts) = (metrics.queue(), metrics.counts());
            match looks.iter_mut().find(|look| look.queue == queue) {
                // One series for each queue and operation. A partitioned queue has its own name's
                // queue among those that are worked off, too.
                Some(look) => look.counts.add_requests(&counts),
                None => looks.push(Look {
                    queue,
                    counts,
                    pool: None,
                }),
            }
        }
        let text = prometheus(&looks, self.uptime(), self.price);
        text + &self.account.today().map_or_else(String::new, of_budget)
    }

    fn readiness(&self) -> Result<(), String> {
        // That its queues are silent then is no news.
        if let Some(spent) = self.account.today().and_then(|today| today.spent()) {
            return Err(spent);
        }
        let queues = self.queues();
        let mut problems: Vec<_> = queues.iter().filter_map(|q| q.readiness().err()).collect();
        let known = |set: &str| queues.iter().any(|queue| queue.set.as_deref() == Some(set));
        let sets = self.sets.iter().map(|set| set.queue());
        for set in sets.filter(|set| !known(set)) {
            problems.push(format!(
                "{set}: the map of its queues has not been read yet"
            ));
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join("\n")),
        }
    }
}

/// What an address answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    health: bool,
    metrics: bool,
}

/// An answer: status, content type, text.
type Answer = (StatusCode, &'static str, String);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Begins to answer at these addresses.
pub(crate) async fn start(surface: &Arc<Surface>, health: Option<&str>, metrics: Option<&str>) {
    let roles = |health, metrics| Roles { health, metrics };
    let addresses = match (health, metrics) {
        (Some(health), Some(metrics)) if health == metrics => vec![(health, roles(true, true))],
        (health, metrics) => {
            let health = health.map(|at| (at, roles(true, false)));
            let metrics = metrics.map(|at| (at, roles(false, true)));
            health.into_iter().chain(metrics).collect()
        }
    };
    for (address, roles) in addresses {
        match TcpListener::bind(address).await {
            Ok(socket) => {
                let at = socket
                    .local_addr()
                    .map_or(address.to_owned(), |a| a.to_string());
                tracing::info!(op = "serve", address = %at, "answering");
                tokio::spawn(serve(socket, Arc::clone(surface), roles));
            }
            Err(error) => tracing::warn!(
                op = "serve", address, reason = %error,
                "going on without health and metrics there"
            ),
        }
    }
}

async fn serve(socket: TcpListener, surface: Arc<Surface>, roles: Roles) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let stream = match socket.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(op = "serve", reason = %error, "accept failed");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let surface = Arc::clone(&surface);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let surface = Arc::clone(&surface);
                async move { Ok::<_, Infallible>(respond(&surface, roles, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away early is no event.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn respond(
    surface: &Surface,
    roles: Roles,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let read = Limited::new(body, EVENT_MAX_BYTES).collect();
    let (status, kind, text) = match tokio::time::timeout(HEAD_TIMEOUT, read).await {
        Ok(Ok(body)) => answer(surface, roles, &head, &body.to_bytes()),
        Ok(Err(_)) => refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "an event has 4096 bytes at most",
        ),
        Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, "no body came"),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if status == StatusCode::UNAUTHORIZED {
        let how = header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
    }
    response
}

fn refuse(status: StatusCode, why: &str) -> Answer {
    (status, TEXT, format!("{why}\n"))
}

/// The answer to a request.
fn answer(surface: &Surface, roles: Roles, head: &http::request::Parts, body: &[u8]) -> Answer {
    let get = head.method == Method::GET || head.method == Method::HEAD;
    match head.uri.path() {
        "/metrics" if roles.metrics && get => (StatusCode::OK, PROMETHEUS, surface.metrics()),
        "/livez" if roles.health && get => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        "/readyz" if roles.health && get => match surface.readiness() {
            Ok(()) => (StatusCode::OK, TEXT, "ok\n".to_owned()),
            Err(why) => refuse(StatusCode::SERVICE_UNAVAILABLE, &why),
        },
        "/status" if roles.health && get => {
            (StatusCode::OK, JSON, format!("{:#}\n", surface.status()))
        }
        "/notify" if roles.health && head.method == Method::POST => notified(surface, head, body),
        "/metrics" if roles.metrics => refuse(StatusCode::METHOD_NOT_ALLOWED, "GET it"),
        "/notify" if roles.health => refuse(StatusCode::METHOD_NOT_ALLOWED, "POST to it"),
        "/livez" | "/readyz" | "/status" if roles.health => {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "GET it")
        }
        _ => refuse(StatusCode::NOT_FOUND, "nothing here"),
    }
}

fn notified(surface: &Surface, head: &http::request::Parts, body: &[u8]) -> Answer {
    // A web page has no business here; only its browser sends this header.
    if head.headers.contains_key(header::ORIGIN) {
        return refuse(
            StatusCode::FORBIDDEN,
            "requests of web pages are not answered",
        );
    }
    if surface
        .token
        .as_ref()
        .is_some_and(|token| !token.is_shown(&head.headers))
    {
        return refuse(StatusCode::UNAUTHORIZED, "this address asks for a token");
    }
    let event = std::str::from_utf8(body).map_err(|error| error.to_string());
    match event.and_then(Trigger::parse) {
        Ok(event) => {
            let woken = surface.wakers.wake(&event);
            tracing::debug!(op = "notify", queue = %event.queue(), woken, "event");
            let body = json!({ "woken": woken });
            (StatusCode::ACCEPTED, JSON, format!("{body}\n"))
        }
        Err(problem) => refuse(StatusCode::BAD_REQUEST, &problem),
    }
}

/// Whether an address could be bound: `validate` says so beforehand.
pub(crate) async fn can_bind(address: &str) -> io::Result<()> {
    TcpListener::bind(address).await.map(drop)
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
