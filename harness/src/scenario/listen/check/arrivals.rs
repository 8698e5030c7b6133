//! When messages are taken: LL1 for a message in an idle queue, LL3 for messages at a constant
//! rate.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use smalt_listener::PoolState;
use smalt_protocol::Timestamp;

use super::message::taken;
use super::pace::{AFTERMATH, Pace, SLACK};
use crate::scenario::faults::AWAY;
use crate::scenario::history::{Event, Exchange, Happening, element};
use crate::scenario::listen::{Mode, Seen, Stage};
use crate::scenario::marks::{Marks, mark};

/// The time in which a backlog must be processed (the default).
const DRAIN_TARGET: Duration = Duration::from_secs(10);

pub(super) fn check(pace: &mut Pace<'_>, marks: &mut Marks) {
    pace.late(marks);
    pace.steady(marks);
    if matches!(pace.plan.shape.mode, Mode::Poll(_)) && pace.plan.shape.partitions.is_none() {
        pace.waits(marks);
    }
}

/// The places of one life.
#[derive(Default)]
struct Places {
    tasks: u32,
    /// Messages that it got and has not decided about.
    held: BTreeSet<String>,
    /// Since when it has had a free place.
    free_since: Option<Timestamp>,
    leaves: bool,
}

impl Pace<'_> {
    /// LL1: checks that the message in an idle queue is taken in time.
    fn late(&mut self, marks: &mut Marks) {
        let stage = self
            .history
            .iter()
            .enumerate()
            .find_map(|(number, event)| match &event.what {
                Happening::Listener(Seen::Stage(Stage::Late { .. })) => Some((number, event.at)),
                _ => None,
            });
        let Some((number, put)) = stage else {
            return;
        };
        let is_get = |event: &&Event| match &event.what {
            Happening::Exchange(e) if event.actor.starts_with("listener") => {
                e.method == "GET" && e.done().is_some_and(|a| !taken(&a.text()).is_empty())
            }
            _ => false,
        };
        let got = self
            .history
            .iter()
            .skip(number)
            .find(is_get)
            .map(|event| event.at);
        // One listener that a trigger reaches is enough.
        let end = got.unwrap_or(Timestamp::MAX);
        let announced = (self.history.iter().skip(number))
            .take_while(|event| event.at <= end)
            .find(|event| event.what == Happening::Listener(Seen::Woken))
            .map(|event| event.at);
        // An outage may extend into the quiet part: nobody can take anything before its end.
        let away = self.away_until(number, got);
        let mut most = SLACK + 4 * self.lag;
        if announced.is_none() {
            most += self.plan.shape.longest_sleep();
            if matches!(self.plan.shape.mode, Mode::Trigger(_)) {
                mark(marks, "watchdog woke");
            }
        }
        if away.is_some() || !self.is_exact(put) {
            most += AFTERMATH;
        }
        let put = away.or(announced).unwrap_or(put);
        match got {
            Some(at) if at <= put.plus(most) => {}
            Some(at) => {
                let what = format!("taken after {:?}, {most:?} allowed", at.since(put));
                self.violated("LL1", number, what);
            }
            None => self.violated("LL1", number, "never taken".to_owned()),
        }
    }

    /// LL1: checks that no message waits longer than the longest pause while a life that polls has
    /// a free place all the time.
    fn waits(&mut self, marks: &mut Marks) {
        let most = self.plan.shape.longest_sleep() + SLACK + self.token_wait() + 4 * self.lag;
        let mut lives: BTreeMap<&str, Places> = BTreeMap::new();
        // When each message in the queue is visible.
        let mut visible: BTreeMap<String, Timestamp> = BTreeMap::new();
        let history = self.history;
        for (number, event) in history.iter().enumerate() {
            let places = lives.entry(event.actor.as_str()).or_default();
            match &event.what {
                Happening::Exchange(exchange) => {
                    let got = self.moved(event, exchange, &mut visible);
                    if exchange.is_told() {
                        places.held.extend(got.iter().map(|(id, _)| id.clone()));
                    }
                    let free_since = lives.values().filter_map(|places| places.free_since).min();
                    for (id, since) in got {
                        let since = since.max(free_since.unwrap_or(event.at));
                        let wait = event.at.since(since);
                        if self.is_exact(since) && wait > most {
                            let what = format!("{id} waited {wait:?} for a life with free places");
                            self.violated("LL1", number, what);
                        }
                    }
                }
                Happening::Listener(Seen::Pool { state, tasks }) => {
                    let polls = matches!(state, PoolState::Active | PoolState::Watching);
                    places.tasks = if polls { *tasks } else { 0 };
                }
                Happening::Listener(Seen::Decided { id, .. }) => {
                    places.held.remove(id);
                }
                Happening::ToldToStop => places.leaves = true,
                Happening::Listener(Seen::Left(_)) | Happening::Crashed => {
                    places.leaves = true;
                }
                _ => {}
            }
            let Some(places) = lives.get_mut(event.actor.as_str()) else {
                continue;
            };
            let all = (places.tasks * self.plan.shape.slots) as usize;
            let is_free = places.held.len() < all && !places.leaves;
            if is_free && places.held.len() >= self.plan.shape.slots as usize {
                mark(marks, "free places beside a full task");
            }
            places.free_since = match is_free {
                true => places.free_since.or(Some(event.at)),
                false => None,
            };
        }
    }

    /// Records what an exchange does to the messages of the queue. Returns those that a listener
    /// got, with the times from which on they were visible.
    fn moved(
        &self,
        event: &Event,
        exchange: &Exchange,
        visible: &mut BTreeMap<String, Timestamp>,
    ) -> Vec<(String, Timestamp)> {
        let (_, queue, rest) = exchange.segments();
        let Some(answer) = exchange.done().filter(|_| queue == self.names.queue) else {
            return Vec::new();
        };
        let s = exchange.parameter("visibilitytimeout");
        let hidden = event.at.plus_s(s.and_then(|s| s.parse().ok()).unwrap_or(0));
        let text = answer.text();
        match (exchange.method.as_str(), rest.strip_prefix("messages/")) {
            ("POST", None) => {
                let id = element(&text, "MessageId").unwrap_or_default();
                visible.insert(id.to_owned(), hidden);
                Vec::new()
            }
            ("GET", None) if exchange.parameter("peekonly").is_none() => {
                let got = taken(&text).into_iter().filter_map(|message| {
                    let before = visible.insert(message.id.to_owned(), message.until);
                    before.map(|before| (message.id.to_owned(), before))
                });
                let got: Vec<_> = got.collect();
                match event.actor.starts_with("listener") {
                    true => got,
                    false => Vec::new(),
                }
            }
            ("PUT", Some(id)) => {
                visible.insert(id.to_owned(), hidden);
                Vec::new()
            }
            ("DELETE", Some(id)) => {
                visible.remove(id);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Returns when a request last found the service unavailable, from this event on and before
    /// `end`.
    fn away_until(&self, number: usize, end: Option<Timestamp>) -> Option<Timestamp> {
        let is_away = |event: &&Event| match &event.what {
            Happening::Exchange(exchange) => exchange.fault == Some(AWAY),
            _ => false,
        };
        let events = self.history.iter().skip(number);
        events
            .take_while(|event| end.is_none_or(|end| event.at < end))
            .filter(is_away)
            .last()
            .map(|event| event.at)
    }

    /// LL3: checks that under a constant load that the listeners can process, the oldest message
    /// does not get older.
    fn steady(&mut self, marks: &mut Marks) {
        let begun = self
            .history
            .iter()
            .position(|event| event.what == Happening::Listener(Seen::Stage(Stage::Steady)));
        let Some(begun) = begun else { return };
        let mut put: BTreeMap<String, Timestamp> = BTreeMap::new();
        let mut waits = Vec::new();
        for (number, event) in self.history.iter().enumerate().skip(begun) {
            let Happening::Exchange(exchange) = &event.what else {
                continue;
            };
            let Some(text) = exchange.done().map(crate::scenario::history::Answer::text) else {
                continue;
            };
            if event.actor == "owner" && exchange.method == "POST" {
                let id = crate::scenario::history::element(&text, "MessageId").unwrap_or_default();
                put.insert(id.to_owned(), event.at);
            } else if exchange.method == "GET" {
                for message in taken(&text) {
                    if let Some(at) = put.remove(message.id) {
                        waits.push((number, at, event.at.since(at)));
                    }
                }
            }
        }
        // The pool has reached its size when the messages of the last third arrive.
        waits.sort_by_key(|(_, at, _)| *at);
        let most = DRAIN_TARGET + self.plan.shape.longest_sleep() + SLACK + 4 * self.lag;
        let last_third = waits.len() * 2 / 3;
        if last_third > 0 {
            mark(marks, "constant load");
        }
        let slow = waits
            .iter()
            .skip(last_third)
            .find(|(_, _, wait)| *wait > most);
        if let Some((number, _, wait)) = slow.copied() {
            self.violated(
                "LL3",
                number,
                format!("taken after {wait:?}, {most:?} allowed"),
            );
        }
    }
}
