//! The wire between workers and service: carries every request, records what truly happened, and
//! applies the planned faults.
//!
//! The history that the properties are checked against is written only here, on the service's side
//! of the exchange: it also contains the results that a worker never got.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use smalt::Emulator;
use smalt_protocol::Timestamp;
use smalt_sleeve::transport::is_refusal;
use smalt_sleeve::{Clock, FnTransport, HyperTransport, Transport, TransportError};
use tokio::time::Instant;

use super::account::{self, Account};
use super::actor::Actor;
use super::answers::{Busy, garbled, refusal};
use super::faults::{AWAY, BUSY, CUT, Fault, Mishap};
use super::history::{Answer, Event, Exchange, Fate, Happening};
use crate::wire::in_process::{self, broken_off};

/// Most events of a run: twice as many as the busiest correct runs have, in which fleets of a fixed
/// size poll up to their budgets. A run in an endless loop gets no answers from there on, and fails
/// because of unfinished work.
const EVENTS_MAX: usize = 20_000;

/// Performs the owner's act of this number on the blob of this path, if there is one.
pub type OwnerActs =
    Arc<dyn Fn(u8, Option<String>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The service behind the wire.
pub enum Service {
    /// An emulator in this process.
    InProcess(Emulator),
    /// A service that is reached over sockets.
    Sockets(HyperTransport),
}

/// The wire.
pub struct Wire {
    service: Service,
    clock: Arc<dyn Clock>,
    owner_acts: Mutex<Option<OwnerActs>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    history: Vec<Event>,
    account: Account,
    /// End of the current outage, if there is one.
    away_until: Option<Instant>,
    /// The last period in which the service is busy.
    busy: Option<Busy>,
}

/// A fault with its request, until something has happened to it.
struct Taken<'a> {
    wire: &'a Wire,
    number: usize,
    mishap: Mishap,
}

impl Taken<'_> {
    fn fired(&self) {
        let fate = account::Fate::Fired;
        self.wire.lock().account.becomes(self.number, fate);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // The worker was dropped while its request was in flight.
        let fate = account::Fate::Overtaken;
        self.wire.lock().account.becomes(self.number, fate);
    }
}

/// An exchange whose answer is on its way to the sender.
struct OnItsWay<'a> {
    wire: &'a Wire,
    number: Option<usize>,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        // The sender gave up or has ended, and never got the answer.
        if let Some(number) = self.number
            && let Some(event) = self.wire.lock().history.get_mut(number)
            && let Happening::Exchange(exchange) = &mut event.what
        {
            exchange.delivered = false;
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    /// Creates a wire to `service`; `clock` gives the times of the history.
    pub fn new(service: Service, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Wire {
            service,
            clock,
            owner_acts: Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// Returns the transport of one actor; each direction takes `lag`.
    pub fn transport(self: &Arc<Self>, actor: &Arc<Actor>, lag: Duration) -> Arc<dyn Transport> {
        let (wire, actor) = (Arc::clone(self), Arc::clone(actor));
        Arc::new(FnTransport::new(move |request| {
            let (wire, actor) = (Arc::clone(&wire), Arc::clone(&actor));
            async move {
                travel(lag).await;
                let mut way = wire.way();
                let answer = wire.carry(&actor, request, &mut way).await;
                travel(lag).await;
                way.number = None;
                answer
            }
        }))
    }

    fn way(&self) -> OnItsWay<'_> {
        OnItsWay {
            wire: self,
            number: None,
        }
    }

    /// Plans faults from now on, and restarts the count of requests.
    pub fn plan(&self, faults: &[Fault]) {
        self.lock().account = Account::new(faults);
    }

    /// Sets the acts of the owner. They send through this wire and so keep it alive: unset them
    /// after the run, or neither is ever dropped.
    pub fn owner_acts(&self, acts: Option<OwnerActs>) {
        *self.acts() = acts;
    }

    fn acts(&self) -> MutexGuard<'_, Option<OwnerActs>> {
        self.owner_acts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the trouble: no new fault happens from here on. Returns the account of the faults.
    pub fn calm(&self) -> Account {
        let mut state = self.lock();
        state.busy = None;
        std::mem::take(&mut state.account)
    }

    /// Records an event other than an exchange.
    pub fn note(&self, actor: &str, what: Happening) {
        let event = Event {
            at: self.clock.now(),
            actor: actor.to_owned(),
            what,
        };
        self.lock().history.push(event);
    }

    /// Returns the time on the wire's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> usize {
        self.lock().history.len()
    }

    /// Returns the history so far.
    pub fn history(&self) -> Vec<Event> {
        self.lock().history.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the fault of the next request.
    fn take(&self, actor: &Actor, request: &http::Request<Bytes>) -> Option<Taken<'_>> {
        if !actor.is_worker {
            return None;
        }
        let (number, mishap) = self.lock().account.next(request)?;
        Some(Taken {
            wire: self,
            number,
            mishap,
        })
    }

    async fn carry(
        self: &Arc<Self>,
        actor: &Arc<Actor>,
        request: http::Request<Bytes>,
        way: &mut OnItsWay<'_>,
    ) -> io::Result<http::Response<Bytes>> {
        let exhausted = actor.is_worker && self.lock().history.len() > EVENTS_MAX;
        if exhausted || actor.is_dead() {
            // A task of a dead worker that is not dropped yet, or an endless run.
            std::future::pending::<()>().await;
        }
        actor.awake().await;
        if actor.is_worker && self.is_away() {
            self.unsent(actor, &request, AWAY);
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let refused = self.refused(actor);
        // Faults are aimed at the requests that are not refused.
        let taken = match refused {
            None => self.take(actor, &request),
            Some(_) => None,
        };
        let about = about(&request);
        if let Some(taken) = &taken {
            self.before(actor, taken, &request, about.clone()).await?;
        }
        let mishap = taken.as_ref().map(|taken| taken.mishap);
        let kind = mishap
            .map(Mishap::kind)
            .or(refused.is_some().then_some(BUSY));
        if mishap == Some(Mishap::Twice) {
            let first = Exchange::of(&request, self.clock.now());
            let first = first.with(kind, false);
            let _ = self.execute(actor, request.clone(), first, None).await;
        }
        let exchange = Exchange::of(&request, self.clock.now());
        let exchange = exchange.with(kind, mishap.is_none_or(Mishap::is_delivered));
        let instead = match mishap {
            Some(Mishap::Refused(status, retry_after_s)) => refusal(status, retry_after_s),
            Some(Mishap::Busy(_, _, retry_after_s)) => refusal(503, Some(retry_after_s)),
            _ => refused,
        };
        let (number, mut answer) = self.execute(actor, request, exchange, instead).await;
        way.number = Some(number);
        if let Some(taken) = &taken {
            answer = self.after(actor, taken, (number, about), answer).await;
        }
        if actor.awake().await && mishap.is_none_or(Mishap::is_delivered) {
            self.note(&actor.name, Happening::Delivered { number });
        }
        answer
    }

    fn is_away(&self) -> bool {
        let until = self.lock().away_until;
        until.is_some_and(|until| until > Instant::now())
    }

    /// Returns the answer to a worker's request for which the service is too busy.
    fn refused(&self, actor: &Actor) -> Option<http::Response<Bytes>> {
        let mut state = self.lock();
        state.busy.as_mut().filter(|_| actor.is_worker)?.answer()
    }

    /// Applies faults before a request is executed; fails when it is never executed.
    async fn before(
        &self,
        actor: &Arc<Actor>,
        taken: &Taken<'_>,
        request: &http::Request<Bytes>,
        about: Option<String>,
    ) -> io::Result<()> {
        match taken.mishap {
            Mishap::Unreachable => {
                taken.fired();
                self.unsent(actor, request, taken.mishap.kind());
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            Mishap::Outage(seconds) => {
                taken.fired();
                let until = Instant::now() + Duration::from_secs(u64::from(seconds));
                self.lock().away_until = Some(until);
                // In half of the cases the service had already executed it.
                if seconds % 2 == 1 {
                    self.unsent(actor, request, taken.mishap.kind());
                } else {
                    let exchange = Exchange::of(request, self.clock.now());
                    let exchange = exchange.with(Some(taken.mishap.kind()), false);
                    let _ = self.execute(actor, request.clone(), exchange, None).await;
                }
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Mishap::Busy(for_s, percent, retry_after_s) => {
                self.lock().busy = Some(Busy::begin(for_s, percent, retry_after_s));
            }
            Mishap::CrashBefore => {
                taken.fired();
                self.die(actor);
                std::future::pending::<()>().await;
            }
            Mishap::LateRequest(seconds) | Mishap::LateAndLost(seconds) => {
                taken.fired();
                sleep(seconds).await;
            }
            Mishap::Pause(seconds) => {
                actor.sleeps_for(seconds);
                taken.fired();
                actor.awake().await;
            }
            Mishap::OwnerBefore(act) => {
                self.owner(act, about).await;
                taken.fired();
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies faults to a request that was executed and to its answer.
    async fn after(
        self: &Arc<Self>,
        actor: &Arc<Actor>,
        taken: &Taken<'_>,
        (number, about): (usize, Option<String>),
        answer: io::Result<http::Response<Bytes>>,
    ) -> io::Result<http::Response<Bytes>> {
        match taken.mishap {
            Mishap::AnswerLost | Mishap::LateAndLost(_) => {
                taken.fired();
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Mishap::AnswerCut(_) => {
                taken.fired();
                let (head, _) = answer?.into_parts();
                return broken_off(head, io::ErrorKind::UnexpectedEof.into());
            }
            Mishap::AnswerGarbled(at) => {
                taken.fired();
                return garbled(answer?, at);
            }
            Mishap::CrashAfter => {
                taken.fired();
                self.die(actor);
                std::future::pending::<()>().await;
            }
            Mishap::LateAnswer(seconds) => {
                taken.fired();
                sleep(seconds).await;
                actor.awake().await;
                self.note(&actor.name, Happening::Delivered { number });
            }
            Mishap::CrashLater(ms) => {
                taken.fired();
                let (wire, actor) = (Arc::clone(self), Arc::clone(actor));
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(u64::from(ms))).await;
                    wire.die(&actor);
                });
            }
            Mishap::Stop => {
                taken.fired();
                self.note(&actor.name, Happening::ToldToStop);
                actor.is_told_to_stop();
            }
            Mishap::OwnerAfter(act) => {
                self.owner(act, about).await;
                taken.fired();
            }
            Mishap::Twice | Mishap::Refused(..) | Mishap::Busy(..) => taken.fired(),
            _ => {}
        }
        answer
    }

    fn die(&self, actor: &Actor) {
        if !actor.is_dead() {
            self.note(&actor.name, Happening::Crashed);
            actor.dies();
        }
    }

    async fn owner(&self, act: u8, about: Option<String>) {
        let acts = self.acts().clone();
        if let Some(acts) = acts {
            acts(act, about).await;
        }
    }

    /// Lets the service execute the request, and records it at once: the history is in order of
    /// execution.
    async fn execute(
        &self,
        actor: &Actor,
        request: http::Request<Bytes>,
        mut exchange: Exchange,
        instead: Option<http::Response<Bytes>>,
    ) -> (usize, io::Result<http::Response<Bytes>>) {
        let answer = match instead {
            Some(answer) => Ok(answer),
            None => self.ask(request).await,
        };
        // A paused actor gets it when it resumes, if it still wants it.
        exchange.delivered &= !actor.is_asleep();
        exchange.fate = match &answer {
            Ok(response) => Fate::Answered(Answer::of(response)),
            Err(error) => Fate::NoAnswer(error.to_string()),
        };
        exchange.delivered &= match &answer {
            Ok(answer) => exchange.fault != Some(CUT) || is_refusal(answer.status()),
            Err(_) => false,
        };
        let mut state = self.lock();
        let number = state.history.len();
        state.history.push(Event {
            at: self.clock.now(),
            actor: actor.name.clone(),
            what: Happening::Exchange(Box::new(exchange)),
        });
        (number, answer)
    }

    /// Records a request that did not arrive.
    fn unsent(&self, actor: &Actor, request: &http::Request<Bytes>, kind: &'static str) {
        let exchange = Exchange::of(request, self.clock.now()).with(Some(kind), false);
        self.note(&actor.name, Happening::Exchange(Box::new(exchange)));
    }

    /// Sends a request of the owner for which the client has no method; the path is already signed.
    pub async fn owner_sends(
        self: &Arc<Self>,
        request: http::Request<Bytes>,
    ) -> io::Result<http::Response<Bytes>> {
        let mut way = self.way();
        let answer = self.carry(&Actor::owner(), request, &mut way).await;
        way.number = None;
        answer
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
                stepping(emulator, in_process::call(emulator, request)).await
            }
        }
    }
}

/// Waits for an answer of an emulator and meanwhile runs the steps of its committer, if it is in
/// stepped mode.
pub(super) async fn stepping<T>(emulator: &Emulator, asked: impl IntoFuture<Output = T>) -> T {
    let mut asked = pin!(asked.into_future());
    poll_fn(|context| {
        loop {
            let polled = asked.as_mut().poll(context);
            if polled.is_ready() || emulator.step(usize::MAX).is_none() {
                return polled;
            }
        }
    })
    .await
}

async fn travel(lag: Duration) {
    if !lag.is_zero() {
        tokio::time::sleep(lag).await;
    }
}

/// Returns the path of the blob that a request wants to remove.
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
