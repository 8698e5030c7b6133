//! Judges a listener's run by its history alone (LS1 to LS7, LL2).

use std::collections::{BTreeMap, BTreeSet};

use smalt_protocol::Timestamp;
use smalt_protocol::xml::read_queue_message;

use super::Names;
use super::plan::ListenPlan;
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Event, Exchange, Fate, Happening, element, elements};
use crate::scenario::marks::{self, Marks};

/// Bounds of Get Messages: `numofmessages` and `visibilitytimeout` (7 days).
const GET_COUNT: std::ops::RangeInclusive<u64> = 1..=32;
const GET_VISIBILITY_S: std::ops::RangeInclusive<u64> = 1..=604_800;

/// What is known about one message.
#[derive(Default)]
struct Known {
    number: usize,
    gets: u32,
    done: bool,
    deleted: bool,
    poisoned: u32,
}

struct Judge<'a> {
    plan: &'a ListenPlan,
    names: &'a Names,
    history: &'a [Event],
    messages: BTreeMap<String, Known>,
    /// What a life was last told about a message: its receipt, and until when it has it.
    grants: BTreeMap<(String, String), (String, Timestamp)>,
    /// Receipts that the same owner of a message has replaced by an update. A later get of the same
    /// life is another owner: its receipt replaces nothing.
    replaced: BTreeSet<(String, String)>,
    violations: Vec<Violation>,
    marks: Marks,
}

/// What does not hold, and what was seen.
pub(super) fn check(
    history: &[Event],
    plan: &ListenPlan,
    names: &Names,
) -> (Vec<Violation>, Marks) {
    let mut judge = Judge {
        plan,
        names,
        history,
        messages: BTreeMap::new(),
        grants: BTreeMap::new(),
        replaced: BTreeSet::new(),
        violations: Vec::new(),
        marks: Marks::new(),
    };
    for (number, event) in history.iter().enumerate() {
        judge.event(number, event);
    }
    judge.end();
    (judge.violations, judge.marks)
}

impl Judge<'_> {
    fn violated(&mut self, property: &'static str, number: usize, what: String) {
        self.violations.push(Violation::at(property, number, what));
    }

    fn mark(&mut self, mark: &'static str) {
        marks::mark(&mut self.marks, mark);
    }

    fn event(&mut self, number: usize, event: &Event) {
        match &event.what {
            Happening::Exchange(exchange) => self.exchange(number, &event.actor, exchange),
            Happening::Delivered { number: of } => {
                if let Some(Happening::Exchange(exchange)) = self.history.get(*of).map(|e| &e.what)
                {
                    self.told(&event.actor, exchange);
                }
            }
            Happening::Crashed => self.mark("worker died"),
            Happening::Calm | Happening::ToldToStop | Happening::Ended(_) => {}
            Happening::Started { id, count, body } => {
                self.started(number, event, (id, *count, body));
            }
            Happening::Handled { id, verdict } => {
                self.mark(match *verdict {
                    "ok" => "handler done",
                    "panic" => "handler panicked",
                    "reject" => "handler rejected",
                    _ => "handler asked for a retry",
                });
                if let Some(known) = self.messages.get_mut(id) {
                    known.done |= *verdict == "ok";
                }
            }
        }
    }

    fn exchange(&mut self, number: usize, actor: &str, exchange: &Exchange) {
        let (_, queue, rest) = exchange.segments();
        let id = rest.strip_prefix("messages/").map(str::to_owned);
        match (actor == "owner", exchange.method.as_str(), id) {
            (true, "POST", _) if queue == self.names.queue => self.put(exchange),
            (true, ..) => {}
            (_, "GET", None) if rest == "messages" => self.got(number, exchange),
            (_, "POST", None) if queue == self.names.poison => self.poisoned(number, exchange),
            (_, "PUT" | "DELETE", Some(id)) => self.used(number, actor, exchange, &id),
            _ => {}
        }
        match &exchange.fate {
            Fate::Answered(answer) if answer.status == 503 => self.mark("503"),
            Fate::NoAnswer(_) => self.mark("connection reset"),
            Fate::Answered(_) if !exchange.delivered && actor != "owner" => {
                self.mark(match exchange.method.as_str() {
                    "GET" => "answer lost: get",
                    "DELETE" => "answer lost: delete",
                    "PUT" => "answer lost: update",
                    _ => "answer lost: put",
                });
            }
            Fate::Answered(answer) if answer.header("x-ms-error-code").is_some() => {
                if answer.header("x-ms-error-code") == Some("PopReceiptMismatch") {
                    self.mark("receipt mismatch");
                }
            }
            Fate::Answered(_) => {}
        }
        if exchange.delivered {
            self.told(actor, exchange);
        }
    }

    /// The owner's message: its id is known to the service alone.
    fn put(&mut self, exchange: &Exchange) {
        let Some(answer) = exchange.done() else {
            return;
        };
        let text = answer.text();
        if let Some(id) = element(&text, "MessageId") {
            let number = self.messages.len();
            let known = Known {
                number,
                ..Known::default()
            };
            self.messages.insert(id.to_owned(), known);
        }
    }

    /// LS7: what is asked for; and how often each message was taken in truth.
    fn got(&mut self, number: usize, exchange: &Exchange) {
        let parameter = |name: &str| exchange.parameter(name).and_then(|v| v.parse().ok());
        let count = parameter("numofmessages").unwrap_or(1);
        let visibility = parameter("visibilitytimeout").unwrap_or(30);
        if !GET_COUNT.contains(&count) || !GET_VISIBILITY_S.contains(&visibility) {
            let what = format!("a get of {count} messages for {visibility} s");
            self.violated("LS7", number, what);
        }
        let Some(answer) = exchange.done() else {
            return;
        };
        for message in elements(&answer.text(), "QueueMessage") {
            let known = element(message, "MessageId").and_then(|id| self.messages.get_mut(id));
            let Some(known) = known else { continue };
            known.gets += 1;
            let told = element(message, "DequeueCount").and_then(|count| count.parse().ok());
            if told != Some(known.gets) {
                let what = format!("taken {} times, the service says {told:?}", known.gets);
                self.violations.push(Violation::at("service", number, what));
            }
        }
    }

    /// What an answer tells a life about its locks.
    fn told(&mut self, actor: &str, exchange: &Exchange) {
        let Some(answer) = exchange.done() else {
            return;
        };
        let (_, _, rest) = exchange.segments();
        let mut grant = |id: &str, receipt: &str, until: Option<Timestamp>| {
            let key = (actor.to_owned(), id.to_owned());
            let until = until.unwrap_or(Timestamp::MIN);
            self.grants.insert(key, (receipt.to_owned(), until));
        };
        if exchange.method == "GET" && rest == "messages" {
            for message in elements(&answer.text(), "QueueMessage") {
                let text = |name| element(message, name).unwrap_or_default();
                let until = Timestamp::parse_rfc1123(text("TimeNextVisible"));
                grant(text("MessageId"), text("PopReceipt"), until);
            }
        } else if let ("PUT", Some(id)) = (exchange.method.as_str(), rest.strip_prefix("messages/"))
        {
            let header = |name| answer.header(name).unwrap_or_default();
            let until = Timestamp::parse_rfc1123(header("x-ms-time-next-visible"));
            grant(id, header("x-ms-popreceipt"), until);
            let used = exchange.parameter("popreceipt").unwrap_or_default();
            self.replaced.insert((id.to_owned(), used.to_owned()));
        }
    }

    /// LS1 and LS2: an update or delete of a message.
    fn used(&mut self, number: usize, actor: &str, exchange: &Exchange, id: &str) {
        let used = exchange.parameter("popreceipt").unwrap_or_default();
        if self.replaced.contains(&(id.to_owned(), used.to_owned())) {
            let what = format!("{actor} used {used} on {id}, which it has replaced before");
            self.violated("LS2", number, what);
        }
        if exchange.method == "DELETE" && exchange.done().is_some() {
            let Some(known) = self.messages.get_mut(id) else {
                return;
            };
            known.deleted = true;
            if !known.done && known.poisoned == 0 {
                let what = format!("{actor} deleted {id}: neither done nor in the poison queue");
                self.violated("LS1", number, what);
            }
        }
    }

    /// A copy in the poison queue: it says whose it is, never expires, and is whole.
    fn poisoned(&mut self, number: usize, exchange: &Exchange) {
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
            return self.violated("LS1", number, format!("a poison copy of nothing: {text}"));
        };
        known.poisoned += 1;
        let stored = self.plan.stored_text(known.number);
        if envelope["body"].as_str() != Some(stored.as_str()) {
            let what = format!("the poison copy is {}, not {stored}", envelope["body"]);
            self.violated("LS6", number, what);
        }
    }

    /// LS4, LS5, LS6: a handler begins.
    fn started(&mut self, number: usize, event: &Event, (id, count, body): (&str, u32, &str)) {
        let key = (event.actor.clone(), id.to_owned());
        let until = self
            .grants
            .get(&key)
            .map_or(Timestamp::MIN, |grant| grant.1);
        if until <= event.at {
            let what = format!("{id} was hidden until {} only", until.iso_ticks());
            self.violated("LS4", number, what);
        }
        let Some(known) = self.messages.get(id) else {
            return self.violated("LS6", number, format!("{id} was never put"));
        };
        let (gets, of, done) = (known.gets, known.number, known.done);
        if gets > self.plan.max_dequeue {
            let what = format!("{id} was taken {gets} times, and counted {count}");
            self.violated("LS5", number, what);
        }
        if body != self.plan.body(of) {
            self.violated("LS6", number, format!("{id} came as {body}"));
        }
        if done {
            self.mark("handled again after it was done");
        }
    }

    /// LS3 and LL2: each message came to the end that its own behaviour and the number of times
    /// that it was taken allow, whatever happened to the others.
    fn end(&mut self) {
        let most = self.plan.max_dequeue;
        let mut found = Vec::new();
        for (id, known) in &self.messages {
            let behaviour = self.plan.messages[known.number].behaviour;
            // Without renewal a handler gets no more time than one visibility.
            let too_slow = matches!(behaviour, super::Behaviour::Slow(s)
                if !self.plan.renew && s + 2 >= self.plan.visibility_s);
            let name = format!("{id} (m{:02}, {behaviour:?})", known.number);
            if !known.deleted {
                found.push(Violation::of_run("LL2", format!("{name} is still there")));
            }
            let never = behaviour.failures().is_none_or(|failures| failures >= most);
            if never && known.done {
                found.push(Violation::of_run(
                    "LS5",
                    format!("{name} was done beyond {most}"),
                ));
            }
            let taken_often = known.gets >= most;
            if known.poisoned > 0 && !never && !taken_often && !too_slow {
                let what = format!("{name} was poisoned after {} of {most}", known.gets);
                found.push(Violation::of_run("LS3", what));
            }
        }
        let unknown: BTreeSet<usize> = self.messages.values().map(|m| m.number).collect();
        if unknown.len() != self.plan.messages.len() {
            found.push(Violation::of_run("run", "not every message was put"));
        }
        self.violations.extend(found);
    }
}
