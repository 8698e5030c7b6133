//! Each message while a listener has it, from the get to the decision: LS3, LS4, LS5, LS7, the
//! alarm of LL2, and whether the log tells what happened.

use std::collections::BTreeMap;
use std::time::Duration;

use smalt_listener::{Ended, Outcome};
use smalt_protocol::Timestamp;

use super::message::{is_unclear, put_at, taken};
use super::owner::Owner;
use crate::scenario::campaign::Violation;
use crate::scenario::faults::BUSY;
use crate::scenario::history::{Event, Exchange, Fate, Happening};
use crate::scenario::listen::plan::{HANDLER_TIMEOUT_S, ListenPlan};
use crate::scenario::listen::shape::RETRY_S;
use crate::scenario::listen::{Names, Seen};
use crate::scenario::marks::{Marks, mark};

/// Times on the wire are whole seconds.
const ROUNDING: Duration = Duration::from_secs(1);
/// The time that a cancelled handler has to end in, and some time for the requests around it.
const CANCELLED_WITHIN: Duration = Duration::from_secs(4);
/// A listener with renewal tries until this time is left of the lock.
const LAST_ATTEMPT: Duration = Duration::from_secs(3);
/// Number of times that the storage client sends a request before it leaves it to the listener.
const CLIENT_TRIES: u32 = 5;
/// Requests with this fault are executed twice.
const TWICE: &str = "delivered twice";
/// Visibility timeout in seconds, and rate, below which there is no time to try again.
const TRIES_FROM: (u16, u32) = (8, 100);

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Crashed,
    Left(Ended),
}

struct Hands<'a> {
    plan: &'a ListenPlan,
    names: &'a Names,
    history: &'a [Event],
    owners: Vec<Owner>,
    ends: BTreeMap<String, End>,
    slept: Vec<Timestamp>,
    calm: bool,
    violations: &'a mut Vec<Violation>,
    marks: &'a mut Marks,
}

pub(super) fn check(
    history: &[Event],
    plan: &ListenPlan,
    names: &Names,
    violations: &mut Vec<Violation>,
    marks: &mut Marks,
) {
    let mut hands = Hands {
        plan,
        names,
        history,
        owners: Vec::new(),
        ends: BTreeMap::new(),
        slept: Vec::new(),
        calm: plan.is_calm(),
        violations,
        marks,
    };
    for (number, event) in history.iter().enumerate() {
        hands.event(number, event);
    }
    hands.end();
}

impl Hands<'_> {
    fn violated(&mut self, property: &'static str, number: usize, what: String) {
        self.violations.push(Violation::at(property, number, what));
    }

    fn event(&mut self, number: usize, event: &Event) {
        match &event.what {
            Happening::Exchange(exchange) => {
                self.sent(number, event, exchange);
                if exchange.is_told() {
                    self.told(event, exchange);
                }
            }
            Happening::Delivered { number } => {
                if let Some(Happening::Exchange(exchange)) =
                    self.history.get(*number).map(|event| &event.what)
                {
                    self.told(event, exchange);
                }
            }
            Happening::Crashed => {
                self.ends.insert(event.actor.clone(), End::Crashed);
            }
            Happening::Calm => self.calm = true,
            Happening::Started { id, count, .. } => self.started(number, event, id, *count),
            Happening::Handled { id, count, verdict } => {
                self.ended(number, event, (id, *count), verdict);
            }
            Happening::ToldToStop => {
                let mine = |owner: &Owner| owner.actor == event.actor && owner.is_running();
                if self.owners.iter().any(mine) {
                    mark(self.marks, "told to stop with work in flight");
                }
            }
            Happening::Ended(_) => {}
            Happening::Listener(seen) => self.seen(number, event, seen),
        }
    }

    fn seen(&mut self, number: usize, event: &Event, seen: &Seen) {
        match seen {
            Seen::Slept(for_s) => {
                self.slept.extend([event.at, event.at.plus_s(*for_s)]);
            }
            Seen::Left(ended) => {
                self.ends.insert(event.actor.clone(), End::Left(*ended));
            }
            Seen::Decided {
                id,
                count,
                outcome,
                expiring,
            } => self.decided(number, event, (id, *count), *outcome, *expiring),
            _ => {}
        }
    }

    /// Returns the index of the owner with this receipt.
    fn holder(&self, actor: &str, id: &str, receipt: &str) -> Option<usize> {
        let is = |o: &Owner| o.id == id && o.receipt == receipt && o.actor == actor;
        self.owners.iter().rposition(is)
    }

    fn of(&self, actor: &str, id: &str, wanted: impl Fn(&Owner) -> bool) -> Option<usize> {
        let is = |o: &Owner| o.id == id && o.actor == actor && wanted(o);
        self.owners.iter().rposition(is)
    }

    /// LS4: checks that nothing is acknowledged after a lock is lost, or twice.
    fn sent(&mut self, number: usize, event: &Event, exchange: &Exchange) {
        let (_, queue, rest) = exchange.segments();
        if exchange.method == "POST" && queue == self.names.poison && rest == "messages" {
            return self.copied(number, event, exchange);
        }
        let Some(id) = rest.strip_prefix("messages/") else {
            return;
        };
        let receipt = exchange.parameter("popreceipt").unwrap_or_default();
        let Some(at) = self.holder(&event.actor, id, receipt) else {
            return;
        };
        let owner = &mut self.owners[at];
        if owner.lost.is_some_and(|lost| exchange.sent >= lost) {
            let what = format!("{} settles {id}, which it has lost or deleted", event.actor);
            return self.violated("LS4", number, what);
        }
        owner.unsure |= is_unclear(exchange);
        owner.failed = exchange.done().is_none() || !exchange.is_told();
        if exchange.method == "PUT" {
            owner.asked = exchange.sent;
            let asked = exchange.parameter("visibilitytimeout");
            owner.hidden_s = asked.and_then(|text| text.parse().ok());
        } else {
            let early = owner.not_before.is_some_and(|at| exchange.sent < at);
            owner.deletes += 1;
            if exchange.fault == Some(BUSY) {
                owner.refused += 1;
                if owner.refused == CLIENT_TRIES {
                    mark(self.marks, "delete refused beyond the client's tries");
                }
            } else if owner.refused > 0 && exchange.done().is_some() {
                mark(self.marks, "deleted after a busy service refused it");
            }
            // Where the network delivers a request twice, the sender cannot know that the first one
            // succeeded; the answer tells it whether the second one did.
            let known = exchange.fault != Some(TWICE) || exchange.is_told();
            owner.deleted |= exchange.done().is_some() && known;
            if early {
                let what = format!("{} repeats the delete of {id} too early", event.actor);
                return self.violated("D4", number, what);
            }
        }
        let owner = &self.owners[at];
        let unclear = exchange.done().is_some() && !exchange.is_told();
        if unclear && owner.until <= event.at.plus(LAST_ATTEMPT) {
            mark(
                self.marks,
                match exchange.method.as_str() {
                    "DELETE" => "delete unclear at the end of its lock",
                    _ => "update unclear at the end of its lock",
                },
            );
        }
    }

    /// LS4: checks that only the owner of a message copies it to the poison queue, and only once.
    fn copied(&mut self, number: usize, event: &Event, exchange: &Exchange) {
        let text = smalt_protocol::xml::read_queue_message(&exchange.body).unwrap_or_default();
        let envelope: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let id = envelope["id"].as_str().unwrap_or_default();
        let Some(at) = self.of(&event.actor, id, |owner| owner.decided.is_none()) else {
            return;
        };
        let told = exchange.done().is_some() && exchange.is_told();
        if std::mem::replace(&mut self.owners[at].copied, told) {
            let what = format!("{} copies {id} again", event.actor);
            self.violated("LS4", number, what);
        }
        let (until, got_at) = (self.owners[at].until, self.owners[at].got_at);
        let known = self.calm || !self.plan.hides_requests();
        if exchange.sent > until.plus(ROUNDING) && known && !self.slept_since(got_at) {
            let what = format!(
                "{} copies {id}, which it had until {}",
                event.actor,
                until.iso_s()
            );
            self.violated("LS4", number, what);
        }
    }

    /// Records what a life learns about its locks from an answer.
    fn told(&mut self, event: &Event, exchange: &Exchange) {
        let Fate::Answered(answer) = &exchange.fate else {
            return;
        };
        let (_, _, rest) = exchange.segments();
        if exchange.method == "GET" && rest == "messages" && answer.status == 200 {
            for message in taken(&answer.text()) {
                self.owners.push(Owner::new(event, exchange, &message));
            }
            return;
        }
        let Some(id) = rest.strip_prefix("messages/") else {
            return;
        };
        let receipt = exchange.parameter("popreceipt").unwrap_or_default();
        let Some(at) = self.holder(&event.actor, id, receipt) else {
            return;
        };
        let owner = &mut self.owners[at];
        let code = answer.header("x-ms-error-code").unwrap_or_default();
        let after_s = answer.header("retry-after").and_then(|s| s.parse().ok());
        if exchange.method == "DELETE" {
            owner.not_before = after_s.map(|after_s| event.at.plus_s(after_s));
            if after_s.is_some() {
                mark(self.marks, "delete asked to wait");
            }
            if exchange.done().is_some() {
                owner.lost = Some(event.at);
            }
        }
        if answer.status == 404 || code == "PopReceiptMismatch" {
            owner.told_late |= exchange.method == "DELETE";
            if !std::mem::take(&mut owner.unsure) {
                owner.lost = owner.lost.or(Some(event.at));
            }
            if owner.is_running() {
                mark(self.marks, "lock lost while its handler ran");
            }
        } else if exchange.method == "PUT" && (200..300).contains(&answer.status) {
            let header = |name| answer.header(name).unwrap_or_default();
            owner.receipt = header("x-ms-popreceipt").to_owned();
            let until = Timestamp::parse_rfc1123(header("x-ms-time-next-visible"));
            owner.until = until.unwrap_or(Timestamp::MIN);
            owner.unsure = false;
            if owner.is_running() {
                mark(self.marks, "lock renewed");
            }
        }
    }

    /// LS4, LS7: checks that a handler starts with enough visibility time, while no other one has
    /// the message, and within the limit of running handlers.
    fn started(&mut self, number: usize, event: &Event, id: &str, count: u32) {
        let (actor, now) = (event.actor.as_str(), event.at);
        for other in 0..self.owners.len() {
            let owner = &self.owners[other];
            let crashed = self.ends.get(&owner.actor) == Some(&End::Crashed);
            if owner.id == id && owner.is_running() && owner.until > now && !crashed {
                let what = format!("{} already runs {id} and owns it", owner.actor);
                self.violated("LS4", number, what);
            }
        }
        let believed = |o: &Owner| o.deletes > 0 && o.ended.is_some_and(|(_, v)| v == "ok");
        if self.of(actor, id, believed).is_some() {
            let what = format!("{actor} runs {id} again, although it had finished it");
            self.violated("DL16", number, what);
        }
        let Some(at) = self.of(actor, id, |owner| owner.count == count) else {
            return self.violated(
                "LS4",
                number,
                format!("{actor} runs {id}, which it never got"),
            );
        };
        let visibility = Duration::from_secs(u64::from(self.plan.shape.visibility_s));
        let least = (visibility / 4).min(Duration::from_secs(5));
        let (until, got_at) = (self.owners[at].until, self.owners[at].got_at);
        if until.plus(ROUNDING) < now.plus(least) && !self.slept_since(got_at) {
            let what = format!("{id} is hidden until {} only", until.iso_ticks());
            self.violated("LS4", number, what);
        }
        self.owners[at].started = Some(now);
        let mine = |owner: &&Owner| owner.actor == actor && owner.is_running();
        let running = self.owners.iter().filter(mine).count();
        let shape = &self.plan.shape;
        let most = shape.tasks_max.max(shape.floor()) * shape.slots * shape.queues_max();
        if running > usize::try_from(most).unwrap_or(usize::MAX) {
            let what = format!("{actor} runs {running} handlers, {most} allowed");
            self.violated("LS7", number, what);
        }
    }

    /// LS4: checks that a handler does not outlive its lock.
    fn ended(
        &mut self,
        number: usize,
        event: &Event,
        (id, count): (&str, u32),
        verdict: &'static str,
    ) {
        let this = |owner: &Owner| owner.count == count && owner.is_running();
        let Some(at) = self.of(&event.actor, id, this) else {
            return;
        };
        let now = event.at;
        self.owners[at].ended = Some((now, verdict));
        let owner = &self.owners[at];
        let (until, lost, asked, got_at) = (owner.until, owner.lost, owner.asked, owner.got_at);
        let mortal = owner.expires.is_some();
        if self.ends.get(&event.actor) == Some(&End::Crashed) || self.slept_since(got_at) {
            return;
        }
        let lag = Duration::from_millis(2 * self.plan.shape.lag_ms);
        if lost.is_some_and(|lost| lost.plus(CANCELLED_WITHIN + lag) < now) {
            let what = format!(
                "{} still ran {id} after it learned that it had lost it",
                event.actor
            );
            return self.violated("LS4", number, what);
        }
        if until.plus(ROUNDING) >= now || mortal {
            return;
        }
        let shape = &self.plan.shape;
        if !shape.renew {
            let what = format!("{} ran {id} beyond {}", event.actor, until.iso_s());
            self.violated("LS4", number, what);
        } else if shape.visibility_s >= TRIES_FROM.0
            && shape.request_rate() >= TRIES_FROM.1
            && !self.plan.hides_requests()
            && asked.plus(LAST_ATTEMPT) < until
        {
            let what = format!("{} gave up {id} at {}", event.actor, asked.iso_ticks());
            self.violated("LS4", number, what);
        }
    }

    fn slept_since(&self, at: Timestamp) -> bool {
        self.slept.iter().any(|slept| *slept >= at)
    }

    /// Checks a decision in the log against the history.
    fn decided(
        &mut self,
        number: usize,
        event: &Event,
        (id, count): (&str, u32),
        outcome: Outcome,
        expiring: bool,
    ) {
        let open = |owner: &Owner| owner.count == count && owner.decided.is_none();
        let Some(at) = self.of(&event.actor, id, open) else {
            let what = format!("{} decided about {id}, which it never got", event.actor);
            return self.violated("log", number, what);
        };
        mark(self.marks, outcome.name());
        self.owners[at].decided = Some(outcome);
        let owner = &self.owners[at];
        if let Some(why) = self.untrue(owner, outcome) {
            let what = format!(
                "{} says that {id} is {}: {why}",
                event.actor,
                outcome.name()
            );
            return self.violated("log", number, what);
        }
        let most = self.plan.shape.max_dequeue;
        if outcome == Outcome::Retried && count >= most {
            let what = format!("{id} is to be tried again after attempt {count} of {most}");
            return self.violated("LS5", number, what);
        }
        if let Some(why) = self.wrong_delay(owner, outcome) {
            return self.violated("LS8", number, format!("{id}: {why}"));
        }
        if !expiring && self.needs_alarm(owner, outcome, event.at) {
            let what = format!("{id} is about to expire, without an alarm");
            self.violated("LL2", number, what);
        } else if expiring {
            mark(self.marks, "expiry alarm");
        }
    }

    fn untrue(&self, owner: &Owner, outcome: Outcome) -> Option<&'static str> {
        let said_gone = matches!(
            outcome,
            Outcome::Done | Outcome::Poisoned | Outcome::DuplicateDeleted
        );
        match outcome {
            Outcome::Done if !owner.deleted && !owner.told_late => Some("it is not deleted"),
            Outcome::Released if owner.hidden_s != Some(0) => Some("it is not released"),
            // Its own lost delete succeeded; the 404 after it shows that.
            _ if owner.deleted && owner.told_late && !said_gone => Some("its delete succeeded"),
            // A fault from before the calm may last: an outage, a late answer.
            Outcome::ReleaseFailed if self.calm && owner.nothing_failed() => Some("nothing failed"),
            _ => None,
        }
    }

    /// Checks the delay of a retry: it must be the configured one, or the one that the handler
    /// asked for.
    fn wrong_delay(&self, owner: &Owner, outcome: Outcome) -> Option<String> {
        let ((ended, verdict), sent) = (owner.ended?, owner.hidden_s?);
        if outcome != Outcome::Retried || owner.expires.is_some() {
            return None;
        }
        let attempt = usize::try_from(owner.count).ok()?.checked_sub(1)?;
        let curve = RETRY_S.get(attempt).or(RETRY_S.last()).copied()?;
        let body = self
            .history
            .iter()
            .rev()
            .find_map(|event| match &event.what {
                Happening::Started { id, body, .. } if *id == owner.id => Some(body),
                _ => None,
            })?;
        let asked = self.plan.behaviour_of(body)?.asks_for_s().map(u64::from);
        let wanted = asked.filter(|_| verdict == "retry").unwrap_or(curve);
        // The payload arrived late; the result of a handler after its timeout is ignored.
        let late = owner.got_at.plus_s(HANDLER_TIMEOUT_S.into()) <= ended && sent == curve;
        (sent != wanted && !late).then(|| format!("hidden for {sent} s, not {wanted} s"))
    }

    /// LL2: whether a decision must warn about a message that can only be taken again in the last
    /// tenth of its lifetime.
    fn needs_alarm(&self, owner: &Owner, outcome: Outcome, now: Timestamp) -> bool {
        let over = matches!(
            outcome,
            Outcome::Done | Outcome::Gone | Outcome::Poisoned | Outcome::DuplicateDeleted
        );
        let Some(expires) = owner.expires.filter(|_| !over) else {
            return false;
        };
        let life = expires.since(put_at(self.history, &owner.id).unwrap_or(now));
        // The time that it asked for: the answer may have been lost.
        let back = match (outcome, owner.hidden_s) {
            (Outcome::Retried, Some(hidden_s)) => owner.asked.plus_s(hidden_s).max(now),
            _ => now,
        };
        let looked = back.plus(self.plan.shape.longest_sleep());
        looked >= expires.minus(life / 10).plus(2 * ROUNDING)
    }

    /// LS3: checks that a life decides about every message that it got, unless it crashes.
    fn end(&mut self) {
        let mut found = Vec::new();
        // An answer that reaches a sleeping machine may be older than the timeout of its request.
        let reach = Duration::from_millis(2 * self.plan.shape.lag_ms);
        let asleep = |at: Timestamp| {
            let spans = |s: &[Timestamp]| s[0] <= at.plus(reach) && at <= s[1];
            self.slept.chunks_exact(2).any(spans)
        };
        let undecided = |o: &&Owner| o.decided.is_none() && !asleep(o.got_at);
        for owner in self.owners.iter().filter(undecided) {
            let left = self.ends.get(&owner.actor);
            if owner.actor != "stranger" && left == Some(&End::Left(Ended::Drained)) {
                let what = format!("{} got {} and never decided", owner.actor, owner.id);
                found.push(Violation::of_run("LS3", what));
            }
        }
        self.violations.extend(found);
    }
}
