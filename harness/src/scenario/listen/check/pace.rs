//! Numbers and times of each listener's life: LS7 to LS10, LL1, LL3, LL4, and unnecessary requests
//! (DL2, DL5).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use smalt_listener::PoolState;
use smalt_protocol::Timestamp;

use super::arrivals;
use super::message::{is_unclear, taken};
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Event, Exchange, Fate, Happening};
use crate::scenario::listen::plan::ListenPlan;
use crate::scenario::listen::{Mode, Names, Seen, Stage};
use crate::scenario::marks::{Marks, mark};

/// Most messages of a Get Messages, and its longest visibility timeout in seconds (7 days).
const GET_COUNT_MAX: u64 = 32;
const GET_VISIBILITY_S: std::ops::RangeInclusive<u64> = 1..=604_800;
/// Duration of the effects of the trouble: waits after errors, halved request rates. Times are
/// exact afterwards.
pub(super) const AFTERMATH: Duration = Duration::from_secs(75);
/// Tolerance for waits for a token, the controller's tick, and collecting free slots.
pub(super) const SLACK: Duration = Duration::from_millis(1_600);
/// Shortest wait after a failed get.
const ERROR_MIN: Duration = Duration::from_millis(400);
/// Time after the grace period for cancelled handlers and releases.
const LEAVE_WITHIN: Duration = Duration::from_secs(8);
/// Wakes of two tasks at the same moment from which on they poll in step; fewer are chance.
const IN_STEP_MAX: u32 = 2;
/// An idle period with more gets than this is a long one.
const LONG_IDLE_GETS: usize = 25;

pub(super) struct Pace<'a> {
    pub(super) plan: &'a ListenPlan,
    pub(super) names: &'a Names,
    pub(super) history: &'a [Event],
    pub(super) lag: Duration,
    /// When the trouble ended.
    calm_at: Timestamp,
    violations: &'a mut Vec<Violation>,
}

/// One life during the events.
#[derive(Default)]
struct Life {
    state: PoolState,
    tasks: u32,
    /// Since when the pool has its state and number of tasks.
    since: Option<Timestamp>,
    /// When its last get got an empty answer or none, if nothing else has arrived since.
    empty_at: Option<Timestamp>,
    /// How many empty gets it has had in a row, at least, and whether these are all since it last
    /// found something or was woken.
    empty_gets: (u32, bool),
    /// When its last get failed, and the shortest wait after that, if nothing was sent since.
    failed_at: Option<(Timestamp, Duration)>,
    /// Requests to the queue, and failures among them.
    sent: Vec<Timestamp>,
    failed: Vec<Timestamp>,
    told_at: Option<Timestamp>,
    idle_gets: Vec<Timestamp>,
    /// Times of its gets, and how often two of them coincided after a random sleep.
    gets: Vec<Timestamp>,
    in_step: u32,
    /// When it was last woken, resized, refused, or found something.
    disturbed: Option<Timestamp>,
    /// Direction of the last change in the steady stage, and number of changes of direction.
    rising: Option<bool>,
    reversals: u32,
    woken_at: Option<Timestamp>,
    running: u32,
}

pub(super) fn check(
    history: &[Event],
    plan: &ListenPlan,
    names: &Names,
    violations: &mut Vec<Violation>,
    marks: &mut Marks,
) {
    let mut pace = Pace::new(history, plan, names, violations);
    pace.lives(marks);
}

/// Checks when messages are taken, over all queues.
pub(super) fn arrivals(
    history: &[Event],
    plan: &ListenPlan,
    names: &Names,
    violations: &mut Vec<Violation>,
    marks: &mut Marks,
) {
    arrivals::check(&mut Pace::new(history, plan, names, violations), marks);
}

/// Returns the shortest wait after a failed get: what the answer asks for, else that of the error
/// curve where the storage client does not try again by itself. A listener that creates a lost
/// queue gets from it at once.
fn wait_of(exchange: &Exchange, creates: bool) -> Option<Duration> {
    let Fate::Answered(answer) = &exchange.fate else {
        return None;
    };
    let asked_s = answer.header("retry-after").and_then(|s| s.parse().ok());
    match (asked_s, answer.status) {
        (Some(asked_s), _) => Some(Duration::from_secs(asked_s)),
        (None, 404) if creates => None,
        (None, 400..500) => Some(ERROR_MIN),
        (None, _) => None,
    }
}

impl<'a> Pace<'a> {
    fn new(
        history: &'a [Event],
        plan: &'a ListenPlan,
        names: &'a Names,
        violations: &'a mut Vec<Violation>,
    ) -> Self {
        let calm = history.iter().find(|e| e.what == Happening::Calm);
        Pace {
            plan,
            names,
            history,
            lag: Duration::from_millis(plan.shape.lag_ms),
            calm_at: calm.map_or(Timestamp::MAX, |event| event.at),
            violations,
        }
    }

    pub(super) fn violated(&mut self, property: &'static str, number: usize, what: String) {
        self.violations.push(Violation::at(property, number, what));
    }

    /// Whether the trouble and its effects are over.
    pub(super) fn is_exact(&self, at: Timestamp) -> bool {
        at >= self.calm_at.plus(AFTERMATH)
    }

    fn lives(&mut self, marks: &mut Marks) {
        let mut lives: BTreeMap<&str, Life> = BTreeMap::new();
        let mut gone = BTreeSet::new();
        let mut stage = None;
        let mut stage_at = Timestamp::MIN;
        let history = self.history;
        for (number, event) in history.iter().enumerate() {
            if gone.contains(event.actor.as_str()) {
                continue;
            }
            let life = lives.entry(event.actor.as_str()).or_default();
            match &event.what {
                Happening::Exchange(exchange) if event.actor.starts_with("listener") => {
                    self.exchange(number, event, exchange, life, stage);
                }
                Happening::Started { .. } => {
                    life.running += 1;
                    // A get that was under way may have taken the last free slot.
                    let is_full = life.running >= self.plan.shape.slots;
                    life.woken_at = life.woken_at.filter(|_| !is_full);
                }
                Happening::Handled { .. } => life.running = life.running.saturating_sub(1),
                Happening::ToldToStop => {
                    life.told_at = Some(event.at);
                    life.empty_at = None;
                    life.woken_at = None;
                }
                Happening::Crashed => {
                    lives.remove(event.actor.as_str());
                    gone.insert(event.actor.as_str());
                }
                Happening::Listener(Seen::Stage(next)) => {
                    if stage == Some(Stage::Idle) {
                        self.idle_over(number, event.at, stage_at, &lives);
                    }
                    (stage, stage_at) = (Some(*next), event.at);
                }
                Happening::Listener(seen) => {
                    self.seen(number, event, seen, life, stage);
                    if matches!(seen, Seen::Left(_)) {
                        self.rate(number, life);
                    }
                }
                _ => {}
            }
        }
        if lives
            .values()
            .any(|life| life.idle_gets.len() > LONG_IDLE_GETS)
        {
            mark(marks, "long idle");
        }
    }

    fn seen(
        &mut self,
        number: usize,
        event: &Event,
        seen: &Seen,
        life: &mut Life,
        stage: Option<Stage>,
    ) {
        match seen {
            Seen::Pool { state, tasks } => {
                self.resized(number, life, *state, *tasks, stage);
                (life.state, life.tasks, life.since) = (*state, *tasks, Some(event.at));
                life.empty_at = None;
                life.empty_gets = (0, false);
                life.disturbed = Some(event.at);
            }
            Seen::Woken => {
                // Only a sleeping task hears it.
                let pause = self.idle_pause(life.empty_gets).0;
                let asleep = life.empty_at.is_some_and(|at| event.at < at.plus(pause));
                life.empty_gets = (0, asleep);
                life.empty_at = None;
                life.disturbed = Some(event.at);
                let free = life.running < self.plan.shape.slots;
                let due = self.is_exact(event.at) && free && life.told_at.is_none();
                if due && life.since.is_some() && life.woken_at.is_none() {
                    life.woken_at = Some(event.at);
                }
            }
            Seen::Left(_) => {
                let grace = Duration::from_secs(u64::from(self.plan.shape.grace_s));
                let told = life.told_at.unwrap_or(event.at);
                let slept = self.slept(told, event.at);
                if event.at > told.plus(grace + LEAVE_WITHIN + slept + 2 * self.lag) {
                    let what = format!("{} took {:?} to stop", event.actor, event.at.since(told));
                    self.violated("LL4", number, what);
                }
            }
            _ => {}
        }
    }

    fn slept(&self, from: Timestamp, to: Timestamp) -> Duration {
        let of = |event: &Event| match &event.what {
            Happening::Listener(Seen::Slept(s)) if event.at >= from && event.at <= to => *s,
            _ => 0,
        };
        Duration::from_secs(self.history.iter().map(of).sum())
    }

    /// LS10: checks that tasks which must poll for ever do; LL3: limits the changes of direction.
    fn resized(
        &mut self,
        number: usize,
        life: &mut Life,
        state: PoolState,
        tasks: u32,
        stage: Option<Stage>,
    ) {
        let works = matches!(state, PoolState::Active | PoolState::Watching);
        let floor = self.plan.shape.floor();
        if works && tasks < floor {
            let what = format!("{tasks} tasks poll, not {floor}");
            self.violated("LS10", number, what);
        }
        let most = self.plan.shape.tasks_max.max(1).max(floor);
        if works && tasks > most {
            self.violated(
                "LS7",
                number,
                format!("{tasks} tasks poll, {most} are allowed"),
            );
        }
        if stage == Some(Stage::Steady) && works && tasks != life.tasks {
            let rising = tasks > life.tasks;
            life.reversals += u32::from(life.rising.is_some_and(|was| was != rising));
            life.rising = Some(rising);
            if let crate::scenario::listen::Wave::Steady(_, _, for_s) = self.plan.wave {
                // A pool shrinks only after a complete cooldown of lower demand.
                let cooldown_s = u32::from(self.plan.shape.cooldown_s.max(1));
                let most = 2 * (u32::from(for_s) / cooldown_s + 1) + 1;
                if life.reversals > most {
                    let what = format!("{} changes of direction, {most} allowed", life.reversals);
                    self.violated("LL3", number, what);
                }
            }
        }
    }

    fn exchange(
        &mut self,
        number: usize,
        event: &Event,
        exchange: &Exchange,
        life: &mut Life,
        stage: Option<Stage>,
    ) {
        let (_, queue, rest) = exchange.segments();
        if queue != self.names.queue {
            return;
        }
        life.sent.push(exchange.sent);
        if is_unclear(exchange) {
            life.failed.push(exchange.sent);
        }
        if exchange.method == "GET" && rest == "messages" {
            self.got(number, event, exchange, life, stage);
        } else if exchange.method != "DELETE" && rest.is_empty() {
            let idle = life.state == PoolState::Watching && self.is_exact(event.at);
            if exchange.parameter("comp") == Some("metadata") && idle {
                self.violated(
                    "DL2",
                    number,
                    format!("{} asks for the length of an idle queue", event.actor),
                );
            }
        }
    }

    /// LS7 and LS8: checks what a get asks for, and how long after the previous one.
    fn got(
        &mut self,
        number: usize,
        event: &Event,
        exchange: &Exchange,
        life: &mut Life,
        stage: Option<Stage>,
    ) {
        let parameter = |name: &str| exchange.parameter(name).and_then(|v| v.parse().ok());
        let count = parameter("numofmessages").unwrap_or(1);
        let visibility = parameter("visibilitytimeout").unwrap_or(30);
        let most = u64::from(self.plan.shape.slots).min(GET_COUNT_MAX);
        if !(1..=most).contains(&count) || !GET_VISIBILITY_S.contains(&visibility) {
            let what = format!("a get of {count} messages for {visibility} s, {most} slots");
            self.violated("LS7", number, what);
        }
        self.woken(number, event, exchange, life);
        // A get of a task that has stopped since may still be in flight.
        let settled = life.since.map(|since| since.plus(2 * self.lag));
        let alone = life.state == PoolState::Watching
            && life.tasks == 1
            && settled.is_none_or(|settled| exchange.sent >= settled);
        if let (Some(last), true) = (life.empty_at, alone && self.is_exact(event.at)) {
            let gap = exchange.sent.since(last);
            let (least, most) = self.pause(life.empty_gets);
            let most = most + self.overtaking(&life.sent, last);
            if gap < least || gap > most + SLACK + 2 * self.lag {
                let what = format!("{gap:?} after an empty get, not {least:?} to {most:?}");
                self.violated("LS8", number, what);
            }
        }
        if let (Some((last, least)), true) = (life.failed_at, alone) {
            let gap = exchange.sent.since(last);
            // A repeated delivery was sent before.
            if exchange.sent >= last && gap < least {
                let what = format!("{gap:?} after a failed get, not {least:?}");
                self.violated("LS8", number, what);
            }
        }
        let answer = exchange.done().filter(|_| exchange.is_told());
        let empty = answer.is_some_and(|answer| taken(&answer.text()).is_empty());
        // In a wave, the find of one task wakes the others.
        if matches!(stage, Some(Stage::Idle | Stage::Late { .. })) {
            self.in_step(number, event, exchange, life);
        }
        if !empty {
            life.disturbed = Some(event.at);
        }
        life.empty_gets = match answer.is_some() {
            // Others may be those of tasks that have stopped.
            true if empty => (life.empty_gets.0 + u32::from(alone), life.empty_gets.1),
            found => (0, found),
        };
        life.empty_at = (empty && alone).then_some(event.at);
        // Until then a call of a task that has stopped may still be tried again.
        let steady = life
            .since
            .is_some_and(|since| since.plus(AFTERMATH) <= event.at);
        let failed = exchange.is_told() && answer.is_none() && alone && steady;
        let wait = wait_of(exchange, self.plan.shape.create_queue).filter(|_| failed);
        life.failed_at = wait.map(|wait| (event.at, wait));
        if empty && stage == Some(Stage::Idle) && life.state == PoolState::Watching {
            life.idle_gets.push(exchange.sent);
        }
    }

    /// DL5: checks that tasks with random sleeps do not wake together. The first sleep is not
    /// random, and the longest ones have so few values that they coincide by chance.
    fn in_step(&mut self, number: usize, event: &Event, exchange: &Exchange, life: &mut Life) {
        if !self.is_exact(event.at) {
            return;
        }
        let (first, longest) = self.plan.shape.idle_ms;
        let least = Duration::from_millis(first + 60) + 2 * self.lag;
        let drawn = least..Duration::from_millis(longest * 9 / 10);
        let together = life.gets.last() == Some(&exchange.sent);
        if !together {
            life.gets.push(exchange.sent);
            return;
        }
        let before = life.gets.iter().rev().nth(1).copied();
        let slept = before.filter(|before| life.disturbed.is_none_or(|at| at < *before));
        if slept.is_some_and(|before| drawn.contains(&exchange.sent.since(before))) {
            life.in_step += 1;
        }
        if life.in_step >= IN_STEP_MAX {
            let what = format!("{} polls in step", event.actor);
            self.violated("DL5", number, what);
        }
    }

    /// LL1: checks that a get follows a trigger.
    fn woken(&mut self, number: usize, event: &Event, exchange: &Exchange, life: &mut Life) {
        let Some(woken) = life.woken_at else {
            return;
        };
        if exchange.sent < woken {
            return;
        }
        life.woken_at = None;
        let most = SLACK + self.overtaking(&life.sent, woken) + 4 * self.lag;
        let late = exchange.sent.since(woken);
        if late > most && life.state != PoolState::Draining {
            let what = format!("{} polls {late:?} after a trigger", event.actor);
            self.violated("LL1", number, what);
        }
    }

    /// Checks the end of the idle stage: every poller has polled up to the end, and not in step.
    fn idle_over(
        &mut self,
        number: usize,
        now: Timestamp,
        since: Timestamp,
        lives: &BTreeMap<&str, Life>,
    ) {
        let longest = self.plan.shape.longest_sleep() + SLACK + 2 * self.lag;
        let watched = since.plus(longest) < now && self.is_exact(since);
        for (actor, life) in lives
            .iter()
            .filter(|(actor, _)| actor.starts_with("listener"))
        {
            // Followers sleep; the fleet is checked as a whole.
            if life.told_at.is_some() || self.plan.shape.mode == Mode::Sentinel {
                continue;
            }
            let silent = life.sent.last().is_none_or(|last| last.plus(longest) < now);
            if silent && watched {
                let what = format!("{actor} has stopped polling");
                self.violated("LL1", number, what);
            }
        }
    }

    /// LS9: checks that within any second a life sends at most what the bucket grants, without
    /// requests that are repeated after a failure.
    fn rate(&mut self, number: usize, life: &Life) {
        let rate = f64::from(self.plan.shape.rate_per_s);
        let burst = (rate / 10.0).max(1.0);
        let mut sent = life.sent.clone();
        sent.sort();
        for (first, at) in sent.iter().enumerate() {
            let second = sent
                .iter()
                .skip(first)
                .take_while(|s| s.since(*at) <= Duration::from_secs(1));
            // Later requests may overtake requests that took their tokens earlier.
            let allowed = rate + burst + 2.0;
            let count = second.count();
            if (count as f64) <= allowed {
                continue;
            }
            let until = at.plus(Duration::from_secs(1));
            let failed = life.failed.iter().filter(|f| **f <= until).count();
            // Delayed requests arrive all at once.
            let known = self.is_exact(*at) || !self.plan.hides_requests();
            let asleep = !self.slept(Timestamp::MIN, until).is_zero() && !self.is_exact(*at);
            if count as f64 > allowed + failed as f64 && known && !asleep {
                let what = format!("{count} requests in a second, {allowed:.0} allowed");
                return self.violated("LS9", number, what);
            }
        }
    }
}
