//! All listeners together: one idle poller (LS10, and LL1 of a fleet with a sentinel) and one
//! request budget (LS9 of the account). Also the alarm that is raised while a handler still runs
//! (LL2), and the sentinel's lease after a stop (LL4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use smalt_protocol::Timestamp;

use super::message::{is_unclear, never_expires, taken};
use super::pace::{AFTERMATH, SLACK};
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Event, Exchange, Fate, Happening};
use crate::scenario::listen::plan::ListenPlan;
use crate::scenario::listen::{Mode, Names, Seen, Stage};
use crate::scenario::marks::{Marks, mark};

/// Times on the wire are whole seconds, in both directions.
const ROUNDING: Duration = Duration::from_secs(2);

/// Checks one queue.
pub(super) fn check_queue(
    history: &[Event],
    plan: &ListenPlan,
    names: &Names,
    violations: &mut Vec<Violation>,
    marks: &mut Marks,
) {
    if plan.shape.mode == Mode::Sentinel {
        violations.extend(one_polls(history, plan, names, marks));
    }
}

/// Checks the budget of the account, and the alarms.
pub(super) fn check_all(
    history: &[Event],
    plan: &ListenPlan,
    violations: &mut Vec<Violation>,
    marks: &mut Marks,
) {
    if plan.shape.mode == Mode::Sentinel && plan.shape.partitions.is_none() {
        violations.extend(leases(history, plan, marks));
    }
    if let Some(per_s) = plan.shape.account_per_s {
        violations.extend(account(history, plan, f64::from(per_s), marks));
    }
    violations.extend(alarms(history, marks));
}

/// Iterates over the exchanges of the listeners, in the order of their events.
fn sent(history: &[Event]) -> impl Iterator<Item = (usize, &Event, &Exchange)> {
    let numbered = history.iter().enumerate();
    numbered.filter_map(|(number, event)| match &event.what {
        Happening::Exchange(exchange) if event.actor.starts_with("listener") => {
            Some((number, event, exchange.as_ref()))
        }
        _ => None,
    })
}

/// The life that has the sentinel's lease.
#[derive(Clone, Copy)]
struct Holder<'a> {
    actor: &'a str,
    duration_s: u64,
    until: Timestamp,
}

/// Counts what became of the sentinel's lease. LL4: checks that a life which leaves has at least
/// tried to give it up.
fn leases(history: &[Event], plan: &ListenPlan, marks: &mut Marks) -> Vec<Violation> {
    let mut last = None;
    let mut holder: Option<Holder> = None;
    let mut found = Vec::new();
    for (number, event) in history.iter().enumerate() {
        let actor = event.actor.as_str();
        let exchange = match &event.what {
            Happening::Exchange(exchange) if actor.starts_with("listener") => exchange,
            Happening::Listener(Seen::Left(_)) => {
                let holds =
                    holder.filter(|holder| holder.actor == actor && event.at < holder.until);
                // A release that comes too late is not in the history when its sender leaves.
                if holds.is_some() && !plan.hides_leases() {
                    let what = format!("{actor} has left and kept the sentinel's lease");
                    found.push(Violation::at("LL4", number, what));
                }
                continue;
            }
            _ => continue,
        };
        let action = exchange.header("x-ms-lease-action");
        if action == Some("release") {
            holder = holder.filter(|holder| holder.actor != actor);
        }
        let Fate::Answered(answer) = &exchange.fate else {
            continue;
        };
        match (action, answer.status) {
            (Some("acquire"), 201) => {
                let asked_s = exchange.header("x-ms-lease-duration");
                let duration_s = asked_s.and_then(|text| text.parse().ok()).unwrap_or(0);
                holder = Some(Holder {
                    actor,
                    duration_s,
                    until: exchange.sent.plus_s(duration_s),
                });
                if last.replace(actor).is_some_and(|before| before != actor) {
                    mark(marks, "sentinel replaced");
                }
            }
            (Some("acquire"), 409) => mark(marks, "sentinel's lease taken"),
            (Some("renew"), 200) => {
                if let Some(holder) = holder.as_mut().filter(|holder| holder.actor == actor) {
                    holder.until = exchange.sent.plus_s(holder.duration_s);
                }
                mark(marks, "sentinel's lease renewed");
            }
            (Some("release"), 200) => mark(marks, "sentinel's lease given up"),
            _ => {}
        }
    }
    found
}

/// Checks that in an idle fleet exactly one life polls, once the active ones have become idle and a
/// sentinel that died has been replaced.
fn one_polls(
    history: &[Event],
    plan: &ListenPlan,
    names: &Names,
    marks: &mut Marks,
) -> Vec<Violation> {
    let stage = |wanted: fn(&Stage) -> bool| {
        let found = history.iter().enumerate().find(|(_, event)| {
            matches!(&event.what, Happening::Listener(Seen::Stage(stage)) if wanted(stage))
        });
        found.map(|(number, event)| (number, event.at))
    };
    let calm = history.iter().find(|event| event.what == Happening::Calm);
    let idle = stage(|stage| *stage == Stage::Idle);
    let late = stage(|stage| matches!(stage, Stage::Late { .. }));
    let (Some(calm), Some((_, idle)), Some((number, late))) = (calm, idle, late) else {
        return Vec::new();
    };
    let lag = Duration::from_millis(plan.shape.lag_ms);
    let cooldown = Duration::from_secs(u64::from(plan.shape.cooldown_s));
    let begun = idle.max(calm.at.plus(AFTERMATH));
    let settled = begun.plus(cooldown + plan.shape.longest_sleep() + SLACK + 4 * lag);
    let longest = Duration::from_millis(plan.shape.idle_ms.1) + SLACK + 2 * lag;
    if settled.plus(longest) >= late {
        return Vec::new();
    }
    let is_get = |exchange: &Exchange| {
        let (_, queue, rest) = exchange.segments();
        exchange.method == "GET" && queue == names.queue && rest == "messages"
    };
    let gets = sent(history).filter(|(_, _, exchange)| {
        is_get(exchange) && exchange.sent >= settled && exchange.sent < late
    });
    let (mut pollers, mut last) = (BTreeSet::new(), settled);
    for (_, event, exchange) in gets {
        pollers.insert(event.actor.as_str());
        last = last.max(exchange.sent);
    }
    mark(marks, "fleet idle");
    let mut found = Vec::new();
    if pollers.len() > 1 {
        let what = format!("{pollers:?} poll the idle queue, not exactly one");
        found.push(Violation::at("LS10", number, what));
    }
    if last.plus(longest) < late {
        let what = format!("no listener has polled since {}", last.iso_ticks());
        found.push(Violation::at("LL1", number, what));
    }
    found
}

/// LS9 of the account: checks that within any second all lives together send at most what the
/// bucket grants, without requests that are repeated after a failure.
fn account(history: &[Event], plan: &ListenPlan, per_s: f64, marks: &mut Marks) -> Vec<Violation> {
    // Requests for the map of a partitioned queue take nothing from the bucket: two reads in ten
    // seconds, and a look at the draining queues.
    let is_drawn = |exchange: &Exchange| {
        let (_, _, rest) = exchange.segments();
        plan.shape.partitions.is_none() || !(rest.ends_with(".json") || rest.is_empty())
    };
    let mut times: Vec<(Timestamp, bool)> = sent(history)
        .filter(|(_, _, exchange)| is_drawn(exchange))
        .map(|(_, _, exchange)| (exchange.sent, is_unclear(exchange)))
        .collect();
    times.sort();
    let calm = history.iter().find(|event| event.what == Happening::Calm);
    let exact = calm.map_or(Timestamp::MAX, |event| event.at.plus(AFTERMATH));
    // Later requests may overtake requests that took their tokens earlier.
    let allowed = per_s + (per_s / 10.0).max(1.0) + 2.0;
    for (first, (at, _)) in times.iter().enumerate() {
        // Delayed requests arrive all at once.
        if *at < exact && (plan.hides_requests() || !plan.acts.is_empty()) {
            continue;
        }
        let second = times[first..]
            .iter()
            .take_while(|(sent, _)| sent.since(*at) <= Duration::from_secs(1));
        let (count, failed) = second.fold((0_u32, 0_u32), |(count, failed), (_, f)| {
            (count + 1, failed + u32::from(*f))
        });
        if f64::from(count) >= per_s * 0.9 {
            mark(marks, "account's budget used up");
        }
        if f64::from(count) > allowed + f64::from(failed) {
            let what = format!("{count} requests to the account in a second, {allowed:.0} allowed");
            return vec![Violation::of_run("LS9", what)];
        }
    }
    Vec::new()
}

/// A message that a life has.
struct Held {
    alarm_from: Timestamp,
    running: Option<u32>,
    alarmed: bool,
}

/// LL2: checks that the alarm is raised while a handler runs, if it runs into the last tenth of its
/// message's lifetime.
fn alarms(history: &[Event], marks: &mut Marks) -> Vec<Violation> {
    let mut held: BTreeMap<(&str, String), Held> = BTreeMap::new();
    let mut gone = BTreeSet::new();
    let mut slept = Timestamp::MIN;
    let mut found = Vec::new();
    for (number, event) in history.iter().enumerate() {
        let actor = event.actor.as_str();
        let key = |id: &String| (actor, id.clone());
        match &event.what {
            Happening::Exchange(e) if e.method == "GET" && e.segments().2 == "messages" => {
                let Some(answer) = e.done() else { continue };
                for (id, alarm_from) in mortal(&answer.text()) {
                    let now = Held {
                        alarm_from,
                        running: None,
                        alarmed: false,
                    };
                    held.insert((actor, id), now);
                }
            }
            Happening::Started { id, count, .. } => {
                if let Some(held) = held.get_mut(&key(id)) {
                    held.running = Some(*count);
                }
            }
            Happening::Listener(Seen::Expiring { id }) => {
                if let Some(held) = held.get_mut(&key(id)) {
                    held.alarmed = true;
                    if held.running.is_some() {
                        mark(marks, "expiry alarm under a running handler");
                    }
                }
            }
            Happening::Listener(Seen::Slept(s)) => slept = event.at.plus_s(*s),
            Happening::Crashed => {
                gone.insert(actor);
            }
            Happening::Handled { id, count, .. } if !gone.contains(actor) => {
                let ended = held.get_mut(&key(id)).filter(|h| h.running == Some(*count));
                let Some(held) = ended else { continue };
                let due = held.alarm_from.plus(ROUNDING) < event.at && slept < held.alarm_from;
                if due && !held.alarmed {
                    let what = format!("{actor} still runs {id} near its expiry, without an alarm");
                    found.push(Violation::at("LL2", number, what));
                }
                held.running = None;
            }
            _ => {}
        }
    }
    found
}

/// Returns the messages of a get's answer that expire, and the time at which a tenth of their
/// lifetime is left.
fn mortal(xml: &str) -> Vec<(String, Timestamp)> {
    let times = crate::scenario::history::elements(xml, "InsertionTime");
    let messages = taken(xml).into_iter().zip(times);
    let mortal = messages.filter(|(message, _)| !never_expires(message.expires));
    mortal
        .filter_map(|(message, inserted)| {
            let inserted = Timestamp::parse_rfc1123(inserted)?;
            let life = message.expires.since(inserted);
            Some((message.id.to_owned(), message.expires.minus(life / 10)))
        })
        .collect()
}
