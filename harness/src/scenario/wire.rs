//! The wire between workers and service: carries every request, writes down what truly happened,
//! and does to it what was planned.
//!
//! The history that the properties are checked against is written here and nowhere else: by the
//! service's side of the exchange, so that it also knows what a worker whose answer was lost does
//! not.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use smalt::Emulator;
use smalt_protocol::Timestamp;
use smalt_sleeve::{Clock, FnTransport, HyperTransport, Transport, TransportError};
use tokio::sync::Notify;

use super::history::{Answer, Event, Exchange, Fate, Happening};

/// Most events of a run. One that goes round in circles gets no further answers from there on, and
/// fails by what it has left undone.
const EVENTS_MAX: usize = 50_000;

/// Who sends: one life of a worker, or the owner of the data.
#[derive(Debug)]
pub struct Actor {
    /// `sweeper-0.1` is the second life of the first sweeper.
    pub name: String,
    /// Faults are planned for workers; the owner's own requests always go through.
    pub is_worker: bool,
    crash: Notify,
    dead: AtomicBool,
}

impl Actor {
    /// A worker's life.
    pub fn worker(name: impl Into<String>) -> Arc<Self> {
        Self::new(name.into(), true)
    }

    /// The owner of the data, whose requests nothing happens to.
    pub fn owner() -> Arc<Self> {
        Self::new("owner".to_owned(), false)
    }

    /// Somebody else who takes messages, and forgets them.
    pub fn stranger() -> Arc<Self> {
        Self::new("stranger".to_owned(), false)
    }

    fn new(name: String, is_worker: bool) -> Arc<Self> {
        Arc::new(Actor {
            name,
            is_worker,
            crash: Notify::new(),
            dead: AtomicBool::new(false),
        })
    }

    /// Waits for the planned death of this life.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.crash.notify_one();
    }
}

/// What happens to one request of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It is executed, and the connection breaks before the answer.
    AnswerLost,
    /// It never arrives.
    Unreachable,
    /// It is on its way for so many seconds.
    LateRequest(u16),
    /// It is executed, and the answer is on its way for so many seconds.
    LateAnswer(u16),
    /// Its worker dies before it is sent.
    CrashBefore,
    /// It is executed, and its worker dies.
    CrashAfter,
    /// As [`Mishap::AnswerLost`], of the next request that removes, copies or settles something.
    ChangeLost,
    /// As [`Mishap::CrashAfter`], of the next such request.
    CrashAfterChange,
    /// The owner does something just before the next such request is executed, to what it is about:
    /// the act of this number.
    OwnerBeforeChange(u8),
    /// The owner does something right after it was executed.
    OwnerAfter(u8),
}

impl Mishap {
    /// Whether it waits for a request that changes something a worker was sent for.
    fn waits_for_change(self) -> bool {
        matches!(
            self,
            Mishap::ChangeLost | Mishap::CrashAfterChange | Mishap::OwnerBeforeChange(_)
        )
    }
}

/// Whether a request deletes or copies a blob, or settles a message.
fn is_change(request: &http::Request<Bytes>) -> bool {
    let settles =
        request.method() != http::Method::GET && request.uri().path().contains("/messages");
    let copies = request.headers().contains_key("x-ms-copy-source");
    request.method() == http::Method::DELETE || copies || settles
}

/// A mishap with its account.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Which request of the workers, counted from 1 over all of them.
    pub nth: u64,
    /// What happens.
    pub mishap: Mishap,
    /// Whether it happened.
    pub fired: bool,
}

/// What the owner does, by its number in the plan, to the blob of this path, if there is one.
pub type OwnerActs =
    Box<dyn Fn(u8, Option<String>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Where the service is.
pub enum Service {
    /// In this process.
    InProcess(Emulator),
    /// Behind sockets.
    Sockets(HyperTransport),
}

/// The wire.
pub struct Wire {
    service: Service,
    clock: Arc<dyn Clock>,
    owner_acts: OnceLock<OwnerActs>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    history: Vec<Event>,
    requests: u64,
    planned: Vec<Planned>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    /// A wire to `service`; `clock` dates the history.
    pub fn new(service: Service, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Wire {
            service,
            clock,
            owner_acts: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    /// The transport of one actor.
    pub fn transport(self: &Arc<Self>, actor: &Arc<Actor>) -> Arc<dyn Transport> {
        let (wire, actor) = (Arc::clone(self), Arc::clone(actor));
        Arc::new(FnTransport::new(move |request| {
            let (wire, actor) = (Arc::clone(&wire), Arc::clone(&actor));
            async move { wire.carry(&actor, request).await }
        }))
    }

    /// Plans what goes wrong from now on; requests are counted anew.
    pub fn plan(&self, planned: Vec<Planned>) {
        let mut state = self.lock();
        state.requests = 0;
        state.planned = planned;
    }

    /// What the owner does when a mishap says so.
    pub fn owner_acts(&self, acts: OwnerActs) {
        // Set once, when the world is made.
        let _ = self.owner_acts.set(acts);
    }

    /// Ends the trouble: nothing goes wrong from here on. Tells what was planned and what happened.
    pub fn calm(&self) -> Vec<Planned> {
        std::mem::take(&mut self.lock().planned)
    }

    /// How many requests workers have sent.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Writes something down that is no exchange.
    pub fn note(&self, actor: &str, what: Happening) {
        let event = Event {
            at: self.clock.now(),
            actor: actor.to_owned(),
            what,
        };
        self.lock().history.push(event);
    }

    /// The time on the wire's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The history so far.
    pub fn history(&self) -> Vec<Event> {
        self.lock().history.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mishap of the next request.
    fn next_mishap(&self, actor: &Actor, request: &http::Request<Bytes>) -> Option<Mishap> {
        if !actor.is_worker {
            return None;
        }
        let mut state = self.lock();
        state.requests += 1;
        let nth = state.requests;
        let change = is_change(request);
        let due =
            |p: &&mut Planned| !p.fired && p.nth <= nth && (change || !p.mishap.waits_for_change());
        let planned = state.planned.iter_mut().find(due)?;
        planned.fired = true;
        Some(planned.mishap)
    }

    async fn carry(
        &self,
        actor: &Arc<Actor>,
        request: http::Request<Bytes>,
    ) -> io::Result<http::Response<Bytes>> {
        let exhausted = actor.is_worker && self.lock().history.len() > EVENTS_MAX;
        if exhausted || actor.dead.load(Ordering::Relaxed) {
            // A task of a dead worker that has not been dropped yet, or an endless run.
            std::future::pending::<()>().await;
        }
        let mishap = self.next_mishap(actor, &request);
        let about = about(&request);
        match mishap {
            Some(Mishap::Unreachable) => return Err(io::ErrorKind::ConnectionRefused.into()),
            Some(Mishap::CrashBefore) => self.die(actor).await,
            Some(Mishap::LateRequest(seconds)) => sleep(seconds).await,
            Some(Mishap::OwnerBeforeChange(act)) => self.owner(act, about.clone()).await,
            _ => {}
        }
        let late = matches!(
            mishap,
            Some(
                Mishap::AnswerLost
                    | Mishap::CrashAfter
                    | Mishap::ChangeLost
                    | Mishap::CrashAfterChange
                    | Mishap::LateAnswer(_)
            )
        );
        let (number, answer) = self.execute(actor, request, !late).await;
        match mishap {
            Some(Mishap::AnswerLost | Mishap::ChangeLost) => {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Some(Mishap::CrashAfter | Mishap::CrashAfterChange) => self.die(actor).await,
            Some(Mishap::LateAnswer(seconds)) => {
                sleep(seconds).await;
                self.note(&actor.name, Happening::Delivered { number });
            }
            Some(Mishap::OwnerAfter(act)) => self.owner(act, None).await,
            _ => {}
        }
        answer
    }

    async fn die(&self, actor: &Arc<Actor>) {
        self.note(&actor.name, Happening::Crashed);
        actor.die();
        std::future::pending::<()>().await;
    }

    async fn owner(&self, act: u8, about: Option<String>) {
        if let Some(acts) = self.owner_acts.get() {
            acts(act, about).await;
        }
    }

    /// Lets the service execute it, and writes it down at once: in order of execution.
    async fn execute(
        &self,
        actor: &Actor,
        request: http::Request<Bytes>,
        delivered: bool,
    ) -> (usize, io::Result<http::Response<Bytes>>) {
        let sent = self.clock.now();
        let mut exchange = Exchange::of(&request, sent);
        let answer = self.ask(request).await;
        exchange.fate = match &answer {
            Ok(response) => Fate::Answered(Answer::of(response)),
            Err(error) => Fate::NoAnswer(error.to_string()),
        };
        exchange.delivered = delivered && answer.is_ok();
        let mut state = self.lock();
        let number = state.history.len();
        state.history.push(Event {
            at: self.clock.now(),
            actor: actor.name.clone(),
            what: Happening::Exchange(Box::new(exchange)),
        });
        (number, answer)
    }

    async fn ask(&self, request: http::Request<Bytes>) -> io::Result<http::Response<Bytes>> {
        match &self.service {
            Service::Sockets(sockets) => sockets.round_trip(request).await.map_err(|e| match e {
                TransportError::Unreachable(text) => {
                    io::Error::new(io::ErrorKind::ConnectionRefused, text)
                }
                other => io::Error::other(other.to_string()),
            }),
            Service::InProcess(emulator) => {
                let reset = |_| io::Error::from(io::ErrorKind::ConnectionReset);
                let response = emulator.call(request.map(smalt::body::full)).await;
                let (head, body) = response.map_err(reset)?.into_parts();
                let body = body.collect().await?.to_bytes();
                Ok(http::Response::from_parts(head, body))
            }
        }
    }
}

/// The path of the blob that a request wants to be rid of.
fn about(request: &http::Request<Bytes>) -> Option<String> {
    let source = request.headers().get("x-ms-copy-source");
    match source.and_then(|source| source.to_str().ok()) {
        Some(source) => Some(source.parse::<http::Uri>().ok()?.path().to_owned()),
        None => Some(request.uri().path().to_owned()),
    }
}

async fn sleep(seconds: u16) {
    tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
}
