//! Checks a listener's run from its history alone.
//!
//! - Here, message by message: LS1, LS2, LS5, LS6, LS3 and LL2 at the end.
//! - [`owners`]: each message while a listener has it: LS3, LS4, LS5, the alarm of LL2, the log.
//! - [`pace`]: numbers and times: LS7 to LS10, LL1, LL3, LL4, and unnecessary requests.
//! - [`fleet`]: all listeners together: one idle poller, one budget, and the alarm during a run.
//!
//! LL5 has no check of its own: clocks that are off must not change what the other checks see.

mod arrivals;
mod fleet;
mod message;
mod owner;
mod owners;
mod pace;
mod pauses;
mod payloads;
mod sometimes;
#[cfg(test)]
mod twice_tests;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_protocol::xml::read_queue_message;
use smalt_sleeve::port::CallContext;

use self::message::{Known, never_expires, taken};
use self::payloads::Payloads;
pub(super) use self::sometimes::SOMETIMES;
use super::plan::{ListenPlan, WAVE_FIRST, Wave};
use super::{Behaviour, Names, Seen};
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Clocks, Event, Exchange, Fate, Happening, element};
use crate::scenario::marks::{DRIFTED, Marks, mark, tested};

struct Judge<'a> {
    plan: &'a ListenPlan,
    names: &'a Names,
    history: &'a [Event],
    messages: BTreeMap<String, Known>,
    /// Pop receipts that the same owner of a message has replaced by an update, with the time from
    /// which on a request can be sent that knows of it: a distant sender learns of it later. A
    /// later get of the same life makes a new owner, whose receipt replaces nothing.
    replaced: BTreeMap<(String, String), Timestamp>,
    /// Messages that a life got and has not been seen to finish.
    held: BTreeSet<(String, String)>,
    /// Messages of which a life knows that it has put a copy into the poison queue.
    copied: BTreeSet<(String, String)>,
    payloads: Payloads,
    /// The last trigger that reached a listener.
    last_woken: Option<(String, Timestamp)>,
    clocks: Clocks,
    violations: Vec<Violation>,
    marks: Marks,
}

/// Returns the violations and marks of a run. Times are checked only where time is virtual.
pub(super) fn check(
    history: &[Event],
    plan: &ListenPlan,
    names: &Names,
    is_virtual: bool,
) -> (Vec<Violation>, Marks) {
    let mut judge = Judge {
        plan,
        names,
        history,
        messages: BTreeMap::new(),
        replaced: BTreeMap::new(),
        held: BTreeSet::new(),
        copied: BTreeSet::new(),
        payloads: Payloads::new(plan),
        last_woken: None,
        clocks: Clocks::default(),
        violations: Vec::new(),
        marks: Marks::new(),
    };
    for (number, event) in history.iter().enumerate() {
        judge.event(number, event);
    }
    judge.end();
    let shape = &plan.shape;
    let off = |skew: &i32| skew.unsigned_abs() > u32::from(shape.visibility_s);
    if shape
        .skew_s
        .iter()
        .take(usize::from(shape.workers))
        .any(off)
    {
        judge.mark("clock off beyond the visibility");
    }
    let (mut violations, mut marks) = (judge.violations, judge.marks);
    if is_virtual {
        owners::check(history, plan, names, &mut violations, &mut marks);
        fleet::check_all(history, plan, &mut violations, &mut marks);
        pace::arrivals(history, plan, names, &mut violations, &mut marks);
        for queue in plan.shape.queues_at_last(names) {
            let (view, numbers) = views::of(history, &queue, names);
            let names = Names {
                queue,
                ..names.clone()
            };
            let first = violations.len();
            pace::check(&view, plan, &names, &mut violations, &mut marks);
            fleet::check_queue(&view, plan, &names, &mut violations, &mut marks);
            for violation in &mut violations[first..] {
                violation.at = violation.at.and_then(|at| numbers.get(at).copied());
            }
        }
    }
    tested(&mut marks, sometimes::TESTS);
    (violations, marks)
}

impl Judge<'_> {
    fn violated(&mut self, property: &'static str, number: usize, what: String) {
        self.violations.push(Violation::at(property, number, what));
    }

    fn mark(&mut self, name: &'static str) {
        mark(&mut self.marks, name);
    }

    fn event(&mut self, number: usize, event: &Event) {
        match &event.what {
            Happening::Exchange(exchange) => self.exchange(number, event, exchange),
            Happening::Delivered { number: of } => {
                if let Some(Happening::Exchange(exchange)) = self.history.get(*of).map(|e| &e.what)
                {
                    self.told(event, exchange);
                }
            }
            Happening::Crashed => self.crashed(&event.actor),
            Happening::Listener(seen) => {
                if *seen == Seen::Woken {
                    self.woken(event);
                }
                self.seen(seen);
            }
            Happening::Started { id, count, body } => {
                self.started(number, &event.actor, (id, *count, body));
            }
            Happening::Handled { id, verdict, .. } => {
                self.mark(match *verdict {
                    "ok" => "handler done",
                    "panic" => "handler panicked",
                    "reject" => "handler rejected",
                    "dropped" => "handler dropped",
                    _ => "handler asked for a retry",
                });
                if let Some(known) = self.messages.get_mut(id) {
                    known.done |= *verdict == "ok";
                }
            }
            _ => {}
        }
    }

    fn crashed(&mut self, actor: &str) {
        self.mark("worker died");
        for (of, id) in &self.held {
            if let Some(known) = self.messages.get_mut(id).filter(|_| of == actor) {
                known.orphaned = true;
            }
        }
    }

    /// Counts triggers that reach two listeners at different times.
    fn woken(&mut self, event: &Event) {
        let woken = (event.actor.clone(), event.at);
        let last = self.last_woken.replace(woken);
        let near = |at: Timestamp| at < event.at && event.at < at.plus(Duration::from_secs(3));
        if last.is_some_and(|(actor, at)| actor != event.actor && near(at)) {
            self.mark("listeners woken apart");
        }
    }

    fn seen(&mut self, seen: &Seen) {
        match seen {
            Seen::QueueDeleted => {
                self.mark("queue deleted");
                for known in self.messages.values_mut() {
                    known.swept_away |= !known.deleted;
                }
            }
            Seen::Slept(_) => self.mark("machine slept"),
            Seen::Woken => self.mark("trigger sent"),
            Seen::Unreliable { copies: 0 } => self.mark("trigger lost"),
            Seen::Unreliable { .. } => self.mark("trigger doubled"),
            _ => {}
        }
    }

    fn exchange(&mut self, number: usize, event: &Event, exchange: &Exchange) {
        let actor = event.actor.as_str();
        let (_, queue, rest) = exchange.segments();
        let id = rest.strip_prefix("messages/").map(str::to_owned);
        let context = exchange.header("x-ms-client-request-id");
        if actor.starts_with("listener-") && !CallContext::safe(context.unwrap_or_default()).muted {
            let what = format!("{} {} is not muted", exchange.method, exchange.path);
            self.violated("G8", number, what);
        }
        if actor != "owner" && exchange.method == "PUT" && rest.ends_with(".partitions.json") {
            let dropped = exchange.done().is_some();
            if dropped {
                self.mark("queue of several dropped when it was empty");
            }
        }
        if queue == payloads::CONTAINER {
            let of = |id: &str| self.messages.get(id);
            let wrong = self.payloads.exchange(event, exchange, of, &mut self.marks);
            if let Some(what) = wrong {
                self.violated("LS6", number, what);
            }
        }
        match (actor == "owner", exchange.method.as_str(), id) {
            (true, "POST", _) if self.names.is_queue(&queue) => self.put(number, exchange),
            (true, ..) => {}
            (_, "GET", None) if rest == "messages" => self.got(number, exchange),
            (_, "POST", None) if queue == self.names.poison => {
                self.poisoned(number, actor, exchange);
            }
            (_, "PUT" | "DELETE", Some(id)) => self.used(number, actor, exchange, &id),
            _ => {}
        }
        if actor != "owner" {
            self.mark_fate(exchange);
            let (_, past) = self.clocks.seen(event, exchange);
            // A request that was long on its way shows an older date.
            if past && self.plan.shape.drift_s.is_some() {
                self.mark(DRIFTED);
            }
        }
        if exchange.is_told() {
            self.told(event, exchange);
        }
    }

    fn mark_fate(&mut self, exchange: &Exchange) {
        match &exchange.fate {
            Fate::NoAnswer(_) => self.mark("connection reset"),
            Fate::Answered(answer) if answer.status == 503 => {
                self.mark("503");
                if answer.header("retry-after").is_some() {
                    self.mark("503 with Retry-After");
                }
            }
            Fate::Answered(answer) if answer.status == 403 => self.mark("clock refused"),
            Fate::Answered(_) if !exchange.delivered => {
                self.mark(match exchange.method.as_str() {
                    "GET" => "answer lost: get",
                    "DELETE" => "answer lost: delete",
                    "PUT" => "answer lost: update",
                    _ => "answer lost: put",
                });
            }
            Fate::Answered(answer) => match answer.header("x-ms-error-code") {
                Some("PopReceiptMismatch") => self.mark("receipt mismatch"),
                Some("QueueNotFound") => self.mark("queue missing"),
                _ => {}
            },
        }
    }

    /// Records a message of the owner: only the service knows its id.
    fn put(&mut self, at: usize, exchange: &Exchange) {
        let Some(answer) = exchange.done() else {
            return;
        };
        let stored = read_queue_message(&exchange.body).unwrap_or_default();
        let text = answer.text();
        let number = self
            .payloads
            .number_of(self.plan, &stored)
            .or_else(|| self.plan.number_of_stored(&stored));
        if let (Some(id), Some(number)) = (element(&text, "MessageId"), number) {
            let expires = element(&text, "ExpirationTime").and_then(Timestamp::parse_rfc1123);
            let known = Known {
                number,
                stored: stored.clone(),
                expires: expires.filter(|expires| !never_expires(*expires)),
                ..Known::default()
            };
            let early = self.payloads.belongs(number, id, known.expires);
            self.messages.insert(id.to_owned(), known);
            if let Some(what) = early {
                self.violated("LS6", at, what);
            }
        }
    }

    /// Counts how often each message was really taken.
    fn got(&mut self, number: usize, exchange: &Exchange) {
        let Some(answer) = exchange.done() else {
            return;
        };
        for message in taken(&answer.text()) {
            let Some(known) = self.messages.get_mut(message.id) else {
                continue;
            };
            known.gets += 1;
            if message.count != known.gets {
                let (count, gets) = (message.count, known.gets);
                let what = format!("taken {gets} times, but the service counts {count}");
                self.violations.push(Violation::at("service", number, what));
            }
        }
    }

    /// Records what a life learns from an answer.
    fn told(&mut self, event: &Event, exchange: &Exchange) {
        let actor = event.actor.as_str();
        let Some(answer) = exchange.done() else {
            return;
        };
        let (_, _, rest) = exchange.segments();
        match (exchange.method.as_str(), rest.strip_prefix("messages/")) {
            ("GET", None) if rest == "messages" => {
                for message in taken(&answer.text()) {
                    self.held.insert((actor.to_owned(), message.id.to_owned()));
                }
            }
            ("PUT", Some(id)) => {
                let used = exchange.parameter("popreceipt").unwrap_or_default();
                // The answer takes as long as the next request will.
                let lag = Duration::from_millis(2 * self.plan.shape.lag_ms);
                let replaced = (id.to_owned(), used.to_owned());
                self.replaced.insert(replaced, event.at.plus(lag));
            }
            ("DELETE", Some(id)) => {
                self.held.remove(&(actor.to_owned(), id.to_owned()));
            }
            _ => {}
        }
    }

    /// LS1 and LS2: checks an update or delete of a message.
    fn used(&mut self, number: usize, actor: &str, exchange: &Exchange, id: &str) {
        let used = exchange.parameter("popreceipt").unwrap_or_default();
        let replaced = self.replaced.get(&(id.to_owned(), used.to_owned()));
        if replaced.is_some_and(|known| *known <= exchange.sent) {
            let what = format!("{actor} used {used} on {id}, which it has replaced before");
            self.violated("LS2", number, what);
        }
        if exchange.method == "DELETE" && exchange.done().is_some() {
            let Some(known) = self.messages.get_mut(id) else {
                return;
            };
            known.deleted = true;
            if !known.done && known.poisoned == 0 {
                let what = format!("{actor} deleted {id}, neither done nor in the poison queue");
                self.violated("LS1", number, what);
            }
        }
    }

    /// Checks a copy in the poison queue: it names its message, never expires, and is complete.
    fn poisoned(&mut self, number: usize, actor: &str, exchange: &Exchange) {
        if exchange.done().is_none() {
            return;
        }
        self.mark("copy in the poison queue");
        if exchange.parameter("messagettl") != Some("-1") {
            let what = format!("its time to live is {:?}", exchange.parameter("messagettl"));
            self.violated("LS1", number, what);
        }
        let text = read_queue_message(&exchange.body).unwrap_or_default();
        let envelope: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let id = envelope["id"].as_str().unwrap_or_default().to_owned();
        let Some(known) = self.messages.get_mut(&id) else {
            return self.violated("LS1", number, format!("copies an unknown message: {text}"));
        };
        let copy = (actor.to_owned(), id.clone());
        if self.copied.contains(&copy) {
            let what = format!("{actor} copies {id} again");
            self.violations.push(Violation::at("LS6", number, what));
        }
        if exchange.is_told() {
            self.copied.insert(copy);
        }
        known.poisoned += 1;
        let (of, orphaned, stored) = (known.number, known.orphaned, known.stored.clone());
        if orphaned {
            self.mark("poisoned after a crash");
        }
        if envelope["body"].as_str() != Some(stored.as_str()) {
            let what = format!("the poison copy is {}, not {stored:?}", envelope["body"]);
            self.violated("LS6", number, what);
        }
        if let Some(what) = self.payloads.poisoned(of, &mut self.marks) {
            self.violated("LS6", number, what);
        }
    }

    /// LS5, LS6: checks the start of a handler.
    fn started(&mut self, number: usize, actor: &str, (id, count, body): (&str, u32, &str)) {
        let Some(known) = self.messages.get(id) else {
            return self.violated("LS6", number, format!("{id} was never put"));
        };
        let (gets, of, done) = (known.gets, known.number, known.done);
        let due = (self.payloads).started(actor, (id, known), &mut self.marks);
        if let Some(what) = due {
            self.violated("LS6", number, what);
        }
        if gets > self.plan.shape.max_dequeue {
            let what = format!("{id} was taken {gets} times, its dequeue count is {count}");
            self.violated("LS5", number, what);
        }
        if body != self.plan.body(of) {
            self.violated("LS6", number, format!("the handler got {id} as {body}"));
        }
        if done {
            self.mark("handled again after it was done");
        }
    }

    /// LS3 and LL2: each message came to an end that its own behaviour and its dequeue count allow,
    /// whatever happened to the others.
    fn end(&mut self) {
        let most = self.plan.shape.max_dequeue;
        let over = self.history.last().map_or(Timestamp::MIN, |event| event.at);
        let mut found = self.payloads.left(&self.messages, &mut self.marks);
        let mut put = 0;
        for (id, known) in &self.messages {
            put += 1;
            let behaviour = self
                .plan
                .behaviour(known.number)
                .unwrap_or(Behaviour::Ok(0));
            let name = format!("{id} (m{:04}, {behaviour:?})", known.number);
            let expired = known.expires.is_some_and(|expires| expires <= over);
            if !known.deleted && !expired && !known.swept_away {
                found.push(Violation::of_run("LL2", format!("{name} is still queued")));
            }
            if expired && !known.deleted {
                mark(&mut self.marks, "expired");
            }
            let never = behaviour.failures().is_none_or(|failures| failures >= most);
            if never && known.done {
                let what = format!("{name} was done after more than {most} gets");
                found.push(Violation::of_run("LS5", what));
            }
            let excused = never || known.gets >= most || too_slow(self.plan, behaviour);
            if known.poisoned > 0 && !excused {
                let what = format!("{name} was poisoned after {} of {most}", known.gets);
                found.push(Violation::of_run("LS3", what));
            }
        }
        if put < self.plan.messages.len() || (put > WAVE_FIRST && self.plan.wave == Wave::None) {
            found.push(Violation::of_run("run", "not every message was put"));
        }
        self.violations.extend(found);
    }
}

/// Whether a handler without renewal needs more time than one visibility timeout.
fn too_slow(plan: &ListenPlan, behaviour: Behaviour) -> bool {
    let ms = match behaviour {
        Behaviour::Slow(seconds) => u64::from(seconds) * 1_000,
        Behaviour::Ok(ms) => u64::from(ms),
        _ => 0,
    };
    // The end of a lock is reserved for cancelling the handler.
    !plan.shape.renew && ms + 4_000 >= u64::from(plan.shape.visibility_s) * 1_000
}
